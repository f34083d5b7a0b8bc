from __future__ import annotations

from collections.abc import Sequence

import pytest
from support.builders import charted
from support.documents import golden

from pytest_ssdqual.report.run_folder.manifest import UNREADABLE
from pytest_ssdqual.report.run_folder.reader import Record, RunReader
from pytest_ssdqual.report.view import drive_history

WRITES, READS = "randwrite_4k_qd8", "randread_4k_qd8"
NEW = {"a": {"method": "discard"}, "b": {"method": "discard"}, "c": {"method": "format"}}
BARE = [
    charted.record("array_created", {"geometry": "drivex3", "purge": NEW}),
    charted.record("filled", {"geometry": "drivex3", "passes": 1, "bs": "128k"}, 60),
    charted.record("conditioned", {"geometry": "drivex3", "workload": WRITES, "capacities": 1.5}, 120),
]


def cell(array: str, visit: int, workload: str, at_s: int) -> Record:
    return charted.record("cell", {"of": "measured", "geometry": array, "visit": visit, "workload": workload}, at_s)


def refreshed(seconds: float, at_s: int) -> Record:
    return charted.record("refreshed", {"geometry": "drivex3", "seconds": seconds}, at_s)


def rows(records: Sequence[Record]) -> list[tuple[object, ...]]:
    return [tuple(row[1:]) for row in drive_history.table(charted.story(*records)).rows]


def test_what_was_written_since_the_purge_is_told_in_order() -> None:
    assembled = charted.record("array_created", {"geometry": "raid5x3", "purge": {}, "of_drives": "x"}, 180)
    story = charted.story(*BARE, assembled)
    assert [row[0] for row in drive_history.table(story).rows] == [
        "2026-11-21 12:00", "2026-11-21 12:01", "2026-11-21 12:02",
    ]  # fmt: skip
    assert rows([*BARE, assembled]) == [
        ("purge", "drivex3", "2 × discard; 1 × format", ""),
        ("fill", "drivex3", "sequential, 128k", "1"),
        ("conditioning", "drivex3", WRITES, "1.5"),
    ]
    assert drive_history.phrase(story) == (
        f"purge: 2 × discard; 1 × format; fill: sequential, 128k, 1 capacity; conditioning: {WRITES}, 1.5 capacities"
    )


def test_visits_are_in_the_order_of_their_first_cells() -> None:
    """A visit that a resumed session ends is one; the writes before an array are those of its next visit."""
    found = rows(
        [
            refreshed(180, 1),
            cell("raid5x3", 0, READS, 2),
            cell("raid5x4", 0, READS, 3),
            cell("raid5x3", 0, WRITES, 4),
            cell("raid5x3", 0, READS, 5),
            refreshed(600, 6),
            cell("raid5x4", 1, READS, 7),
        ]
    )
    assert [row[:2] for row in found] == [("visit 1", "raid5x3"), ("visit 1", "raid5x4"), ("visit 2", "raid5x4")]
    golden.same("tables.txt", [str(row[2]) for row in found])


@pytest.mark.parametrize(
    "facts",
    [
        {"of": "measured", "visit": "0", "geometry": "raid5x3"},
        {"of": "measured", "visit": True, "geometry": "raid5x3"},
        {"of": "measured", "geometry": ["raid5x3"]},
        {"of": "confirmed", "visit": 0, "geometry": "raid5x3"},
    ],
)
def test_a_cell_that_is_damaged_or_of_a_search_is_left_out(facts: dict[str, object]) -> None:
    assert rows([charted.record("cell", facts), charted.record("refreshed", {"seconds": []})]) == []


def test_capacities_that_were_not_counted_are_empty() -> None:
    earlier = charted.record("conditioned", {"geometry": "raid5x3", "workload": WRITES})
    assert rows([earlier]) == [("conditioning", "raid5x3", WRITES, "")]
    assert drive_history.phrase(charted.story(earlier)) == f"conditioning: {WRITES}"
    assert drive_history.phrase(RunReader(charted.NOWHERE, UNREADABLE, ())) == ""


def test_a_drive_that_settled_far_below_its_siblings_is_named() -> None:
    drives = [{"serial": f"S{number}", "model": "A"} for number in range(4)] + [{"serial": "B", "model": "other"}]

    def uneven(*sessions: dict[str, float], acceptance: bool = True, **rates: float) -> list[str]:
        settled = [
            charted.record("conditioned", {"geometry": "drivex5", "workload": WRITES, "rates": each})
            for each in (*sessions, rates)
        ]
        recorded = {"bays": [{"drives": drives}], "acceptance": acceptance}
        return list(drive_history.uneven(charted.story(*settled, manifest=recorded)))

    assert uneven(S0=1000, S1=590, S2=1010, S3=990) == ["S1"]
    assert uneven(S0=1000, S1=990) == []
    assert uneven(S0=1000, S1=590) == ["S1"]
    # Half of them may be bad; a drive of another model is no sibling.
    assert uneven(S0=1000, S1=590, S2=1010, S3=600) == ["S1", "S3"]
    assert uneven(S0=1000, S1=990, B=400) == []
    # A short protocol writes too little to settle.
    assert uneven(S0=1000, S1=590, acceptance=False) == []
    # The last conditioning counts; that of an array has no rates of drives.
    again = {"S0": 1000.0, "S1": 590.0}
    assert uneven(again, S0=1000, S1=990) == []
    assert uneven(again) == ["S1"]
