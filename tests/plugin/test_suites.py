"""Everything that is shipped, on eight drives that were never there: no error, and nothing is done twice."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import from_plain
from pytest_ssdqual.qual.workload.workload import Workload

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

DRIVES = 8
#: A tenth better than their sheet: of a RAID 6 of five with two members gone there are 980 I/Os otherwise, and a p99
#: needs 1,000.
FASTER = ",".join(f"SSDQ{number:04}=1.1" for number in range(1, DRIVES + 1))
MEASUREMENTS = ("measured", "saturation", "loop", "rebuild")


#: A conftest that keeps the first test of each function and level.
FEW = """
    import pytest

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(items):
        firsts = {}
        for item in items:
            function, _, parameters = item.nodeid.partition("[")
            firsts.setdefault((function, parameters.partition("x")[0]), item)
        items[:] = firsts.values()
"""


@pytest.fixture
def rig(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> Inner:
    monkeypatch.setenv("SIMULATED_SLOW", FASTER)
    return inner


def run(rig: Inner, *selected: str, drives: int = DRIVES) -> pytest.RunResult:
    # The inspection measures nothing; tests/plugin/judging/test_inspection.py runs it.
    folders = [rig.suite(name) for name in rig.suites() if name not in ("meta", "inspection")]
    everything = ("-o", "ssd_measure_unpromised=true")
    return rig.run(
        f"--ssd-devices=lab:{drives}", "--import-mode=importlib", "--tb=line", *everything, *folders, *selected
    )


def cases(rig: Inner) -> list[ET.Element]:
    """Not by name: those are not unique over all suites."""
    return list(ET.parse(rig.pytester.path / "junit.xml").getroot().iter("testcase"))  # noqa: S314 (our own)


def outcomes(rig: Inner) -> Counter[str]:
    return Counter(next((each.tag for each in case if each.tag != "properties"), "passed") for case in cases(rig))


def message(case: ET.Element) -> str:
    """Why it was skipped."""
    said = case.find("skipped")
    return "" if said is None else said.get("message", "")


def reason(case: ET.Element) -> str:
    """Why it was skipped; ``measured`` for all that were only observed."""
    return "measured" if message(case).startswith("measured ") else message(case)


def least(rig: Inner) -> tuple[Counter[str], Counter[str]]:
    """How often each array must be built and conditioned for what was measured, by what it is used for."""
    built: Counter[str] = Counter()
    classes: dict[str, set[bool]] = defaultdict(set)
    parts: dict[str, set[str]] = defaultdict(set)
    rebuilt: Counter[str] = Counter()
    searched = [str(record["geometry"]) for record in rig.records("searched")]  # each from its own purge
    # Stamps are not measured.
    stamped = [str(record["geometry"]) for record in rig.records("read_back")]
    stamped += [discarded(record["targets"]) for record in rig.records("discarded")]
    stamped += [f"drivex{len(each['drives'])}" for each in rig.records("erased") if each["drives"][0]["read_bytes"]]
    for record in rig.records(*MEASUREMENTS):
        array = str(Geometry.parse(str(record["geometry"])).healthy)
        if record["kind"] in ("saturation", "loop"):  # each from its own purge
            built[array] += 1
        elif workload(record).pattern.partition("_reg")[1]:  # each part of the range has a fill of its own
            parts[array].add(workload(record).pattern)
        elif record["kind"] == "rebuild":  # none can follow another
            rebuilt[array] += 1
            classes[array].add(workload(record).pattern.startswith("random"))
        else:
            classes[array].add(workload(record).pattern.startswith("random"))
    conditioned = Counter({array: len(found) for array, found in classes.items()})
    for array in classes:
        further = max(0, rebuilt[array] - 1)
        built[array] += 1 + further
        conditioned[array] += further
    of_parts = Counter({array: len(found) for array, found in parts.items()})
    return built + Counter(searched) + Counter(stamped) + of_parts, conditioned + Counter(searched) + of_parts


def discarded(targets: Sequence[Mapping[str, object]]) -> str:
    """The geometry of a record ``discarded``."""
    name = str(targets[0]["name"])
    return name if name.startswith("raid") else f"drivex{len(targets)}"


def workload(record: Mapping[str, object]) -> Workload:
    return from_plain(Workload, record["asked"])


def done(rig: Inner, kind: str) -> Counter[str]:
    return Counter(str(record["geometry"]) for record in rig.records(kind))


def require_sound(rig: Inner, result: pytest.RunResult) -> None:
    """Of all suites only what must fail or be an error is, all kinds are measured, and nothing twice."""
    # From the purged state the simulated drives are twice as fast, which the lab's never are.
    failed = [line for line in result.outlines if line.startswith("FAILED")]
    assert {line.split("::")[1].split("[")[0] for line in failed} == {"test_fresh_over_settled_iops"}
    assert outcomes(rig)["error"] == 0
    names = ("kind", "geometry", "workload", "loop")
    measured = [tuple(record.get(name) for name in names) for record in rig.records(*MEASUREMENTS)]
    assert len(measured) == len(set(measured))
    assert {kind for kind, *_ in measured} == set(MEASUREMENTS)
    assert (done(rig, "array_created"), done(rig, "conditioned")) == least(rig)


def require_lawless(rig: Inner) -> None:
    """Require that mixes whose I/Os exceed a chunk are skipped where no law says what they cost."""
    # Chunks are of 64 KiB here, and of 256 in the paper's protocol: at four depths three mixes with writes have no law
    # on parity, and four beside a pair, which has no stripes; slope and deviation of each. The seven mixes of Tom's
    # Hardware on RAID 0 of six have no figure of their depth, either.
    lawless = {each.get("name", "") for each in cases(rig) if "chunks of 128 KiB or more" in message(each)}
    sweeps = re.compile(r"(_grow_with_every_\w+|_short_of_the_line)\[raid(5|10)-rand\w+_128k_")
    of_sweeps = set(filter(sweeps.search, lawless))
    assert len(of_sweeps) == (3 + 4) * 4 * 2
    assert {each.partition("-rand")[0] for each in lawless - of_sweeps} == {"test_steady_iops[raid0x6"}
    assert len(lawless - of_sweeps) == 7


def test_one_of_each_on_four_drives(rig: Inner) -> None:
    rig.pytester.makeconftest(FEW)
    # Nothing here reads the page.
    require_sound(rig, run(rig, "-o", "ssd_page=false", drives=4))
    assert outcomes(rig)["passed"] > 250
    assert len(rig.records(*MEASUREMENTS)) > 150


@pytest.mark.nightly
def test_all_of_it(rig: Inner) -> None:
    result = run(rig)
    require_sound(rig, result)
    require_lawless(rig)
    found = outcomes(rig)
    assert found["passed"] > 2000
    assert len(rig.records(*MEASUREMENTS)) > 1500

    skipped = Counter(reason(each) for each in cases(rig) if each.find("skipped") is not None)
    # Bare drives are not measured here.
    of_members = sum(count for why, count in skipped.items() if "cannot be predicted" in why)
    assert of_members > 300
    # What the emulated drive's sheet does not publish has no test in suites/datasheet.
    of_sheet = sum(count for why, count in skipped.items() if "publishes no" in why)
    assert 0 < of_sheet < 8
    # No command cuts the power of the drives.
    of_power = sum(count for why, count in skipped.items() if "--ssd-power-off" in why)
    assert of_power == 1
    others = of_members + of_sheet + of_power
    too_few = sum(count for why, count in skipped.items() if "24 drives" in why)
    assert skipped["measured"] + too_few + others == found["skipped"]
