"""Replays recorded series of real drives: when conditioning ends, and what visits then decide.

    python bench/real_series.py FOLDER [--starts 6] [--protocol FILE] [--out FILE.md]

FOLDER has files ``*.txt`` of two comment lines and values: the drive, its load and whether it settles;
seconds of a value, mean IOPS, from which value on the mean is taken, bytes of a capacity; then the
rates in thousandths of that mean, from the first random write after a fill on. Other files are left
out. Nothing of them is part of this project.

Conditioning is the product's drift test, in its steps and with its volume. From its end on the series
is measured by the protocol ``acceptance``, in two ways: as the 24 points of six arrays, all with the
rate of that series at their time, and as one workload alone, whose visits follow each other. Limits are
2 and 5 % away from the mean on either side, for one that does not settle the mean of what comes after its
conditioning. A series that settles goes on with its settled part after
its end; one that does not ends there.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from conditioned_series import Conditioned, until_settled
from drive_kinds import Series
from visited_points import Experiment

from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.stats.visits import HEAD_S, Point
from pytest_ssdqual.qual.verdict.verdict import Outcome
from pytest_ssdqual.qual.workload.workload import Workload

#: True mean over limit.
MARGINS = (-0.05, -0.02, 0.02, 0.05)
ARRAYS = tuple((Geometry(RaidLevel.RAID5, width), Workload("randwrite", "4k", depth))
               for width in range(3, 9) for depth in (1, 2, 4, 8))  # fmt: skip
ALONE = ((Geometry(RaidLevel.RAID5, 8), Workload("randwrite", "4k", 8)),)
#: Words of files' names: loads that do not settle, and those that are conditioned with themselves.
UNSETTLED, SKEWED = ("hot", "readonly", "unfilled"), ("zipf", "hot", "readonly")


@dataclass(frozen=True, slots=True)
class Recorded:
    """One file."""

    name: str
    settles: bool
    step_s: float
    mean_iops: float
    #: Index of the first value of the mean.
    settled_from: int
    capacity_bytes: int
    #: As shares of the mean.
    rates: Series

    @classmethod
    def read(cls, path: Path) -> Recorded | None:
        """Read a file; None if it has no rates."""
        lines = path.read_text(encoding="utf-8").splitlines()
        if len(lines) < 3 or not lines[1].startswith("# step_s "):
            return None
        words = lines[1].split()
        step_s, mean_iops, start = (float(words[words.index(key) + ahead]) for key, ahead in
                                    (("step_s", 1), ("mean_iops", 1), ("values", 2)))  # fmt: skip
        capacity_bytes = int(words[words.index("capacity_bytes") + 1])
        rates = np.asarray([float(each) / 1000 for line in lines[2:] for each in line.split()])
        settles = "is not settled" not in lines[0] and not any(word in path.stem for word in UNSETTLED)
        return cls(path.stem, settles, step_s, mean_iops, int(start), capacity_bytes, rates)

    @property
    def is_skewed(self) -> bool:
        return any(word in self.name for word in SKEWED)

    def conditioned(self, settings: Protocol) -> Conditioned:
        rates = self.rates * self.mean_iops * 4096
        return until_settled([rates], self.step_s, self.capacity_bytes, settings, is_skewed=self.is_skewed)

    def before(self, at_s: float) -> float:
        """Return the mean of the ten minutes before a moment, as a share of the mean of what is left."""
        index, last = round(at_s / self.step_s), round(600 / self.step_s)
        rest = self.rates[index:]
        return float(self.rates[max(0, index - last) : index].mean() / rest.mean()) if rest.size else np.nan

    def integral(self, seconds: float) -> Series:
        """Return the integral of the rate by steps, for so long: a series that settles is repeated."""
        settled, rates = self.rates[self.settled_from :], self.rates
        if self.settles:
            again = int(np.ceil(max(0.0, seconds / self.step_s - rates.size) / settled.size))
            rates = np.concatenate((rates, np.tile(settled, again)))
        return np.concatenate(([0.0], np.cumsum(rates))) * self.step_s


@dataclass(frozen=True, slots=True)
class Replayed:
    """Verdicts about one series at one margin."""

    margin: float
    outcomes: tuple[Outcome, ...]
    minutes: float

    @property
    def right(self) -> Outcome:
        return Outcome.PASS if self.margin > 0 else Outcome.FAIL

    @property
    def wrong(self) -> int:
        return len(self.outcomes) - self.outcomes.count(self.right) - self.undecided

    @property
    def undecided(self) -> int:
        return self.outcomes.count(Outcome.INCONCLUSIVE)


def replay(
    series: Recorded, start_s: float, settings: Protocol, points: Sequence[Point], margin: float, seed: int
) -> Replayed:
    """Judge points whose rates are those of the series from ``start_s`` on.

    The true mean is that of the series, or of what is left of one that does not settle.
    """
    assert settings.visits
    truth = 1.0 if series.settles else float(series.rates[round(start_s / series.step_s) :].mean())
    lengths_s = (settings.visits.ramp_s, HEAD_S, settings.visits.cell_s - HEAD_S)
    integral = series.integral(start_s + 24 * 3600)
    moments = np.arange(integral.size) * series.step_s

    def rates(point: Point, at_s: float) -> list[float]:
        edges = start_s + at_s + np.concatenate(([0.0], np.cumsum(lengths_s)))
        parts = np.diff(np.interp(edges, moments, integral))
        return [
            (1 + margin) * part / length_s / truth for part, length_s in zip(parts.tolist(), lengths_s, strict=True)
        ]

    left_s = np.inf if series.settles else moments[-1] - start_s - sum(lengths_s)
    experiment = Experiment(points, settings, rates, np.random.default_rng(seed), has_sweeps=False, end_s=left_s)
    outcomes = experiment.run()
    return Replayed(margin, tuple(outcomes.values()), experiment.now_s / 60)


def starts(series: Recorded, conditioned: Conditioned, count: int) -> list[float]:
    """Return where measurements begin: at the end of conditioning, and later if the series settles."""
    last_s = series.rates.size * series.step_s
    if not series.settles or count < 2:
        return [conditioned.seconds]
    later_s = max(conditioned.seconds, last_s)
    return [float(each) for each in np.linspace(conditioned.seconds, later_s, count, endpoint=False)]


HEAD = (
    "series", "conditioned, capacities / minutes", "last 10 min ÷ later", "as",
    "wrong / undecided / verdicts at -5, -2, +2, +5 %", "minutes",
)  # fmt: skip


def lines(folder: Path, count: int, settings: Protocol) -> Iterator[str]:
    """Yield the lines of the table, and a summary."""
    recorded = [found for path in sorted(folder.glob("*.txt")) if (found := Recorded.read(path))]
    yield f"| {' | '.join(HEAD)} |"
    yield "|---" * len(HEAD) + "|"
    totals: dict[tuple[bool, str, float], list[Replayed]] = {}
    for series in recorded:
        end = series.conditioned(settings)
        state = f"{series.name} | {end.capacities:.2f} / {end.seconds / 60:.0f}"
        if not end.settled:
            yield f"| {state}, not settled | - | not judged | | |"
            continue
        for name, points in (("24 points", ARRAYS), ("alone", ALONE)):
            replayed = [
                replay(series, start_s, settings, points, margin, seed)
                for seed, start_s in enumerate(starts(series, end, count))
                for margin in MARGINS
            ]
            for each in replayed:
                totals.setdefault((series.settles, name, abs(each.margin)), []).append(each)
            yield f"| {state} | {series.before(end.seconds):.3f} | {name} | {_counted(replayed)} |"
    yield ""
    for (settles, name, margin), alike in sorted(totals.items(), reverse=True):
        wrong, undecided, verdicts = _sums(alike)
        kind = "settling" if settles else "unsettled"
        share = f"{wrong} wrong ({wrong / verdicts:.2%})"
        yield f"{kind}, {name}, ±{margin:.0%}: {share}, {undecided} undecided of {verdicts}"


def _counted(replayed: Sequence[Replayed]) -> str:
    margins = [_sums([each for each in replayed if each.margin == margin]) for margin in MARGINS]
    minutes = [each.minutes for each in replayed]
    return f"{', '.join('/'.join(map(str, sums)) for sums in margins)} | {np.median(minutes):.0f} ({max(minutes):.0f})"


def _sums(replayed: Sequence[Replayed]) -> tuple[int, int, int]:
    """Return the numbers of wrong, undecided and all verdicts."""
    return (
        sum(each.wrong for each in replayed),
        sum(each.undecided for each in replayed),
        sum(len(each.outcomes) for each in replayed),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--starts", type=int, default=6, help="measurements of each series that settles")
    parser.add_argument("--protocol", default="acceptance", help="name or file of one with visits (%(default)s)")
    parser.add_argument("--out", type=Path, help="Markdown file, besides standard output")
    given = parser.parse_args()
    text = "\n".join(lines(given.folder, given.starts, protocol.load(given.protocol))) + "\n"
    print(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
