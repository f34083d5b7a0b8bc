"""Expands the marks of a test to its parameters: arrays, workloads, workload sets and rounds, with readable ids.

The arrays come from the mark ``ssd_array`` or from ``--ssd-arrays``. No array is dropped silently: for one that the
drives cannot form there is a skipped test whose reason has the numbers. Tests without ``ssd_array`` do not change.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

import pytest

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import choice
from pytest_ssdqual.qual.raid.geometry import FACTS, PROTOCOLS, TUNING, Geometry, RaidLevel, Tuning
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.workload.rounds import Rounds
from pytest_ssdqual.qual.workload.trace import Trace
from pytest_ssdqual.qual.workload.workload import LEAST_OF_JOB, Workload
from pytest_ssdqual.qual.workload.workload_set import WorkloadSet

if TYPE_CHECKING:
    from pytest_ssdqual.qual.spec.spec import Spec

#: ``raid5``, ``raid5x4``, ``raid5x4-s32768``, ``raid5x4-1failed``.
REQUEST = re.compile(rf"(?P<level>[a-z]+?\d*)(?:x(?P<width>\d+))?{TUNING}(?:-(?P<missing>\d+)failed)?", re.ASCII)


@frozen
class ArrayRequest:
    """A requested array; without a width it has all drives (``drive``: all of them side by side)."""

    level: RaidLevel
    width: int | None = None
    missing: int = 0
    tuning: Tuning = PROTOCOLS

    def __str__(self) -> str:
        width = "" if self.width is None else f"x{self.width}"
        return f"{self.level}{width}{self.tuning}{f'-{self.missing}failed' if self.missing else ''}"

    @classmethod
    def parse(cls, text: str) -> ArrayRequest:
        """Parse ``raid5``, ``raid5x4`` or ``raid5x4-1failed``; raise ``ValueError`` for anything else."""
        found = REQUEST.fullmatch(text)
        if not found or found["level"] not in list(RaidLevel):
            raise ValueError(f"{text!r} is not an array; write one of {', '.join(RaidLevel)}, or e.g. raid5x4")
        level, missing = RaidLevel(found["level"]), int(found["missing"] or 0)
        _require_tolerated(level, missing)
        width, tuning = int(found["width"]) if found["width"] else None, Tuning.of(found)
        Geometry(level, width or FACTS[level].usual_minimum, missing if width else 0, tuning=tuning)
        return cls(level, width, missing, tuning)


@frozen
class Widths:
    """Arrays of one level: with these widths, or with every width that the drives can form."""

    level: RaidLevel
    widths: tuple[int, ...] | None = None
    missing: int = 0
    #: Of those that the drives can form only so many: the widest, the narrowest, and some between. None: all.
    most: int | None = None
    #: Settings of md, each of which makes an array of its own.
    tunings: tuple[Tuning, ...] = (PROTOCOLS,)

    def __post_init__(self) -> None:
        _require_tolerated(self.level, self.missing)
        for tuning in self.tunings:
            Geometry(self.level, FACTS[self.level].usual_minimum, tuning=tuning)
        for width in self.widths or ():
            Geometry(self.level, width, self.missing)
        if self.most is not None and self.most < 1:
            raise ValueError(f"most is the number of widths, at least 1, not {self.most}")
        if self.most is not None and self.level is RaidLevel.DRIVE and self.widths is None:
            raise ValueError("drives side by side have no narrowest and widest array; remove most")

    def __str__(self) -> str:
        return f"{self.level}{f'-{self.missing}failed' if self.missing else ''}"


@frozen
class ArrayFamily:
    """The widths of one level that a sweep compares."""

    name: str
    geometries: tuple[Geometry, ...]

    def __str__(self) -> str:
        return self.name


@frozen
class ImpossibleArray:
    """An array that these drives cannot form: its name in test ids, and the reason."""

    name: str
    reason: str
    #: False if the array of a promise is unknown: a test of it is one that the run did not judge.
    is_inapplicable: bool = True

    def __str__(self) -> str:
        return self.name


#: Array of a test whose mark names nothing to judge: the test is not part of the run.
ABSENT = ImpossibleArray("none", "there is nothing to judge")


def present(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the tests without those whose marks name nothing to judge."""
    return [item for item in items if parameters(item).get("ssd_geometry") is not ABSENT]


def parse_list(text: str) -> tuple[ArrayRequest, ...]:
    """Parse ``drive,raid5x4,raid0`` to requests without duplicates; raise ``ValueError`` for a wrong or empty list."""
    found = tuple(dict.fromkeys(ArrayRequest.parse(part.strip()) for part in text.split(",") if part.strip()))
    if not found:
        raise ValueError("names no array; write e.g. drive,raid5x4,raid0")
    return found


#: Reason of a test that compares widths.
_ONE_WIDTH = "one width is none to compare"


def geometries(
    asked: Widths | ArrayRequest, drives: int, *, rebuilding: bool = False
) -> list[Geometry | ImpossibleArray]:
    """Return the arrays of one request, narrowest first; ``ImpossibleArray`` for those that cannot be built.

    ``rebuilding``: the arrays whose missing members are being rebuilt.
    """
    if isinstance(asked, ArrayRequest):
        found = [_one(asked, drives)]
    else:
        found = [_fitting(each, drives) for each in _wanted(asked, drives)]
        found = found or [ImpossibleArray(str(asked), _too_few(asked, drives))]
        if asked.widths is None and FACTS[asked.level].step > 1 and found and isinstance(found[0], Geometry):
            found += _left_over(asked, drives)
        if asked.most is not None:
            found = _thinned(found, asked.most)
        built = [array for array in found if isinstance(array, Geometry)]
        tuned = [replace(array, tuning=tuning) for array in built for tuning in asked.tunings]
        found = [*tuned, *(array for array in found if isinstance(array, ImpossibleArray))]
    if not rebuilding:
        return found
    return [replace(each, rebuilding=True) if isinstance(each, Geometry) else each for each in found]


def family(asked: Widths | ArrayRequest, drives: int) -> ArrayFamily | ImpossibleArray:
    """Return the widths of one request; drives side by side have widths only if the mark names them."""
    name = str(asked)
    if isinstance(asked, ArrayRequest):
        if asked.width is not None:
            array = _one(asked, drives)
            return array if isinstance(array, ImpossibleArray) else ImpossibleArray(name, _ONE_WIDTH)
        asked = Widths(asked.level, None, asked.missing, tunings=(asked.tuning,))
    if asked.level is RaidLevel.DRIVE and asked.widths is None:
        return ImpossibleArray(name, "drives side by side have no widths to compare")
    built = tuple(each for each in _wanted(asked, drives) if each.width <= drives)
    if built and len(asked.tunings) > 1:
        return ArrayFamily(name, tuple(replace(built[-1], tuning=tuning) for tuning in asked.tunings))
    if asked.most == 1:
        return ImpossibleArray(name, f"{_ONE_WIDTH}: raise most of the mark ssd_array")
    if len(built) > 1:
        return ArrayFamily(name, built if asked.most is None else tuple(_spread(sorted(built), asked.most)))
    facts = FACTS[asked.level]
    second = max(facts.usual_minimum, asked.missing + 1) + facts.step
    return ImpossibleArray(name, f"needs two widths of {asked.level} ({second} drives), {drives} given")


def _wanted(asked: Widths, drives: int) -> list[Geometry]:
    """Return the named widths, or all that are possible with this number of drives."""
    facts = FACTS[asked.level]
    if asked.widths is not None:
        return [Geometry(asked.level, width, asked.missing) for width in asked.widths]
    if asked.level is RaidLevel.DRIVE:
        return [Geometry(asked.level, drives)] if drives else []
    widths = range(facts.usual_minimum, drives + 1, facts.step)
    return [Geometry(asked.level, width, asked.missing) for width in widths if facts.may_lose(width) >= asked.missing]


def _thinned(found: Sequence[Geometry | ImpossibleArray], most: int) -> list[Geometry | ImpossibleArray]:
    """Return at most so many arrays, and the last of those that the drives cannot form."""
    built = [each for each in found if isinstance(each, Geometry)]
    impossible = [each for each in found if isinstance(each, ImpossibleArray)]
    return [*_spread(sorted(built), most), *impossible[-1:]]


def _spread(widths: Sequence[Geometry], most: int) -> list[Geometry]:
    """Return at most so many of the widths, as evenly as possible, with both ends; if one, the widest."""
    last = len(widths) - 1
    if last < most:
        return list(widths)
    if most == 1:
        return [widths[-1]]
    return [widths[round(number * last / (most - 1))] for number in range(most)]


def _one(asked: ArrayRequest, drives: int) -> Geometry | ImpossibleArray:
    facts, width = FACTS[asked.level], drives if asked.width is None else asked.width
    least = facts.usual_minimum if asked.width is None else facts.minimum
    if width < least:
        return ImpossibleArray(str(asked), f"{asked.level} needs at least {least} drives, {drives} given")
    if not facts.allows(width):
        return ImpossibleArray(str(asked), f"{asked.level} needs {facts.describe_widths()}, {drives} given")
    if facts.may_lose(width) < asked.missing:
        return ImpossibleArray(str(asked), f"{asked.level} of {width} drives may not lose {asked.missing} of them")
    return _fitting(Geometry(asked.level, width, asked.missing, tuning=asked.tuning), drives)


def _fitting(geometry: Geometry, drives: int) -> Geometry | ImpossibleArray:
    if geometry.width <= drives:
        return geometry
    return ImpossibleArray(str(geometry), f"needs {geometry.width} drives, {drives} given")


def _left_over(asked: Widths, drives: int) -> Sequence[ImpossibleArray]:
    facts = FACTS[asked.level]
    if facts.allows(drives):
        return ()
    reason = f"{asked.level} needs {facts.describe_widths()}, {drives} given"
    return (ImpossibleArray(f"{asked.level}x{drives}", reason),)


def _too_few(asked: Widths, drives: int) -> str:
    facts = FACTS[asked.level]
    first = min(asked.widths or (facts.usual_minimum,))
    least = next(width for width in range(first, 10**6, facts.step) if facts.may_lose(width) >= asked.missing)
    lost = f" to lose {asked.missing} of them" if least > first else ""
    return f"{asked.level} needs at least {least} drives{lost}, {drives} given"


def _require_tolerated(level: RaidLevel, missing: int) -> None:
    tolerates = FACTS[level].tolerates
    if missing < 0 or (tolerates is not None and missing > tolerates):
        raise ValueError(f"{level} may lose {tolerates} of its members, not {missing}")


T = TypeVar("T")

NO_DRIVES = (
    "needs drives: add --ssd-devices='/dev/sd[b-i]' (all data on them will be DESTROYED), "
    "or --ssd-devices=lab:8 to rehearse with emulated ones"
)
ARRAY = "ssd_array(level, widths=None, failed=0, most=None, settings=())"
#: Similarity (``difflib``) above which an unknown mark is taken for one of ours: ``sdd_array`` has 0.89.
LIKE = 0.8
#: Parameter of tests with the mark ``ssd_rounds``.
ROUNDS = "_ssd_rounds_definition"
#: Fixtures that a test of a rebuild cannot have: other tests measure the degraded array.
NOT_WITH_REBUILD = (
    "ssd_run",
    "ssd_runs",
    "ssd_sweep",
    "ssd_saturation",
    "ssd_rounds",
    "ssd_array",
    "ssd_steady",
)


def parametrize(
    metafunc: pytest.Metafunc,
    drives: int | None,
    instead: Sequence[ArrayRequest] = (),
    trace: Trace | None = None,
    spec: Spec | None = None,
) -> None:
    """Expand the marks of one test function for ``drives`` drives; None: the run has no drives.

    Rates in per cent are those of ``spec``; None: they stay what they are.

    Gives values to ``ssd_geometry``, ``ssd_workload``, ``ssd_workload_set`` and the two private fixtures that are
        parameters. ``instead`` replaces the default arrays of methods (``--ssd-arrays``), ``trace`` is that of the run.
    """
    mark = metafunc.definition.get_closest_marker("ssd_array")
    if mark is None:
        return
    names, nodeid = metafunc.fixturenames, metafunc.definition.nodeid
    asked = _asked(mark, nodeid, instead)
    if drives is None:
        return
    published(metafunc.definition)
    if "ssd_rebuild" in names and (both := [each for each in NOT_WITH_REBUILD if each in names]):
        raise pytest.UsageError(
            f"{nodeid}: a test with the fixture ssd_rebuild cannot have {both[0]}; use ssd_rebuild.foreground"
        )
    _parametrize_arrays(metafunc, asked, drives)
    _parametrize_workloads(metafunc, trace, spec)


def _parametrize_arrays(metafunc: pytest.Metafunc, asked: Sequence[Widths | ArrayRequest], drives: int) -> None:
    names = metafunc.fixturenames
    if "_ssd_widths" in names:
        _parametrize(metafunc, "_ssd_widths", [family(request, drives) for request in asked])
    elif "ssd_geometry" in names:
        arrays = [
            array for request in asked for array in geometries(request, drives, rebuilding="ssd_rebuild" in names)
        ]
        of_drives = [name for name in ("ssd_read_back", "ssd_erasure", "ssd_power_cuts") if name in names]
        if of_drives and not all(isinstance(array, ImpossibleArray) or array.is_side_by_side for array in arrays):
            raise pytest.UsageError(
                f'{metafunc.definition.nodeid}: the fixture {of_drives[0]} needs the mark ssd_array("drive")'
            )
        _parametrize(metafunc, "ssd_geometry", arrays)


def _parametrize_workloads(metafunc: pytest.Metafunc, trace: Trace | None, spec: Spec | None) -> None:
    names = metafunc.fixturenames
    if "ssd_workload_set" in names:
        sets = _values(metafunc.definition, "ssd_workload_set(*sets)", WorkloadSet)
        _parametrize(metafunc, "ssd_workload_set", sets)
    loops = _given(metafunc.definition, "ssd_rounds", Rounds)
    if ROUNDS in names and loops and "ssd_workload" in names:
        cells = [(loop, cell) for loop in loops for cell in _cells(metafunc.definition, loop)]
        metafunc.parametrize((ROUNDS, "ssd_workload"), cells, ids=[f"{loop}-{cell}" for loop, cell in cells])
    elif ROUNDS in names and loops:
        _parametrize(metafunc, ROUNDS, loops)
    elif "ssd_workload" in names and metafunc.definition.get_closest_marker("ssd_replay"):
        _parametrize(metafunc, "ssd_workload", _replays(metafunc.definition, trace))
    elif "ssd_workload" in names:
        workloads = _values(metafunc.definition, "ssd_workload(*workloads)", Workload)
        rated = [_rated(load, spec) if spec and load.rate_percent else load for load in workloads]
        _parametrize(metafunc, "ssd_workload", rated, workloads)


def _replays(item: pytest.Item, trace: Trace | None) -> Sequence[Workload | ImpossibleArray]:
    """Return the replays of the mark ``ssd_replay``; without a trace the test does not apply."""
    scales = [scale for mark in item.iter_markers("ssd_replay") for scale in mark.args]
    if not scales or not all(isinstance(scale, int) and scale > 0 for scale in scales):
        raise pytest.UsageError(f"{item.nodeid}: the mark ssd_replay(*per_cent) needs scales of time, e.g. 100, 200")
    if trace is None:
        return [ImpossibleArray("none", "needs a trace: add --ssd-trace=FILE")]
    try:
        return [trace.workload(scale) for scale in scales]
    except ValueError as error:
        raise pytest.UsageError(f"--ssd-trace: {trace.name}: {error}") from error


def needs_drives(item: pytest.Item) -> bool:
    """Return True for a hardware test, which has the mark ``ssd_array``."""
    return item.get_closest_marker("ssd_array") is not None


def selected(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the hardware tests that nothing has skipped so far."""
    return [item for item in filter(needs_drives, items) if not item.get_closest_marker("skip")]


def fixtures(item: pytest.Item) -> Collection[str]:
    """Return the names of the fixtures of a test."""
    names: Collection[str] = getattr(item, "fixturenames", ())
    return names


def parameters(item: pytest.Item) -> Mapping[str, object]:
    """Return the parameters of a test, by the name of the fixture."""
    found: Mapping[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    return found


def published(item: pytest.Item) -> str | None:
    """Return the shipped data sheet of the mark ``ssd_published``; None: the sheet of the run.

    Raises ``pytest.UsageError`` for an unknown sheet.
    """
    mark = item.get_closest_marker("ssd_published")
    if mark is None:
        return None
    from pytest_ssdqual.qual.spec import spec

    if len(mark.args) != 1 or mark.kwargs or mark.args[0] not in spec.shipped():
        raise pytest.UsageError(
            f"{item.nodeid}: the mark ssd_published(sheet) takes the name of a shipped data sheet "
            f"({', '.join(spec.shipped())}), not {', '.join(map(repr, mark.args)) or 'nothing'}"
        )
    return str(mark.args[0])


def promised(item: pytest.Item) -> frozenset[Claim]:
    """Return the claims of the marks ``ssd_promise`` of a test, its class and its module.

    Raises ``pytest.UsageError`` for an unknown claim.
    """
    names = [name for mark in item.iter_markers("ssd_promise") for name in mark.args]
    for name in names:
        if name not in list(Claim):
            raise pytest.UsageError(
                f"{item.nodeid}: the mark ssd_promise(*claims) names an unknown claim {name!r}; "
                f"{choice(str(name), Claim, 'claims')}"
            )
    return frozenset(map(Claim, names))


def own_claims(item: pytest.Item) -> frozenset[Claim]:
    """Return the claims that a test declares for itself; empty if its class or module declares them for several tests.

    A test that is parametrised by claims judges one of them at a time.
    """
    own = {name for node, mark in item.iter_markers_with_node("ssd_promise") if node is item for name in mark.args}
    chosen = {each for each in parameters(item).values() if isinstance(each, str) and each in own}
    return frozenset(map(Claim, chosen or own))


def require_promises(items: Iterable[pytest.Item]) -> None:
    """Raise ``pytest.UsageError`` for a test that judges without ``ssd_promise``, from which the plan computes drive
    time, or that has the mark and nothing to judge with.
    """
    for item in filter(needs_drives, items):
        names = fixtures(item)
        # A search judges all promises of the spec about the workloads that it draws.
        # A test of published figures has a claim for each figure, and without drives no figures.
        is_exempt = "ssd_explore" in names or item.get_closest_marker("ssd_figures") is not None
        if not promised(item) and "ssd_sla" in names and not is_exempt:
            judge = "ssd_lot" if "ssd_lot" in names else "ssd_sla"
            raise pytest.UsageError(
                f"{item.nodeid}: a test with the fixture {judge} must declare its claims: "
                'add for example @pytest.mark.ssd_promise("p99_latency")'
            )
        if own_claims(item) and "ssd_sla" not in names and not is_exempt and not _asks_later(item):
            raise pytest.UsageError(
                f"{item.nodeid}: the mark ssd_promise names {', '.join(sorted(own_claims(item)))}, but the test has "
                "neither ssd_sla nor ssd_lot, so it would pass without judging; add ssd_sla to its arguments, and "
                "assert ssd_sla.judge(ssd_run)"
            )


def _asks_later(item: pytest.Item) -> bool:
    """Return whether a test may get a fixture while it runs; then ``outcome.require_judged`` sees whether it judged."""
    function = getattr(item, "function", None)
    return function is None or "request" in inspect.signature(function).parameters


def _asked(mark: pytest.Mark, nodeid: str, instead: Sequence[ArrayRequest]) -> Sequence[Widths | ArrayRequest]:
    unknown = sorted(set(mark.kwargs) - {"widths", "failed", "most", "default", "settings"})
    if unknown:
        raise pytest.UsageError(f"{nodeid}: the mark {ARRAY} has no {', '.join(unknown)}")
    try:
        most = _number_of_widths(mark.kwargs.get("most"))
        if "default" in mark.kwargs:
            if mark.args or set(mark.kwargs) - {"default", "most"}:
                raise ValueError("default is a complete list of arrays; remove the other arguments")  # noqa: TRY301
            return _thinner(instead or parse_list(mark.kwargs["default"]), most)
        if len(mark.args) != 1:
            raise ValueError("give one level, e.g. ssd_array('raid5')")  # noqa: TRY301
        level = _level(mark.args[0])
        widths = mark.kwargs.get("widths")
        wanted = None if widths is None else tuple(int(width) for width in widths)
        tunings = tuple(map(Tuning.parse, mark.kwargs.get("settings") or ("",)))
        return (Widths(level, wanted, int(mark.kwargs.get("failed", 0)), most, tunings),)
    except (AttributeError, TypeError, ValueError) as error:
        raise pytest.UsageError(f"{nodeid}: the mark {ARRAY} is wrong: {error}") from error


def _number_of_widths(given: object) -> int | None:
    if given is not None and (not isinstance(given, int) or isinstance(given, bool)):
        raise TypeError(f"most is a number of widths, not {given!r}")
    return given


def _thinner(asked: Sequence[ArrayRequest], most: int | None) -> Sequence[Widths | ArrayRequest]:
    """Return the arrays; a level without a width has so many of its widths, if ``most`` says how many."""
    if most is None:
        return asked
    is_level = [each.width is None and each.level is not RaidLevel.DRIVE for each in asked]
    return [
        Widths(each.level, None, each.missing, most, (each.tuning,)) if level else each
        for each, level in zip(asked, is_level, strict=True)
    ]


def _level(name: object) -> RaidLevel:
    if name not in list(RaidLevel):
        raise ValueError(f"{name!r} is not a level; the levels are {', '.join(RaidLevel)}")
    return RaidLevel(str(name))


def require_known(items: Iterable[pytest.Item], registered: Iterable[str], ours: Sequence[str]) -> None:
    """Raise ``pytest.UsageError`` for a mark that is probably one of ``ours``, misspelt.

    Without its mark a test has no parameters, and would be a unit test. ``registered``: pytest's ini value ``markers``.
    """
    known = {re.split(r"[(:]", line, maxsplit=1)[0].strip() for line in registered}
    for item in items:
        for mark in item.iter_markers():
            if mark.name in known:
                continue
            if mark.name.startswith("ssd_") or get_close_matches(mark.name, ours, 1, LIKE):
                raise pytest.UsageError(f"{item.nodeid}: unknown mark {mark.name}; {choice(mark.name, ours, 'marks')}")


def _rated(workload: Workload, spec: Spec) -> Workload | ImpossibleArray:
    """Return the workload with its rate in I/Os per second; ``ImpossibleArray`` with the reason if there is none.

    Its depth is the given one or, of drives that do few I/Os, less.
    """
    try:
        most = spec.maximum(workload)
        if most is None:
            reason = (
                f"{spec.name} publishes no maximum of random {workload.bs} of one drive, of which {workload} is a part"
            )
            return ImpossibleArray(str(workload), reason)
        rate = round(most * workload.rate_percent / 100)
        # Of a slow drive fewer are outstanding, or each job would repeat too seldom for fio's whole numbers.
        depth = min(workload.qd_per_drive, max(1, rate // (5 * LEAST_OF_JOB)))
        return replace(workload, rate_percent=0, rate_iops=rate, qd_per_drive=depth)
    except ValueError as error:
        return ImpossibleArray(str(workload), f"{workload} of {spec.name}: {error}", is_inapplicable=False)


def _parametrize(
    metafunc: pytest.Metafunc, name: str, values: Sequence[object], named: Sequence[object] | None = None
) -> None:
    """``named``: what the ids are of, if not the values."""
    parameters = [
        pytest.param(each, marks=pytest.mark.skip(reason=each.reason)) if isinstance(each, ImpossibleArray) else each
        for each in values
    ]
    metafunc.parametrize(name, parameters, ids=[str(each) for each in named or values])


def _given(item: pytest.Item, name: str, kind: type[T]) -> list[T]:
    """Return the arguments of the nearest mark of this name, each once."""
    for mark in item.iter_markers(name):  # nearest first: a function's mark replaces its module's
        wrong = next((each for each in mark.args if not isinstance(each, kind)), None)
        if wrong is not None:
            is_own = isinstance(wrong, (Workload, WorkloadSet, Rounds))
            found = f"the {type(wrong).__name__} {wrong}" if is_own else repr(wrong)
            raise pytest.UsageError(f"{item.nodeid}: the mark {name} takes pytest_ssdqual.{kind.__name__}, not {found}")
        if mark.args:
            return list(dict.fromkeys(mark.args))
    return []


def _values(item: pytest.Item, mark: str, kind: type[T]) -> list[T]:
    """Return the arguments of a required mark; ``mark`` as ``pytest --markers`` prints it."""
    found = _given(item, mark.partition("(")[0], kind)
    if not found:
        raise pytest.UsageError(f"{item.nodeid}: the test needs the mark {mark}")
    return found


def _cells(item: pytest.Item, loop: Rounds) -> Sequence[Workload]:
    """Return the workloads of the rounds that the mark ``ssd_workload`` names; all of them without the mark."""
    wanted = _given(item, "ssd_workload", Workload)
    foreign = [each for each in wanted if each not in loop.measured]
    if foreign:
        raise pytest.UsageError(f"{item.nodeid}: the rounds {loop} do not have the workload {foreign[0]}")
    return wanted or loop.measured
