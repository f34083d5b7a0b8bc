"""Fixtures of hardware tests: ``ssd_run`` and its kin measure, ``ssd_sla`` judges. Wiring only.

Every pytest of the environment has them, so each is called ``ssd_…``, and ``_ssd_…`` if no suite needs it.

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
def ssd_geometry() -> Geometry:
    """The array's shape (``level``, ``width``, ``missing`` members), one test each; given by the mark ``ssd_array``."""
    raise pytest.UsageError("the fixture ssd_geometry needs the mark ssd_array(level)")


@pytest.fixture
def ssd_workload() -> Workload:
    """The workload to measure, one test each; given by the mark ``ssd_workload``."""
    raise pytest.UsageError("the fixture ssd_workload needs the marks ssd_array(level) and ssd_workload(*workloads)")


@pytest.fixture
def ssd_workload_set() -> Series:
    """Workloads to compare with each other, one test for each set; given by the mark ``ssd_workload_set``."""
    raise pytest.UsageError("the fixture ssd_workload_set needs the marks ssd_array(level) and ssd_workload_set(*sets)")


@pytest.fixture
def _ssd_widths() -> ArrayFamily:
    """All widths of a level, which ``ssd_sweep`` measures; given by the mark ``ssd_array``."""
    raise pytest.UsageError("the fixture ssd_sweep needs the mark ssd_array(level)")


@pytest.fixture
def _ssd_rounds_definition() -> Loop | None:
    """Rounds of many workloads; given by the mark ``ssd_rounds``, None without it."""
    return None


@pytest.fixture(scope="session")
def _ssd_station(pytestconfig: pytest.Config) -> Iterator[Station]:
    """The machine under test with its drives leased to this run; what all other fixtures are built on."""
    from pytest_ssdqual.plugin.watch import observers

    run, plugins = pytestconfig.stash[QUALIFICATION], pytestconfig.pluginmanager
    # The second one on xdist's workers.
    take = next(found for name in ("narrator", "teller") if (found := plugins.get_plugin(f"ssdqual-{name}"))).take
    watch = partial(observers.live_of, tell=take, period_s=run.glance_s)
    with run.station(observers.begun(take), observers.looked(take), watch) as station:
        yield station


@pytest.fixture
def ssd_array(_ssd_station: Station, ssd_geometry: Geometry) -> Array:
    """The array of this test, built and filled.

    Needs the mark ``ssd_array``. It has ``geometry``, ``members``, ``size_bytes``, ``path`` and ``uuid``; to be read,
    not to be written to.
    """
    return _ssd_station.array(ssd_geometry)


@pytest.fixture
def ssd_steady(_ssd_station: Station, ssd_geometry: Geometry, ssd_workload: Workload) -> SteadyState | None:
    """How the array settled when it was conditioned for this class of workload.

    Needs the marks ``ssd_array`` and ``ssd_workload``. None if the protocol does not condition.
    """
    return _ssd_station.steady(ssd_geometry, ssd_workload)


@pytest.fixture
def ssd_run(
    _ssd_station: Station, ssd_geometry: Geometry, ssd_workload: Workload, _ssd_rounds_definition: Loop | None
) -> Measured:
    """The workload measured on the array, all repeats; measured once however many tests ask for it.

    Needs the marks ``ssd_array`` and ``ssd_workload``. With the mark ``ssd_rounds`` it is one cell of the rounds. To be
    given to ``ssd_sla.judge``; of its own it has ``iops``, ``latency`` and ``runs``.
    """
    from pytest_ssdqual.plugin.judging import measure

    return measure.one(_ssd_station, ssd_geometry, ssd_workload, _ssd_rounds_definition)


@pytest.fixture
def ssd_runs(
    _ssd_station: Station, ssd_geometry: Geometry, ssd_workload_set: Series, _ssd_rounds_definition: Loop | None
) -> tuple[Measured, ...]:
    """All workloads of the set measured on the array, in the order of the set.

    Needs the marks ``ssd_array`` and ``ssd_workload_set``.
    """
    from pytest_ssdqual.plugin.judging import measure

    return measure.several(_ssd_station, ssd_geometry, ssd_workload_set, _ssd_rounds_definition)


@pytest.fixture
def ssd_sweep(_ssd_station: Station, _ssd_widths: ArrayFamily, ssd_workload: Workload) -> tuple[Measured, ...]:
    """The workload measured on every width of the level, narrowest first.

    Needs the marks ``ssd_array`` and ``ssd_workload``. What ``ssd_run`` has measured is not measured again.
    """
    return _ssd_station.sweep(_ssd_widths.geometries, ssd_workload)


@pytest.fixture
def ssd_saturation(_ssd_station: Station, ssd_geometry: Geometry, ssd_workload: Workload) -> Saturation:
    """Writes from the purged state on, until settled or until the protocol's volume or time is used up.

    Needs the marks ``ssd_array`` and ``ssd_workload``, whose workload only writes. Its ``points`` are the curve.
    """
    return _ssd_station.saturate(ssd_geometry, ssd_workload)


@pytest.fixture
def ssd_rounds(_ssd_station: Station, ssd_geometry: Geometry, _ssd_rounds_definition: Loop | None) -> LoopResult:
    """All rounds of many workloads on the array, from its own purge and fill on.

    Needs the marks ``ssd_array`` and ``ssd_rounds``. True if they became steady; ``measured(workload)`` gives a cell.
    """
    if _ssd_rounds_definition is None:
        raise pytest.UsageError("the fixture ssd_rounds needs the marks ssd_array(level) and ssd_rounds(*rounds)")
    return _ssd_station.loop(ssd_geometry, _ssd_rounds_definition)


@pytest.fixture
def ssd_rebuild(_ssd_station: Station, ssd_geometry: Geometry, ssd_workload: Workload) -> Rebuild:
    """A degraded array given its members back while the workload runs.

    Needs the marks ``ssd_array(level, failed=1)`` and ``ssd_workload``. ``foreground`` is the workload meanwhile,
    ``intact`` whether the data survived; a test of a rebuild can ask for no other measurement.
    """
    return _ssd_station.rebuild(ssd_geometry, ssd_workload)


@pytest.fixture
def ssd_intact(request: pytest.FixtureRequest, ssd_rebuild: Rebuild) -> Intact:
    """Whether the data survived the rebuild: true if all of them read back as they were written: ``assert ssd_intact``.

    What ``ssd_rebuild`` needs.
    """
    from pytest_ssdqual.report.view.integrity import of_rebuild

    run = request.config.stash[QUALIFICATION]
    evidence = of_rebuild(ssd_rebuild, protocol=run.protocol.name, acceptance=run.acceptance)
    request.node.stash.setdefault(EVIDENCE, []).append(evidence)
    return ssd_rebuild.intact


@pytest.fixture
def ssd_lot(request: pytest.FixtureRequest, ssd_sla: Sla) -> Lot:
    """Judges the lot that the drives were drawn from, by the plan of the spec: ``ssd_lot.judge(ssd_run)``.

    The mark ``ssd_promise`` says by what. The plan is the spec's table ``[lot]``; without one the test is skipped.
    """
    from pytest_ssdqual.plugin.judging.lot import Lot

    plan = request.config.stash[QUALIFICATION].spec.lot
    if plan is None:
        raise pytest.UsageError("without a plan in the spec a test of a lot is skipped")
    return Lot(plan, ssd_sla)


@pytest.fixture
def ssd_explore(
    pytestconfig: pytest.Config, _ssd_station: Station, ssd_geometry: Geometry, ssd_workload: Workload, ssd_sla: Sla
) -> Explore:
    """Searches the workloads around a plain one for one that breaks a promise: ``verdict = ssd_explore.judge()``.

    Needs the marks ``ssd_array`` and ``ssd_workload``, whose workload is the plain one.
    """
    from pytest_ssdqual.plugin.searches.explore import Explore

    return Explore(pytestconfig.stash[QUALIFICATION], _ssd_station, ssd_geometry, ssd_workload, ssd_sla)


@pytest.fixture
def ssd_integrity(request: pytest.FixtureRequest, _ssd_station: Station, ssd_geometry: Geometry) -> Survival:
    """The array lives through histories of failures; false if it lost data that it had acknowledged.

    Needs the mark ``ssd_array``; the test is ``assert ssd_integrity``.
    """
    from pytest_ssdqual.plugin.searches.integrity import survive

    found, evidence = survive(request, _ssd_station, ssd_geometry)
    request.node.stash.setdefault(EVIDENCE, []).append(evidence)
    return found


@pytest.fixture
def ssd_sla(request: pytest.FixtureRequest) -> Sla:
    """Judges what was measured by the promises of the spec: ``verdict = ssd_sla.judge(ssd_run)``.

    The mark ``ssd_promise`` says what is judged.
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
