"""Fixtures of hardware tests: ``ssd_run`` and others measure, ``ssd_sla`` judges. They only connect other modules.

Every pytest run of the environment has these fixtures, so their names begin with ``ssd_``, or ``_ssd_`` for private
ones. Errors of the rig are raised in fixtures, so that pytest reports them as errors and not as failures.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ssdqual.plugin.stash import RUN, keep_evidence

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.judging.health import DrivesHealth
    from pytest_ssdqual.plugin.judging.inspection import InspectedBay, Inspection
    from pytest_ssdqual.plugin.judging.lot import Lot
    from pytest_ssdqual.plugin.judging.sla import Sla
    from pytest_ssdqual.plugin.plan.marks import ArrayFamily
    from pytest_ssdqual.plugin.searches.explore import Explore
    from pytest_ssdqual.qual.integrity.read_back import ReadBack
    from pytest_ssdqual.qual.integrity.reference_model import Survival
    from pytest_ssdqual.qual.measured.rebuild import Intact, Rebuild
    from pytest_ssdqual.qual.measured.run import Measured
    from pytest_ssdqual.qual.measured.saturation import Saturation
    from pytest_ssdqual.qual.measured.sweep import Curve, Sweep
    from pytest_ssdqual.qual.raid.geometry import Geometry
    from pytest_ssdqual.qual.stats.steady_state import SteadyState
    from pytest_ssdqual.qual.workload.rounds import Rounds, RoundsResult
    from pytest_ssdqual.qual.workload.workload import Workload
    from pytest_ssdqual.qual.workload.workload_set import WorkloadSet
    from pytest_ssdqual.rig.campaign.campaign import Campaign
    from pytest_ssdqual.rig.md.mdadm import Array


@pytest.fixture
def ssd_geometry() -> Geometry:
    """The array's shape (``level``, ``width``, ``missing`` members), one test each; given by the mark ``ssd_array``."""
    raise pytest.UsageError("the fixture ssd_geometry needs the mark ssd_array(level)")


@pytest.fixture
def ssd_workload() -> Workload:
    """The workload to measure, one test each; given by the mark ``ssd_workload``."""
    raise pytest.UsageError("the fixture ssd_workload needs the marks ssd_array(level) and ssd_workload(*workloads)")


@pytest.fixture
def ssd_workload_set() -> WorkloadSet:
    """Workloads to compare with each other, one test for each set; given by the mark ``ssd_workload_set``."""
    raise pytest.UsageError("the fixture ssd_workload_set needs the marks ssd_array(level) and ssd_workload_set(*sets)")


@pytest.fixture
def _ssd_widths() -> ArrayFamily:
    """All widths of a level, which ``ssd_sweep`` measures; given by the mark ``ssd_array``."""
    raise pytest.UsageError("the fixture ssd_sweep needs the mark ssd_array(level)")


@pytest.fixture
def _ssd_rounds_definition() -> Rounds | None:
    """Rounds of many workloads; given by the mark ``ssd_rounds``, None without it."""
    return None


@pytest.fixture(scope="session")
def _ssd_campaign(pytestconfig: pytest.Config) -> Iterator[Campaign]:
    """The machine under test with its drives leased to this run; all other fixtures use it."""
    plugins = pytestconfig.pluginmanager
    # The latter on xdist's workers.
    observer: Any = plugins.get_plugin("ssdqual-controller") or plugins.get_plugin("ssdqual-worker-events")
    with pytestconfig.stash[RUN].campaign(observer.take) as campaign:
        yield campaign


@pytest.fixture(scope="session")
def _ssd_inspected(pytestconfig: pytest.Config) -> InspectedBay:
    """What all drives report, read once and without a lease."""
    from pytest_ssdqual.plugin.judging.inspection import inspect

    return inspect(pytestconfig.stash[RUN])


@pytest.fixture
def ssd_inspection(request: pytest.FixtureRequest, _ssd_inspected: InspectedBay) -> Inspection:
    """Judges what the drives report about themselves: ``verdict = ssd_inspection.judge("power_on_hours")``.

    Needs the mark ``ssd_array("drive")``. It only reads: neither consent nor a lease is needed (``--ssd-read-only``).
    """
    from pytest_ssdqual.plugin.judging.inspection import Inspection

    return Inspection(request.config.stash[RUN].qualification, _ssd_inspected, partial(keep_evidence, request.node))


@pytest.fixture
def ssd_array(_ssd_campaign: Campaign, ssd_geometry: Geometry) -> Array:
    """The array of this test, built and filled.

    Needs the mark ``ssd_array``. It has ``geometry``, ``members``, ``size_bytes``, ``path`` and ``uuid``; to be read,
    not to be written to.
    """
    return _ssd_campaign.array(ssd_geometry)


@pytest.fixture
def ssd_steady(_ssd_campaign: Campaign, ssd_geometry: Geometry, ssd_workload: Workload) -> SteadyState | None:
    """The steady-state detection of the array's conditioning for this class of workload.

    Needs the marks ``ssd_array`` and ``ssd_workload``. None if the protocol does not condition.
    """
    return _ssd_campaign.steady(ssd_geometry, ssd_workload)


@pytest.fixture
def ssd_run(
    _ssd_campaign: Campaign,
    ssd_geometry: Geometry,
    ssd_workload: Workload,
    _ssd_rounds_definition: Rounds | None,
) -> Measured:
    """The workload measured on the array, with all repeats; measured once for all tests.

    Needs the marks ``ssd_array`` and ``ssd_workload``. With the mark ``ssd_rounds`` it is one cell of the rounds. Pass
        it to ``ssd_sla.judge``; its attributes are ``iops``, ``latency`` and ``runs``.
    """
    if _ssd_rounds_definition:
        return _ssd_campaign.cell(ssd_geometry, _ssd_rounds_definition, ssd_workload)
    return _ssd_campaign.measure(ssd_geometry, ssd_workload)


@pytest.fixture
def ssd_runs(
    _ssd_campaign: Campaign,
    ssd_geometry: Geometry,
    ssd_workload_set: WorkloadSet,
    _ssd_rounds_definition: Rounds | None,
) -> Curve:
    """All workloads of the set measured on the array, in the order of the set.

    Needs the marks ``ssd_array`` and ``ssd_workload_set``.
    """
    from pytest_ssdqual.qual.measured.sweep import Curve

    if rounds := _ssd_rounds_definition:
        return Curve(tuple(_ssd_campaign.cell(ssd_geometry, rounds, each) for each in ssd_workload_set.workloads))
    return Curve(tuple(_ssd_campaign.measure(ssd_geometry, each) for each in ssd_workload_set.workloads))


@pytest.fixture
def ssd_sweep(_ssd_campaign: Campaign, _ssd_widths: ArrayFamily, ssd_workload: Workload) -> Sweep:
    """The workload measured on every width of the mark ``ssd_array``, narrowest first.

    Needs the marks ``ssd_array`` and ``ssd_workload``. It uses results of ``ssd_run``.
    """
    from pytest_ssdqual.qual.measured.sweep import Sweep

    return Sweep(_ssd_campaign.sweep(_ssd_widths.geometries, ssd_workload))


@pytest.fixture
def ssd_saturation(_ssd_campaign: Campaign, ssd_geometry: Geometry, ssd_workload: Workload) -> Saturation:
    """Writes from the purged state on, until steady state or until the protocol's volume or time limit.

    Needs the marks ``ssd_array`` and ``ssd_workload``, whose workload writes. ``points`` is the curve. Claims about
        latency are judged on the last 20 minutes of the steady state.
    """
    return _ssd_campaign.saturate(ssd_geometry, ssd_workload)


@pytest.fixture
def ssd_rounds(_ssd_campaign: Campaign, ssd_geometry: Geometry, _ssd_rounds_definition: Rounds | None) -> RoundsResult:
    """All rounds of many workloads on the array, after a purge and fill of their own.

    Needs the marks ``ssd_array`` and ``ssd_rounds``. True if they became steady; ``measured(workload)`` gives a cell.
    """
    if _ssd_rounds_definition is None:
        raise pytest.UsageError("the fixture ssd_rounds needs the marks ssd_array(level) and ssd_rounds(*rounds)")
    return _ssd_campaign.loop(ssd_geometry, _ssd_rounds_definition)


@pytest.fixture
def ssd_rebuild(_ssd_campaign: Campaign, ssd_geometry: Geometry, ssd_workload: Workload) -> Rebuild:
    """The rebuild of a degraded array while the workload runs.

    Needs the marks ``ssd_array(level, failed=1)`` and ``ssd_workload``. ``foreground`` is the measurement of
        the workload, ``intact`` the comparison of the data; a test of a rebuild can have no other measurement.
    """
    return _ssd_campaign.rebuild(ssd_geometry, ssd_workload)


@pytest.fixture
def ssd_intact(request: pytest.FixtureRequest, ssd_rebuild: Rebuild) -> Intact:
    """The comparison of all data after the rebuild; true if they are as written: ``assert ssd_intact``.

    Needs the marks of ``ssd_rebuild``.
    """
    from pytest_ssdqual.report.evidence.integrity import of_rebuild

    keep_evidence(request.node, of_rebuild(ssd_rebuild))
    return ssd_rebuild.intact


@pytest.fixture
def ssd_lot(request: pytest.FixtureRequest, ssd_sla: Sla) -> Lot:
    """Judges the lot that the drives were drawn from, by the plan of the spec: ``ssd_lot.judge(ssd_run)``.

    The mark ``ssd_promise`` names the claim. The plan is the spec's table ``[lot]``; without it the run does not begin.
    """
    from pytest_ssdqual.plugin.judging.lot import Lot

    plan = request.config.stash[RUN].qualification.spec.lot
    if plan is None:
        raise pytest.UsageError("the spec has no plan for lots; write it into its table [lot]")
    return Lot(plan, ssd_sla)


@pytest.fixture
def ssd_explore(
    pytestconfig: pytest.Config, _ssd_campaign: Campaign, ssd_geometry: Geometry, ssd_workload: Workload, ssd_sla: Sla
) -> Explore:
    """Searches the workloads near a plain one for one that breaks a promise: ``verdict = ssd_explore.judge()``.

    Needs the marks ``ssd_array`` and ``ssd_workload``, whose workload is the plain one.
    """
    from pytest_ssdqual.plugin.searches.explore import Explore

    return Explore(pytestconfig.stash[RUN], _ssd_campaign, ssd_geometry, ssd_workload, ssd_sla)


@pytest.fixture
def ssd_integrity(request: pytest.FixtureRequest, _ssd_campaign: Campaign, ssd_geometry: Geometry) -> Survival:
    """The integrity test of the array with histories of failures; false if it lost acknowledged data.

    Needs the mark ``ssd_array``; the test is ``assert ssd_integrity``.
    """
    from pytest_ssdqual.plugin.searches.integrity import survive

    found, evidence = survive(request, _ssd_campaign, ssd_geometry)
    keep_evidence(request.node, evidence)
    return found


@pytest.fixture
def ssd_power_cuts(request: pytest.FixtureRequest, _ssd_campaign: Campaign, ssd_geometry: Geometry) -> DrivesHealth:
    """Power cuts of all drives side by side under stamped writes; false if a drive lost data, or did not come back.

    Needs the mark ``ssd_array("drive")``, and ``--ssd-power-off`` and ``--ssd-power-on``, without which the test is
    skipped; the test is ``assert ssd_power_cuts``. The protocol's ``integrity.power_cuts`` is the number of cuts.
    """
    from pytest_ssdqual.plugin.judging import read_back

    return read_back.after_power_cuts(request, _ssd_campaign, ssd_geometry)


@pytest.fixture
def ssd_read_back(request: pytest.FixtureRequest, _ssd_campaign: Campaign, ssd_geometry: Geometry) -> ReadBack:
    """All data of the drives, read after their fill and compared; false if a drive returned something else.

    Needs the mark ``ssd_array("drive")``; the test is ``assert ssd_read_back``.
    """
    from pytest_ssdqual.plugin.judging import read_back

    return read_back.judge(request, _ssd_campaign, ssd_geometry)


@pytest.fixture
def ssd_discard(request: pytest.FixtureRequest, _ssd_campaign: Campaign, ssd_geometry: Geometry) -> DrivesHealth:
    """What ranges return that were discarded; false if a drive breaks its promise about them (DLFEAT, RZAT, LBPRZ).

    Needs the mark ``ssd_array``, also with arrays; the test is ``assert ssd_discard``.
    """
    from pytest_ssdqual.plugin.judging import read_back

    return read_back.judge_erased(request, _ssd_campaign, ssd_geometry)


@pytest.fixture
def ssd_erasure(request: pytest.FixtureRequest, _ssd_campaign: Campaign, ssd_geometry: Geometry) -> DrivesHealth:
    """All blocks of drives, read after they were filled and purged; false if a purge left data.

    Needs the mark ``ssd_array("drive")``; the test is ``assert ssd_erasure``.
    """
    from pytest_ssdqual.plugin.judging import read_back

    return read_back.judge_erased(request, _ssd_campaign, ssd_geometry)


@pytest.fixture
def ssd_health(request: pytest.FixtureRequest, _ssd_campaign: Campaign) -> DrivesHealth:
    """The health of all drives of the run; false if one failed, was not healthy when the run began, or got worse.

    Needs the mark ``ssd_array("drive")``; the test is ``assert ssd_health``. It measures nothing, and runs last.
    """
    from pytest_ssdqual.plugin.judging import health

    return health.judge(request, _ssd_campaign)


@pytest.fixture
def ssd_self_test(request: pytest.FixtureRequest, _ssd_campaign: Campaign) -> DrivesHealth:
    """The self-tests of all drives, side by side; false if one failed.

    Needs the mark ``ssd_array("drive")``; the test is ``assert ssd_self_test``. It runs short ones before the fill;
    ``@pytest.mark.parametrize("ssd_self_test", ["first", "last"], indirect=True)`` adds them after all other tests,
    and with ``extended`` in the place of ``last`` the extended ones.
    """
    from pytest_ssdqual.plugin.judging import health

    return health.self_test_of(request, _ssd_campaign)


@pytest.fixture
def ssd_sla(request: pytest.FixtureRequest) -> Sla:
    """Judges measurements by the promises of the spec: ``verdict = ssd_sla.judge(ssd_run)``.

    The mark ``ssd_promise`` names the claims.
    """
    from pytest_ssdqual.plugin.judging.sla import Sla

    return Sla.of(request)
