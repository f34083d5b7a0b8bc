"""Against the master table as it is printed, row by row; the module has it as a rule."""

from __future__ import annotations

import pytest

from pytest_ssdqual.qual.lots import sampling_plan

#: ISO 2859-1:1999, table 2-A, AQL 0.065 to 10 %: an acceptance number, or an arrow.
TABLE = """
A    2   v v v v v v v v v v 0 v
B    3   v v v v v v v v v 0 ^ v
C    5   v v v v v v v v 0 ^ v 1
D    8   v v v v v v v 0 ^ v 1 2
E   13   v v v v v v 0 ^ v 1 2 3
F   20   v v v v v 0 ^ v 1 2 3 5
G   32   v v v v 0 ^ v 1 2 3 5 7
H   50   v v v 0 ^ v 1 2 3 5 7 10
J   80   v v 0 ^ v 1 2 3 5 7 10 14
K  125   v 0 ^ v 1 2 3 5 7 10 14 21
L  200   0 ^ v 1 2 3 5 7 10 14 21 ^
M  315   ^ v 1 2 3 5 7 10 14 21 ^ ^
N  500   v 1 2 3 5 7 10 14 21 ^ ^ ^
P  800   1 2 3 5 7 10 14 21 ^ ^ ^ ^
Q 1250   2 3 5 7 10 14 21 ^ ^ ^ ^ ^
R 2000   3 5 7 10 14 21 ^ ^ ^ ^ ^ ^
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()]

#: Table 1: the largest lot of a row, and its code letters for S-1 to S-4 and I to III.
LETTERS = """
       8  A A A A  A A B
      15  A A A A  A B C
      25  A A B B  B C D
      50  A B B C  C D E
      90  B B C C  C E F
     150  B B C D  D F G
     280  B C D E  E G H
     500  B C D E  F H J
    1200  C C E F  G J K
    3200  C D E G  H K L
   10000  C D F G  J L M
   35000  C D F H  K M N
  150000  D E G J  L N P
  500000  D E G J  M P Q
99999999  D E H K  N Q R
"""


@pytest.mark.parametrize("row", range(len(ROWS)), ids=lambda row: ROWS[row][0])
def test_the_master_table(row: int) -> None:
    letter, _, *cells = ROWS[row]
    for column, (cell, aql) in enumerate(zip(cells, sampling_plan.AQLS, strict=True)):
        at = row
        while not ROWS[at][column + 2].isdigit():  # the first plan above or below the arrow
            at += 1 if cell == "v" else -1
        there = ROWS[at]
        expected = sampling_plan.TablePlan(there[0], int(there[1]), int(there[column + 2]))
        assert sampling_plan.plan(letter, aql) == expected, f"{letter} at {aql} %"


def test_code_letters() -> None:
    smallest = 2
    for line in LETTERS.strip().splitlines():
        largest, *letters = line.split()
        for lot in (smallest, int(largest)):
            assert [sampling_plan.code_letter(lot, level) for level in sampling_plan.LEVELS] == letters, lot
        smallest = int(largest) + 1


@pytest.mark.parametrize(
    ("lot", "level", "aql", "why"),
    [
        (1, "II", 1.0, "at least 2 drives"),
        (50, "IV", 1.0, "IV is no inspection level"),
        (50, "II", 2.0, "2 % is no AQL"),
    ],
)
def test_what_the_tables_do_not_have(lot: int, level: str, aql: float, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        sampling_plan.plan(sampling_plan.code_letter(lot, level), aql)
