"""One test of each kind that is shipped, on four simulated drives: no error, and nothing is done twice."""

from __future__ import annotations

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

DRIVES = 4
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


def run(rig: Inner, *selected: str) -> pytest.RunResult:
    # The inspection measures nothing; tests/plugin/judging/test_inspection.py runs it.
    folders = [rig.suite(name) for name in rig.suites() if name not in ("meta", "inspection")]
    everything = ("-o", "ssd_measure_unpromised=true")
    return rig.run(
        f"--ssd-devices=lab:{DRIVES}", "--import-mode=importlib", "--tb=line", *everything, *folders, *selected
    )


def cases(rig: Inner) -> list[ET.Element]:
    """Not by name: those are not unique over all suites."""
    return list(ET.parse(rig.pytester.path / "junit.xml").getroot().iter("testcase"))  # noqa: S314 (our own)


def outcomes(rig: Inner) -> Counter[str]:
    return Counter(next((each.tag for each in case if each.tag != "properties"), "passed") for case in cases(rig))


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


def test_one_of_each_on_four_drives(rig: Inner) -> None:
    rig.pytester.makeconftest(FEW)
    # Nothing here reads the page.
    require_sound(rig, run(rig, "-o", "ssd_page=false"))
    assert outcomes(rig)["passed"] > 250
    assert len(rig.records(*MEASUREMENTS)) > 150
