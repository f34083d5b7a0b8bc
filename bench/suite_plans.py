"""The real plans of shipped suites, collected by pytest for emulated drives that are never started."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from pytest_ssdqual.plugin.plan.order import Steps
from pytest_ssdqual.plugin.plan.stopping import ClaimsByMeasurement
from pytest_ssdqual.plugin.stash import RUN
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec import protocol, spec
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.datasheet import DataSheetValue
from pytest_ssdqual.qual.spec.drive_class import DriveClass
from pytest_ssdqual.qual.spec.promises import Promise
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.spec import Spec

SUITES = Path(__file__).parent.parent / "suites"
#: There is no suite for RAID 0: its level takes the place of RAID 5's in the tests of ``suites/raid5``.
OTHER_LEVEL = {"raid0": ("raid5", RaidLevel.RAID0)}
DRIVES = 8


@dataclass(frozen=True, slots=True)
class SuitePlan:
    """What the tests of a suite need."""

    name: str
    steps: Callable[[Protocol], Steps]
    asked: ClaimsByMeasurement
    #: Number of claims that are judged together.
    claims: int

    def of_level(self, name: str, level: RaidLevel) -> SuitePlan:
        """The same tests on arrays of another level."""

        def moved(geometry: Geometry) -> Geometry:
            return geometry if geometry.is_side_by_side else Geometry(level, geometry.width)

        def steps(settings: Protocol) -> Steps:
            return tuple(replace(each, geometry=moved(each.geometry)) for each in self.steps(settings))

        asked = {(moved(geometry), workload): claims for (geometry, workload), claims in self.asked.items()}
        return SuitePlan(name, steps, asked, self.claims)


class _Collected:
    """pytest plugin: keeps the plan after collection, and ends pytest before it prints the forecast of the plan, which
    takes 10 s of simulated drives.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.plan: SuitePlan | None = None

    # After the hook that plans, which is registered later, and before that of the terminal, which is not tryfirst.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        run = session.config.stash[RUN]
        self.plan = SuitePlan(self.name, run.steps_by, run.asked, run.claims)
        pytest.exit("the plan is known", returncode=0)


@cache
def of_suite(name: str) -> SuitePlan:
    """Collect ``suites/NAME`` for eight drives; RuntimeError with pytest's output if that fails."""
    if name in OTHER_LEVEL:
        source, level = OTHER_LEVEL[name]
        return of_suite(source).of_level(name, level)
    collected, output = _Collected(name), io.StringIO()
    args = (
        "--collect-only",
        "-q",
        "--assert=plain",
        "-p",
        "no:cacheprovider",
        f"--ssd-devices=lab:{DRIVES}",
        "--ssd-protocol=sequential",
    )
    with contextlib.redirect_stdout(output):
        pytest.main([*args, str(SUITES / name)], plugins=[collected])
    if collected.plan is None:
        raise RuntimeError(f"suites/{name} was not collected:\n{output.getvalue()}")
    return collected.plan


@dataclass(frozen=True, slots=True)
class Model:
    """A drive model and what its sheet publishes."""

    name: str
    spec: Spec
    drive_bytes: int

    def at(self, margin: float) -> Spec:
        """The spec with limits so far below what is published, as a share of the limit."""
        promise = Promise(claim=Claim.STEADY_IOPS, min_percent_of_spec=100 / (1 + margin))
        return replace(self.spec, promises=(promise,))


def models() -> dict[str, Model]:
    """Drives, eight of which are simulated: SATA of 800 GB, NVMe of 7.68 TB.

    Rates are those of data sheets for deep queues (SATA: reads of the S3500, writes of the S3700), taken for all depths
    of the suites, so that every test of a rate has a limit.
    """
    sata, nvme = spec.load("intel-dc-s3500-800gb"), spec.load("samsung-pm9a3-7t68")
    streaming = sata.product.model_copy(update={"sequential_write_bytes_per_s": 450_000_000})
    sata = replace(
        sata, figures=_figures(75_000, 36_000), product=streaming, drive_class=DriveClass.SATA,
        endurance_bytes=450 * 10**12,
    )  # fmt: skip
    nvme = replace(nvme, figures=_figures(1_100_000, 200_000))
    return {"sata": Model("8 × SATA 800 GB", sata, 800 * 10**9), "nvme": Model("8 × NVMe 7.68 TB", nvme, 7_680 * 10**9)}


def _figures(reads: int, writes: int) -> tuple[DataSheetValue, ...]:
    common = {"bs": "4k", "queue_depths": [1, 2, 4, 8, 16, 32], "source": "the bench"}
    return tuple(
        DataSheetValue.model_validate({"rw": rw, "iops": iops, **common})
        for rw, iops in (("randread", reads), ("randwrite", writes))
    )


def protocols() -> dict[str, Protocol]:
    """Protocols for acceptance, by name."""
    found = {name: protocol.load(name) for name in protocol.shipped()}
    return {name: each for name, each in found.items() if each.acceptance}
