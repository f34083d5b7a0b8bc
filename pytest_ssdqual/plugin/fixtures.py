"""What a suite's tests ask for: ``station → array → steady → run`` or ``sweep``, and ``sla``. Wiring only.

Everything that can go wrong with the rig goes wrong in here, so that pytest itself reports it as an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin.stash import EVIDENCE, QUALIFICATION

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.judge import Sla
    from pytest_ssdqual.plugin.marks import Family
    from pytest_ssdqual.qual.geometry import Geometry
    from pytest_ssdqual.qual.measurement import Measured
    from pytest_ssdqual.qual.steady import SteadyState
    from pytest_ssdqual.qual.verdict import Verdict
    from pytest_ssdqual.qual.workload import Workload
    from pytest_ssdqual.rig.md import Array
    from pytest_ssdqual.rig.station import Station


@pytest.fixture
def geometry() -> Geometry:
    """The array's shape; given by the mark ``array``."""
    raise pytest.UsageError("the fixture geometry needs the mark array(level)")


@pytest.fixture
def family() -> Family:
    """All widths of a level; given by the mark ``array``."""
    raise pytest.UsageError("the fixture family needs the mark array(level)")


@pytest.fixture
def workload() -> Workload:
    """What to measure; given by the mark ``workload``."""
    raise pytest.UsageError("the fixture workload needs the marks array(level) and workload(*workloads)")


@pytest.fixture(scope="session")
def station(pytestconfig: pytest.Config) -> Iterator[Station]:
    """The machine under test with its drives leased to this run."""
    narrator = pytestconfig.pluginmanager.get_plugin("ssdqual-narrator")  # not in xdist's workers

    def silent(what: str, seconds: float) -> None:
        """Output of a worker goes nowhere."""

    progress = narrator.progress if narrator else silent
    with pytestconfig.stash[QUALIFICATION].station(progress) as station:
        yield station


@pytest.fixture
def array(station: Station, geometry: Geometry) -> Array:
    """The array of this test, built and filled."""
    return station.array(geometry)


@pytest.fixture
def steady(station: Station, geometry: Geometry, workload: Workload) -> SteadyState | None:
    """How the array settled when it was conditioned for this class of workload."""
    return station.steady(geometry, workload)


@pytest.fixture
def run(station: Station, geometry: Geometry, workload: Workload) -> Measured:
    """The workload measured on the array, all repeats; measured once however many tests ask for it."""
    return station.measure(geometry, workload)


@pytest.fixture
def sweep(station: Station, family: Family, workload: Workload) -> tuple[Measured, ...]:
    """The workload measured on every width of the level, narrowest first."""
    return tuple(station.measure(geometry, workload) for geometry in family.geometries)


@pytest.fixture
def sla(request: pytest.FixtureRequest) -> Sla:
    """Judges what was measured by the promises of the spec: ``verdict = sla.judge("p99_latency", run)``."""
    from pytest_ssdqual.plugin.judge import Sla
    from pytest_ssdqual.report import evidence

    qualification = request.config.stash[QUALIFICATION]
    kept = request.node.stash.setdefault(EVIDENCE, [])

    def note(verdict: Verdict, sweep: Sequence[Measured]) -> None:
        kept.append(
            evidence.of_verdict(
                verdict,
                protocol=qualification.protocol.name,
                acceptance=qualification.acceptance,
                figures=evidence.figures_of(sweep[0]) if len(sweep) == 1 else (),
                raw=[run.raw for each in sweep for run in each.runs],
            )
        )

    return Sla(qualification.spec, qualification.settings.inconclusive, note)
