"""Error rates and durations of the product's rule with and without what the drive's conditioning has shown.

    python bench/shared_evidence.py [--runs 6] [--held-out] [--only flat,slowgc]

Each simulated drive is under load for two hours, as it is conditioned, and then measured; both rules see the same
drives. With what the conditioning has shown, its pauses and rhythms replace the assumption about them, and the guard
against plateaus is over. A row is a kind of drive, a column the distance of its true mean from the limit.
"""

from __future__ import annotations

import argparse
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import drive_kinds
import held_out_kinds
import numpy as np
import stopping_rules
from drive_kinds import Kind

from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule, VerdictRule
from pytest_ssdqual.qual.stats import excursions
from pytest_ssdqual.qual.stats.group_sequential import Question
from pytest_ssdqual.qual.stats.shared_evidence import NOTHING_KNOWN, SharedEvidence
from pytest_ssdqual.qual.units import Unit

CONDITIONED_S = 7200
LIMIT = Limit(Direction.AT_LEAST, 10_000.0, Unit.IOPS, "bench")
QUESTION = Question({Claim.STEADY_IOPS: LIMIT})
#: Of the true mean from the limit, per cent.
DISTANCES = (-5, -2, 0, 2, 5, 10)
#: Seconds of a value of the conditioning's series: fio's reports meanwhile.
STEP_S = 7
WITHOUT, WITH = "without", "with"


@dataclass(slots=True)
class Tally:
    """Outcomes and minutes of one rule."""

    outcomes: Counter[str] = field(default_factory=Counter)
    minutes: float = 0.0

    def add(self, other: Tally) -> None:
        self.outcomes += other.outcomes
        self.minutes += other.minutes

    def __str__(self) -> str:
        runs = max(1, self.outcomes.total())
        shares = (100 * self.outcomes[each] / runs for each in ("pass", "fail"))
        return "{:.0f} / {:.0f} % in {:.0f} min".format(*shares, self.minutes / runs)


def drive(
    name: str, kind: Kind, distance: int, number: int, looks: SequentialRule, rule: VerdictRule
) -> dict[str, Tally]:
    """Return the outcome of one drive by both rules."""
    rng = np.random.default_rng([number, zlib.crc32(name.encode()), distance + 50])
    series = kind(rng, 1 + distance / 100, CONDITIONED_S + int(looks.limit_s) + looks.report_s) * LIMIT.bound
    before = stopping_rules.cells(series[:CONDITIONED_S], STEP_S).tolist()
    known = SharedEvidence(CONDITIONED_S, excursions.of_series(before, STEP_S, looks, rule.confidence))
    intervals = stopping_rules.reported(
        stopping_rules.cells(series[CONDITIONED_S:], looks.report_s), float(looks.report_s)
    )
    found = {}
    for label, shared in ((WITHOUT, NOTHING_KNOWN), (WITH, known)):
        ending = stopping_rules.judged(intervals, QUESTION, looks, rule, shared=shared)
        found[label] = Tally(Counter([ending.outcome.value]), ending.seconds / 60)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=6, help="drives of each kind and distance (default 6)")
    parser.add_argument("--held-out", action="store_true", help="kinds by which nothing was chosen")
    parser.add_argument("--only", default="", help="kinds, separated by commas")
    asked = parser.parse_args()
    kinds: Mapping[str, Kind] = held_out_kinds.KINDS if asked.held_out else drive_kinds.KINDS
    kinds = {name: kind for name, kind in kinds.items() if not asked.only or name in asked.only.split(",")}
    ours = protocol.load("sequential")
    assert ours.sequential
    total = {(distance, label): Tally() for distance in DISTANCES for label in (WITHOUT, WITH)}
    print("| kind | evidence |", " | ".join(f"{each:+d} %" for each in DISTANCES), "|")
    print("|---|---|" + "---|" * len(DISTANCES))
    for name, kind in kinds.items():
        of_kind = {key: Tally() for key in total}
        for distance in DISTANCES:
            for number in range(asked.runs):
                found = drive(name, kind, distance, number, ours.sequential, ours.verdict)
                for label, tally in found.items():
                    of_kind[distance, label].add(tally)
                    total[distance, label].add(tally)
        for label in (WITHOUT, WITH):
            print(f"| {name} | {label} |", " | ".join(str(of_kind[each, label]) for each in DISTANCES), "|", flush=True)
    for label in (WITHOUT, WITH):
        print(f"| all | {label} |", " | ".join(str(total[each, label]) for each in DISTANCES), "|")


if __name__ == "__main__":
    main()
