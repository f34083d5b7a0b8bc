"""Counts how often the attributed cause of a promise that drives side by side break is the true one.

    python bench/attribution_side_by_side.py              # a few seconds
    python bench/attribution_side_by_side.py --wrong      # print each wrong answer

Each case is a set of drives with one culprit. Drives of a lot differ by 1 %, measurements by 1 %; 95 % of the sheet are
promised, and that no drive is below 85 % of the median of the others. The environment of the process is checked first,
as in a run: a drive with an objection is left out. All decisions are those of the package. The last lines count right
causes by rule; the confidences of `side_by_side.RULES` are from there.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_ssdqual.qual.measured.environment import (
    DeviceTraffic,
    DriveEnvironment,
    DriveLink,
    DriveTemperature,
    OpenFile,
    OwnCount,
    ProcessEnvironment,
    Traffic,
)
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.validity import attribution, checks, side_by_side
from pytest_ssdqual.qual.validity.attribution import Cause, Culprit
from pytest_ssdqual.qual.validity.side_by_side import DriveFigure, SideBySide, Trait, TraitKind
from pytest_ssdqual.qual.workload.workload import Workload

WIDTHS = (2, 4, 8, 24)
WORKLOADS = (Workload("randread", "4k", 8), Workload("randwrite", "4k", 8))
SEEDS, NOISE, LOT, PROMISE, EVEN = 40, 0.01, 0.01, 0.95, 0.85
SHEET, SECONDS, UNIT = 100_000, 60, 512_000
NODE = TraitKind.PLACE, "NUMA node"
HBA = TraitKind.SHARED, "SAS controller"


@dataclass(slots=True)
class Scene:
    """Drives and what is around them."""

    #: Share of the sheet that each drive does side by side, without noise.
    speeds: list[float]
    #: The same alone, where it differs.
    alone: dict[int, float] = field(default_factory=dict)
    #: Commands of others, as a share of the drive's own; None: the drives do not count.
    foreign: dict[int, float] | None = field(default_factory=dict)
    opened: dict[int, OpenFile] = field(default_factory=dict)
    self_tests: set[int] = field(default_factory=set)
    throttled: set[int] = field(default_factory=set)
    narrow: set[int] = field(default_factory=set)
    traits: dict[int, set[Trait]] = field(default_factory=dict)
    host: Cause | None = None

    def have(self, drives: Iterator[int] | Sequence[int], kind: tuple[TraitKind, str], value: str) -> None:
        for each in drives:
            self.traits.setdefault(each, set()).add(Trait(*kind, value))


@dataclass(frozen=True, slots=True)
class Case:
    """One culprit; ``change`` returns the drives that are at fault."""

    name: str
    change: Callable[[Scene], set[int]]
    answers: frozenset[Culprit]
    least: int = 2
    #: Right is that nobody is judged by the drive: it is left out with an objection.
    is_objected: bool = False
    reads_only: bool = False


def slow(scene: Scene, drives: Sequence[int], share: float) -> set[int]:
    for each in drives:
        scene.speeds[each] *= share
    return set(drives)


def half(scene: Scene) -> range:
    return range(len(scene.speeds) // 2)


def one(share: float) -> Callable[[Scene], set[int]]:
    return lambda scene: slow(scene, [1], share)


def two(scene: Scene) -> set[int]:
    return slow(scene, [0], 0.7) | slow(scene, [3], 0.75)


def all_slow(scene: Scene) -> set[int]:
    slow(scene, range(len(scene.speeds)), 0.8)
    return set()


def path(of: Callable[[Scene], Sequence[int]], *, is_known: bool) -> Callable[[Scene], set[int]]:
    def change(scene: Scene) -> set[int]:
        behind = of(scene)
        scene.alone = {each: scene.speeds[each] for each in behind}
        slow(scene, behind, 0.75)
        if is_known:
            scene.have(behind, HBA, "0000:02:00.0")
            scene.have([each for each in range(len(scene.speeds)) if each not in behind], HBA, "0000:01:00.0")
        return set()

    return change


def other_firmware(scene: Scene) -> set[int]:
    firmware = TraitKind.DRIVE, "firmware"
    scene.have(half(scene), firmware, "1.2")
    scene.have(range(len(scene.speeds) // 2, len(scene.speeds)), firmware, "1.3")
    return slow(scene, half(scene), 0.8)


def passthrough(scene: Scene) -> set[int]:
    scene.foreign = {1: 0.15}
    slow(scene, [1], 0.87)
    return set()


def opened(scene: Scene) -> set[int]:
    scene.foreign, scene.opened = None, {1: OpenFile("sg_dd", 737, "generic")}
    slow(scene, [1], 0.87)
    return set()


def self_test(scene: Scene) -> set[int]:
    scene.self_tests = {1}
    slow(scene, [1], 0.7)
    return set()


def throttled(scene: Scene) -> set[int]:
    scene.throttled = {1}
    slow(scene, [1], 0.6)
    return set()


def narrow(scene: Scene) -> set[int]:
    scene.narrow = {1}
    slow(scene, [1], 0.5)
    return set()


def other_node(scene: Scene) -> set[int]:
    scene.have([1], NODE, "1")
    scene.have([each for each in range(len(scene.speeds)) if each != 1], NODE, "0")
    slow(scene, [1], 0.8)
    return set()


def slow_on_a_shared_node(scene: Scene) -> set[int]:
    scene.have(half(scene), NODE, "0")
    scene.have(range(len(scene.speeds) // 2, len(scene.speeds)), NODE, "1")
    return slow(scene, [1], 0.8)


def other_scheduler(scene: Scene) -> set[int]:
    kind = TraitKind.HOST, "I/O scheduler"
    scene.have([1], kind, "bfq")
    scene.have([each for each in range(len(scene.speeds)) if each != 1], kind, "none")
    slow(scene, [1], 0.7)
    return set()


def near_the_limit(scene: Scene) -> set[int]:
    slow(scene, range(len(scene.speeds)), 0.945)
    return set()


def wide(change: Callable[[Scene], set[int]]) -> Callable[[Scene], set[int]]:
    """Drives of a lot that differ by 3 %."""

    def changed(scene: Scene) -> set[int]:
        scene.speeds = [1.02 * speed**3 for speed in scene.speeds]
        return change(scene)

    return changed


def busy_host(scene: Scene) -> set[int]:
    scene.host = attribution.cause(Culprit.HOST, "its CPUs were 93% busy")
    slow(scene, range(len(scene.speeds)), 0.8)
    return set()


def polled(scene: Scene) -> set[int]:
    """Smartd asks once in half an hour, which is no I/O, and has nothing open when it is looked for."""
    scene.foreign = {1: 0.0001}
    return set()


DRIVE, DRIVES = frozenset({Culprit.DRIVE}), frozenset({Culprit.DRIVES})
PRODUCT, PATH, HOST = frozenset({Culprit.PRODUCT}), frozenset({Culprit.PATH}), frozenset({Culprit.HOST})
#: No drive is accused, and none is acquitted.
OPEN = frozenset({Culprit.PRODUCT, Culprit.UNKNOWN})


def every(scene: Scene) -> range:
    return range(len(scene.speeds))


def quarter(scene: Scene) -> range:
    return range(len(scene.speeds) // 4)


CASES = (
    Case("one drive at 60 %", one(0.6), DRIVE),
    Case("one drive at 80 %", one(0.8), DRIVE),
    Case("one drive at 90 %", one(0.9), DRIVE),
    Case("two slow drives", two, DRIVES, least=8),
    Case("all drives at 80 %", all_slow, PRODUCT),
    Case("one drive at 70 % of a lot that differs by 3 %", wide(one(0.7)), DRIVE),
    Case("all drives at 94 %, in a lot that differs by 3 %", wide(near_the_limit), PRODUCT),
    Case("all drives at the limit", near_the_limit, PRODUCT),
    Case("half of the drives at 80 %, of another firmware", other_firmware, DRIVES, least=4),
    Case("half of the drives at 80 %", lambda scene: slow(scene, half(scene), 0.8), DRIVES | OPEN, least=4),
    Case("half of the drives behind a known path", path(half, is_known=True), PATH, least=4),
    Case("a quarter of the drives behind a known path", path(quarter, is_known=True), PATH, least=8),
    Case("half of the drives behind an unknown path", path(half, is_known=False), PATH, least=4, reads_only=True),
    Case("all drives behind one path", path(every, is_known=False), PATH, reads_only=True),
    Case("half of the drives behind an unknown path, writes", path(half, is_known=False), PATH | OPEN, least=4),
    Case("all drives behind one path, writes", path(every, is_known=False), PATH | OPEN),
    Case("a reader through sg, or another host", passthrough, frozenset(), is_objected=True),
    Case("a reader through sg of drives that do not count", opened, frozenset(), is_objected=True),
    Case("a self-test", self_test, frozenset(), is_objected=True),
    Case("a drive throttles itself", throttled, frozenset(), is_objected=True),
    Case("a drive on half of its link", narrow, frozenset(), is_objected=True),
    Case("one drive on another NUMA node", other_node, PATH, least=4),
    Case("one slow drive on a node that others share", slow_on_a_shared_node, DRIVE, least=4),
    Case("one drive with another scheduler", other_scheduler, HOST, least=4),
    Case("the host is busy", busy_host, HOST),
    Case("smartd polls a drive", polled, frozenset()),
)


@dataclass(slots=True)
class Tally:
    judged: int = 0
    right: int = 0
    accused: int = 0
    answers: Counter[str] = field(default_factory=Counter)


def noisy(value: float, share: float, draw: random.Random) -> float:
    return value * math.exp(draw.gauss(0, share))


def environment(scene: Scene, rates: Sequence[float], workload: Workload) -> ProcessEnvironment:
    """What the machine and its drives report of one process."""
    drives = []
    for index, rate in enumerate(rates):
        ios, size = round(rate * SECONDS), workload.largest_bytes
        asked = Traffic(ios, 0, ios * size, 0) if workload.reads else Traffic(0, ios, 0, ios * size)
        own = None
        if scene.foreign is not None:
            more = round(ios * scene.foreign.get(index, 0.0))
            reads, writes = asked.reads + more, asked.writes
            own = OwnCount(reads, writes, -(-reads * size // UNIT) * UNIT, -(-writes * size // UNIT) * UNIT, UNIT)
        is_narrow, events = index in scene.narrow, 3 if index in scene.throttled else 0
        users = tuple([scene.opened[index]] if index in scene.opened else [])
        drives.append(
            DriveEnvironment(
                serial(index), DeviceTraffic(asked, asked), DriveTemperature(50.0, 75.0, False, None, events),
                DriveLink("PCIe", 16.0, 2 if is_narrow else 4, 16.0, 4), own=own, opened=users,
                self_test="an extended self-test (40 % left)" if index in scene.self_tests else "",
            )
        )  # fmt: skip
    return ProcessEnvironment(SECONDS, SECONDS, 0.0, 0.01, None, 0.1, tuple(drives), None)


def serial(index: int) -> str:
    return f"S{index + 1}"


def objected(scene: Scene, rates: Sequence[float], workload: Workload) -> set[int]:
    """The drives that a run would leave out."""
    geometry, members = Geometry(RaidLevel.DRIVE, len(rates)), tuple(serial(index) for index in range(len(rates)))
    seen = environment(scene, rates, workload)
    run = Run(workload, geometry, members, (), 0.0, SECONDS, 5, "", seen)
    names = {check.drive for check in checks.of_environment(run) if check.objections}
    return {index for index in range(len(rates)) if serial(index) in names}


def evidence(scene: Scene, rates: Mapping[int, float], workload: Workload, draw: random.Random) -> SideBySide:
    """The evidence of the promise about IOPS."""
    limit = PROMISE * SHEET
    figures = tuple(
        DriveFigure(serial(index), rate / limit, rate * (1 + 2 * NOISE) < limit, 2 * NOISE,
                    frozenset(scene.traits.get(index, ())))
        for index, rate in rates.items()
    )  # fmt: skip

    def together(name: str) -> float | None:
        if workload.writes:
            return None
        index = int(name[1:]) - 1
        alone = scene.alone.get(index, scene.speeds[index])
        return noisy(scene.speeds[index] / alone, 1.4 * NOISE, draw)

    return SideBySide(figures, together, scene.host)


def causes(scene: Scene, rates: Mapping[int, float], workload: Workload, draw: random.Random) -> Iterator[SideBySide]:
    """Yield the evidence of each broken promise."""
    found = evidence(scene, rates, workload, draw)
    if found.broken:
        yield found
    if len(rates) > 1:
        scored = tuple(
            replace(each, score=rate, error=0.0) for each, rate in zip(found.drives, rates.values(), strict=True)
        )
        spread = replace(found, drives=scored, behind=EVEN, compares=True)
        if spread.slow:
            yield spread


def rule_of(found: SideBySide) -> str:
    return next((rule.__name__ for rule in side_by_side.RULES if rule(found)), "none")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--wrong", action="store_true", help="print each wrong answer")
    args = parser.parse_args()
    tallies: dict[str, Tally] = {}
    rates_of: dict[str, list[bool]] = {}
    for case in CASES:
        if args.only not in case.name:
            continue
        tally = tallies.setdefault(case.name, Tally())
        for width in WIDTHS:
            for workload in WORKLOADS:
                if width < case.least or (case.reads_only and workload.writes):
                    continue
                for seed in range(args.seeds):
                    draw = random.Random(f"{case.name} {width} {workload} {seed}")  # noqa: S311 (a simulation)
                    count(case, width, workload, draw, tally, rates_of, is_shown=args.wrong)
    report(tallies, rates_of)


def count(
    case: Case, width: int, workload: Workload, draw: random.Random, tally: Tally, rates_of: dict[str, list[bool]], *,
    is_shown: bool,
) -> None:  # fmt: skip
    scene = Scene([noisy(1.0, LOT, draw) for _ in range(width)])
    guilty = {serial(index) for index in case.change(scene)}
    measured = [noisy(SHEET * speed, NOISE, draw) for speed in scene.speeds]
    left_out = objected(scene, measured, workload)
    left = {index: rate for index, rate in enumerate(measured) if index not in left_out}
    if left_out or case.is_objected:
        tally.judged += 1
        is_right = case.is_objected and left_out == {1}
        tally.right += is_right
        tally.answers["objection" if left_out else "no objection"] += 1
    for found in causes(scene, left, workload, draw):
        cause = side_by_side.attribute(found)
        is_right = cause.culprit in case.answers and (not cause.culprit.is_drive or set(cause.drives) <= guilty)
        tally.judged += 1
        tally.right += is_right
        tally.accused += cause.culprit.is_drive and not set(cause.drives) <= guilty
        tally.answers[cause.culprit.value] += 1
        rates_of.setdefault(rule_of(found), []).append(is_right)
        if is_shown and not is_right:
            print(f"{case.name}, {width} drives, {workload}: {cause}")


def report(tallies: Mapping[str, Tally], rates_of: Mapping[str, Sequence[bool]]) -> None:
    for name, tally in tallies.items():
        share = f"{tally.right / tally.judged:6.1%}" if tally.judged else "     –"
        found = ", ".join(f"{answer} {number}" for answer, number in tally.answers.most_common())
        print(f"{name:52} {share} of {tally.judged:4}: {found or 'every promise kept'}")
    judged, right, accused = (
        sum(getattr(each, name) for each in tallies.values()) for name in ("judged", "right", "accused")
    )
    print(f"right cause: {right / judged:.1%} of {judged} (goal 95 %)")
    print(f"drives accused falsely: {accused / judged:.1%} (goal 1 %)")
    for rule, answers in sorted(rates_of.items()):
        confidence = (sum(answers) + 1) / (len(answers) + 2)
        print(f"{rule:20} right in {sum(answers):4} of {len(answers):4}: {confidence:.2f}")


if __name__ == "__main__":
    main()
