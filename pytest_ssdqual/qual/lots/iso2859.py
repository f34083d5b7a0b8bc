"""Single sampling for normal inspection by attributes, as in ISO 2859-1:1999 (the same tables: ANSI/ASQ Z1.4).

The master table is not copied cell by cell: sample sizes and AQLs both grow in steps of about 10^(1/5), so the
acceptance number depends only on the sum of the two positions, and so do the arrows between the plans. AQLs below
0.065 % need samples of 315 drives and more, those above 10 % count faults and not drives: neither is in here.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

#: Per cent nonconforming.
AQLS = (0.065, 0.10, 0.15, 0.25, 0.40, 0.65, 1.0, 1.5, 2.5, 4.0, 6.5, 10.0)

LETTERS = "ABCDEFGHJKLMNPQR"
SAMPLES = (2, 3, 5, 8, 13, 20, 32, 50, 80, 125, 200, 315, 500, 800, 1250, 2000)

#: Largest lot of each row of table 1; the last row is open.
LOTS = (8, 15, 25, 50, 90, 150, 280, 500, 1200, 3200, 10_000, 35_000, 150_000, 500_000)
#: Code letters of those rows, by inspection level.
LEVELS = {
    "S-1": "AAAABBBBCCCCDDD",
    "S-2": "AAABBBCCCDDDEEE",
    "S-3": "AABBCCDDEEFFGGH",
    "S-4": "AABCCDEEFGGHJJK",
    "I": "AABCCDEFGHJKLMN",
    "II": "ABCDEFGHJKLMNPQ",
    "III": "BCDEFGHJKLMNPQR",
}

#: Acceptance number by position of the letter plus position of the AQL.
_ACCEPT = {10: 0, 13: 1, 14: 2, 15: 3, 16: 5, 17: 7, 18: 10, 19: 14, 20: 21}
#: Where the arrow points to the plan above, a smaller sample; everywhere else without a number it points below.
_UP = 11
_LAST = max(_ACCEPT)


@dataclass(frozen=True, slots=True)
class TablePlan:
    """A cell of the master table, after the arrows."""

    #: Of the row that the plan stands in, which may not be that of the lot.
    letter: str
    sample: int
    accept: int


def code_letter(lot: int, level: str) -> str:
    """Of a lot of so many drives; ValueError for a lot below two and for a level that does not exist."""
    if lot < 2:
        raise ValueError(f"a lot has at least 2 drives, not {lot}")
    if level not in LEVELS:
        raise ValueError(f"{level} is no inspection level; there are {', '.join(LEVELS)}")
    return LEVELS[level][bisect_left(LOTS, lot)]


def plan(letter: str, aql_percent: float) -> TablePlan:
    """The plan of a code letter and an AQL; ValueError if the table has no such column."""
    if aql_percent not in AQLS:
        listed = ", ".join(f"{each:g}" for each in AQLS)
        raise ValueError(f"{aql_percent:g} % is no AQL of the table; there are {listed} %")
    row, column = LETTERS.index(letter), AQLS.index(aql_percent)
    # The first row has nothing above it.
    step = -1 if row + column > _LAST or (row + column == _UP and row > 0) else 1
    while row + column not in _ACCEPT:
        row += step
    return TablePlan(LETTERS[row], SAMPLES[row], _ACCEPT[row + column])
