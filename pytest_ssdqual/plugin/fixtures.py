"""What a suite's tests ask for: ``station → array → steady → run`` and its kin, and ``sla``. Wiring only.

Everything that can go wrong with the rig goes wrong in here, so that pytest itself reports it as an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin.stash import EVIDENCE, QUALIFICATION

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.judging.lot import Lot
    from pytest_ssdqual.plugin.judging.sla import Sla
    from pytest_ssdqual.plugin.plan.marks import ArrayFamily
    from pytest_ssdqual.plugin.searches.explore import Explore
    from pytest_ssdqual.qual.integrity.result import Survival
    from pytest_ssdqual.qual.measured.rebuild import Intact, Rebuild
    from pytest_ssdqual.qual.measured.run import Measured
    from pytest_ssdqual.qual.measured.saturation import Saturation
    from pytest_ssdqual.qual.raid.geometry import Geometry
    from pytest_ssdqual.qual.stats.steady_state import SteadyState
    from pytest_ssdqual.qual.workload.rounds import Loop, LoopResult
    from pytest_ssdqual.qual.workload.workload import Workload
    from pytest_ssdqual.qual.workload.workload_set import Series
    from pytest_ssdqual.rig.md.mdadm import Array
    from pytest_ssdqual.rig.measure.station import Station


@pytest.fixture
def geometry() -> Geometry:
    """The array's shape (``level``, ``width``, ``missing`` members), one test each; given by the mark ``array``."""
    raise pytest.UsageError("the fixture geometry needs the mark array(level)")


@pytest.fixture
def family() -> ArrayFamily:
    """All widths of a level, for a test that compares them (``sweep``); given by the mark ``array``."""
    raise pytest.UsageError("the fixture family needs the mark array(level)")


@pytest.fixture
def workload() -> Workload:
    """What to measure, one test each; given by the mark ``workload``."""
    raise pytest.UsageError("the fixture workload needs the marks array(level) and workload(*workloads)")


@pytest.fixture
def series() -> Series:
    """Workloads to compare with each other, one test for each series; given by the mark ``series``."""
    raise pytest.UsageError("the fixture series needs the marks array(level) and series(*series)")


@pytest.fixture
def loop() -> Loop | None:
    """Rounds of many workloads; given by the mark ``loop``, None without it."""
    return None


@pytest.fixture(scope="session")
def station(pytestconfig: pytest.Config) -> Iterator[Station]:
    """The machine under test with its drives leased to this run; what all other fixtures are built on."""
    from pytest_ssdqual.plugin.watch import observers

    run, plugins = pytestconfig.stash[QUALIFICATION], pytestconfig.pluginmanager
    # The second one on xdist's workers.
    take = next(found for name in ("narrator", "teller") if (found := plugins.get_plugin(f"ssdqual-{name}"))).take
    watch = partial(observers.live_of, tell=take, period_s=run.glance_s)
    with run.station(observers.begun(take), observers.looked(take), watch) as station:
        yield station


@pytest.fixture
def array(station: Station, geometry: Geometry) -> Array:
    """The array of this test, built and filled.

    Needs the mark ``array``. It has ``geometry``, ``members``, ``size_bytes``, ``path`` and ``uuid``; to be looked at,
    not to be written to.
    """
    return station.array(geometry)


@pytest.fixture
def steady(station: Station, geometry: Geometry, workload: Workload) -> SteadyState | None:
    """How the array settled when it was conditioned for this class of workload.

    Needs the marks ``array`` and ``workload``. None if the protocol does not condition.
    """
    return station.steady(geometry, workload)


@pytest.fixture
def run(station: Station, geometry: Geometry, workload: Workload, loop: Loop | None) -> Measured:
    """The workload measured on the array, all repeats; measured once however many tests ask for it.

    Needs the marks ``array`` and ``workload``. With the mark ``loop`` it is one cell of the loop. To be given to
    ``sla.judge``; of its own it has ``iops``, ``latency`` and ``runs``.
    """
    from pytest_ssdqual.plugin.judging import measure

    return measure.one(station, geometry, workload, loop)


@pytest.fixture
def runs(station: Station, geometry: Geometry, series: Series, loop: Loop | None) -> tuple[Measured, ...]:
    """All workloads of the series measured on the array, in the order of the series.

    Needs the marks ``array`` and ``series``.
    """
    from pytest_ssdqual.plugin.judging import measure

    return measure.several(station, geometry, series, loop)


@pytest.fixture
def sweep(station: Station, family: ArrayFamily, workload: Workload) -> tuple[Measured, ...]:
    """The workload measured on every width of the level, narrowest first.

    Needs the marks ``array`` and ``workload``. What ``run`` has measured is not measured again.
    """
    return station.sweep(family.geometries, workload)


@pytest.fixture
def saturation(station: Station, geometry: Geometry, workload: Workload) -> Saturation:
    """Writes from the purged state on, until settled or until the protocol's volume or time is used up.

    Needs the marks ``array`` and ``workload``, whose workload only writes. Its ``points`` are the curve.
    """
    return station.saturate(geometry, workload)


@pytest.fixture
def loop_result(station: Station, geometry: Geometry, loop: Loop | None) -> LoopResult:
    """All rounds of the loop on the array, from its own purge and fill on.

    Needs the marks ``array`` and ``loop``. ``reached`` says whether it became steady, ``measured(workload)`` gives a
    cell.
    """
    if loop is None:
        raise pytest.UsageError("the fixture loop_result needs the marks array(level) and loop(*loops)")
    return station.loop(geometry, loop)


@pytest.fixture
def rebuild(station: Station, geometry: Geometry, workload: Workload) -> Rebuild:
    """A degraded array given its members back while the workload runs.

    Needs the marks ``array(level, failed=1)`` and ``workload``. ``foreground`` is the workload meanwhile, ``intact``
    whether the data survived; a test of a rebuild can ask for no other measurement.
    """
    return station.rebuild(geometry, workload)


@pytest.fixture
def intact(request: pytest.FixtureRequest, rebuild: Rebuild) -> Intact:
    """Whether the data survived the rebuild: true if all of them read back as they were written: ``assert intact``.

    What ``rebuild`` needs.
    """
    from pytest_ssdqual.report.view.integrity import of_rebuild

    run = request.config.stash[QUALIFICATION]
    evidence = of_rebuild(rebuild, protocol=run.protocol.name, acceptance=run.acceptance)
    request.node.stash.setdefault(EVIDENCE, []).append(evidence)
    return rebuild.intact


@pytest.fixture
def lot(request: pytest.FixtureRequest, sla: Sla) -> Lot:
    """Judges the lot that the drives were drawn from, by the plan of the spec: ``lot.judge(run)``.

    The mark ``promise`` says by what. The plan is the spec's table ``[lot]``; without one the test is skipped.
    """
    from pytest_ssdqual.plugin.judging.lot import Lot

    plan = request.config.stash[QUALIFICATION].spec.lot
    if plan is None:
        raise pytest.UsageError("without a plan in the spec a test of a lot is skipped")
    return Lot(plan, sla)


@pytest.fixture
def explore(pytestconfig: pytest.Config, station: Station, geometry: Geometry, workload: Workload, sla: Sla) -> Explore:
    """Searches the workloads around a plain one for one that breaks a promise: ``verdict = explore.judge()``.

    Needs the marks ``array`` and ``workload``, whose workload is the plain one.
    """
    from pytest_ssdqual.plugin.searches.explore import Explore

    return Explore(pytestconfig.stash[QUALIFICATION], station, geometry, workload, sla)


@pytest.fixture
def integrity(request: pytest.FixtureRequest, station: Station, geometry: Geometry) -> Survival:
    """The array lives through histories of failures; false if it lost data that it had acknowledged.

    Needs the mark ``array``; the test is ``assert integrity``.
    """
    from pytest_ssdqual.plugin.searches.integrity import survive

    found, evidence = survive(request, station, geometry)
    request.node.stash.setdefault(EVIDENCE, []).append(evidence)
    return found


@pytest.fixture
def sla(request: pytest.FixtureRequest) -> Sla:
    """Judges what was measured by the promises of the spec: ``verdict = sla.judge(run)``.

    The mark ``promise`` says what is judged.
    """
    from pytest_ssdqual.plugin.judging import measure
    from pytest_ssdqual.plugin.judging.sla import Sla
    from pytest_ssdqual.plugin.plan import marks

    qualification = request.config.stash[QUALIFICATION]
    return Sla(
        qualification.spec,
        qualification.settings.inconclusive,
        measure.circumstances(request, qualification),
        request.node.stash.setdefault(EVIDENCE, []).append,
        lambda geometry, workload: measure.reference(request, geometry, workload),
        qualification.baseline,
        marks.promised(request.node),
    )
