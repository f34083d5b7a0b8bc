from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_ssdqual.qual.integrity.reference_model import Mismatch, MismatchKind, ReferenceModel, Region, Torn
from pytest_ssdqual.qual.integrity.stamp import Stamp, filled
from pytest_ssdqual.qual.integrity.steps import UNIT_BYTES

ATOM = 512
#: Two neighbours of four units, in stripes of three units: they share the second stripe.
STRIPE = 3 * UNIT_BYTES
HERE, NEXT = Region(0, 0, 4 * UNIT_BYTES), Region(1, 4 * UNIT_BYTES, 4 * UNIT_BYTES)


@dataclass
class Disk:
    """A ledger, and what is on the array that it is about."""

    ledger: ReferenceModel
    data: bytearray

    def write(self, region: Region, block: int = UNIT_BYTES, *, flushed: bool = True, done: bool = True) -> int:
        """Acknowledged; and done, or not."""
        generation = self.ledger.begin(block)
        if done:
            self.put(region, generation, block)
        self.ledger.wrote(region, generation, flushed=flushed)
        return generation

    def put(self, region: Region, generation: int, block: int = UNIT_BYTES, upto: int | None = None) -> None:
        """As many bytes of it."""
        count = region.written(block) if upto is None else upto
        parts = (
            filled(Stamp(1, generation, region.offset_bytes + at), block)
            for at in range(0, region.written(block), block)
        )
        self.data[region.offset_bytes : region.offset_bytes + count] = b"".join(parts)[:count]

    def judge(self, region: Region) -> list[Mismatch]:
        return list(self.ledger.judge(region, bytes(self.data[region.offset_bytes : region.end_bytes])))


@pytest.fixture
def disk() -> Disk:
    """Both regions hold generation 1."""
    ledger = ReferenceModel(1, ATOM, STRIPE)
    ledger.add([HERE, NEXT])
    disk = Disk(ledger, bytearray(8 * UNIT_BYTES))
    generation = ledger.begin(UNIT_BYTES)
    for region in (HERE, NEXT):
        disk.put(region, generation)
        ledger.wrote(region, generation, flushed=True)
    return disk


def test_what_was_acknowledged_is_right(disk: Disk) -> None:
    disk.write(HERE, 2 * UNIT_BYTES)
    disk.write(NEXT, flushed=False)
    assert disk.judge(HERE) == []
    assert disk.judge(NEXT) == []


def test_a_write_that_was_not_done_is_found(disk: Disk) -> None:
    disk.write(HERE, flushed=False, done=False)
    found = disk.judge(HERE)
    assert len(found) == 4 * UNIT_BYTES // ATOM
    assert found[0] == Mismatch(MismatchKind.STALE, 0, "generation 1", "generation 2")


def test_the_rest_of_a_region_stays_as_it_was(disk: Disk) -> None:
    disk.write(HERE, 3 * UNIT_BYTES)
    assert disk.judge(HERE) == []
    disk.put(HERE, 2, upto=None)
    assert [each.kind for each in disk.judge(HERE)][-1] is MismatchKind.AHEAD


@pytest.mark.parametrize(
    ("data", "kind", "said"),
    [
        (bytes(ATOM), MismatchKind.GARBAGE, "zeroes"),
        (b"\xff" * ATOM, MismatchKind.GARBAGE, f"bytes {'ff' * 16}"),
        (filled(Stamp(2, 1, 0), ATOM), MismatchKind.FOREIGN, "generation 1 of history 2"),
        (filled(Stamp(1, 1, 4096), ATOM), MismatchKind.ELSEWHERE, "generation 1 of byte 4096"),
        (filled(Stamp(1, 9, 0), ATOM), MismatchKind.AHEAD, "generation 9"),
        (filled(Stamp(1, 1, 0), 256) + bytes(256), MismatchKind.GARBAGE, "2 different patterns of 16 bytes"),
        (filled(Stamp(1, 1, 0), 256) + filled(Stamp(1, 2, 0), 256), MismatchKind.MIXED, "generations 1, 2"),
    ],
)
def test_what_is_there_instead_is_named(disk: Disk, data: bytes, kind: MismatchKind, said: str) -> None:
    disk.data[:ATOM] = data
    (found,) = disk.judge(HERE)
    assert (found.kind, found.offset_bytes, found.found, found.expected) == (kind, 0, said, "generation 1")


def test_any_single_byte_counts(disk: Disk) -> None:
    disk.data[NEXT.end_bytes - 1] ^= 1
    (found,) = disk.judge(NEXT)
    assert found.offset_bytes == NEXT.end_bytes - ATOM


def test_too_few_bytes_are_a_finding(disk: Disk) -> None:
    (found,) = disk.ledger.judge(HERE, b"")
    assert (found.kind, found.offset_bytes) == (MismatchKind.UNREADABLE, 0)


def test_what_was_trimmed_may_be_anything_until_it_is_written(disk: Disk) -> None:
    disk.ledger.trimmed(HERE)
    assert disk.ledger.has_trimmed
    disk.data[: HERE.size_bytes] = b"?" * HERE.size_bytes
    assert disk.judge(HERE) == []
    disk.write(HERE)
    assert not disk.ledger.has_trimmed
    assert disk.judge(HERE) == []
    disk.data[0] ^= 1
    assert disk.judge(HERE)


def test_what_was_flushed_survives_a_power_cut(disk: Disk) -> None:
    disk.write(HERE)
    disk.ledger.cut()
    assert disk.judge(HERE) == []
    disk.put(HERE, 1)
    assert {each.kind for each in disk.judge(HERE)} == {MismatchKind.STALE}


def test_any_flush_is_of_all_that_was_acknowledged_before(disk: Disk) -> None:
    disk.write(HERE, flushed=False)
    disk.write(NEXT)
    disk.ledger.cut()
    disk.put(HERE, 1)
    assert disk.judge(HERE)


def test_what_was_not_flushed_is_old_or_new_in_each_atomic_unit(disk: Disk) -> None:
    disk.write(HERE, flushed=False)
    disk.ledger.cut()
    disk.put(HERE, 2)
    disk.put(HERE, 1, upto=UNIT_BYTES + ATOM)
    assert disk.judge(HERE) == []


def test_it_is_never_a_mixture_within_an_atomic_unit(disk: Disk) -> None:
    disk.write(HERE, flushed=False)
    disk.ledger.cut()
    disk.put(HERE, 1, upto=ATOM // 2)
    assert [each.kind for each in disk.judge(HERE)] == [MismatchKind.MIXED]


def test_a_larger_atomic_unit_is_not_mixed_either() -> None:
    ledger = ReferenceModel(1, UNIT_BYTES)
    ledger.add([HERE])
    disk = Disk(ledger, bytearray(8 * UNIT_BYTES))
    disk.write(HERE)
    disk.write(HERE, flushed=False)
    ledger.cut()
    disk.put(HERE, 1, upto=ATOM)
    assert [each.kind for each in disk.judge(HERE)] == [MismatchKind.MIXED]


def test_what_was_found_after_a_power_cut_must_stay(disk: Disk) -> None:
    disk.write(HERE, flushed=False, done=False)
    disk.ledger.cut()
    assert disk.judge(HERE) == []
    disk.put(HERE, 2)
    assert {each.kind for each in disk.judge(HERE)} == {MismatchKind.AHEAD}


def test_unflushed_trim_before_a_cut_leaves_anything(disk: Disk) -> None:
    disk.ledger.trimmed(HERE)
    disk.write(HERE, flushed=False, done=False)
    disk.ledger.cut()
    assert disk.judge(HERE) == []


class TestOverwriting:
    """The power is cut while a region is overwritten pass after pass."""

    @pytest.fixture
    def first(self, disk: Disk) -> int:
        return disk.ledger.begin(UNIT_BYTES, 1 << 16)

    def cut(self, disk: Disk, first: int, acknowledged: int | None) -> None:
        disk.ledger.cut(HERE, Torn(first, acknowledged, UNIT_BYTES))

    def test_before_the_first_pass_was_flushed_all_is_old_or_new(self, disk: Disk, first: int) -> None:
        self.cut(disk, first, None)
        disk.put(HERE, first, upto=UNIT_BYTES + ATOM)
        assert disk.judge(HERE) == []

    def test_nothing_of_it_may_be_there(self, disk: Disk, first: int) -> None:
        self.cut(disk, first, None)
        assert disk.judge(HERE) == []

    def test_a_pass_that_was_told_to_be_flushed_must_be_there(self, disk: Disk, first: int) -> None:
        self.cut(disk, first, first)
        disk.put(HERE, first)
        disk.put(HERE, 1, upto=ATOM)
        assert [each.kind for each in disk.judge(HERE)] == [MismatchKind.STALE]

    def test_a_later_pass_proves_the_one_before_it(self, disk: Disk, first: int) -> None:
        self.cut(disk, first, first)
        disk.put(HERE, first + 4)
        disk.put(HERE, first + 5, upto=UNIT_BYTES)
        assert disk.judge(HERE) == []

    def test_what_is_two_passes_behind_is_lost(self, disk: Disk, first: int) -> None:
        self.cut(disk, first, first)
        disk.put(HERE, first + 5)
        disk.put(HERE, first + 3, upto=ATOM)
        (found,) = disk.judge(HERE)
        assert (found.kind, found.expected) == (MismatchKind.STALE, f"generation {first + 4} or {first + 5}")

    def test_what_was_not_written_is_as_it_was(self, disk: Disk, first: int) -> None:
        self.cut(disk, first, first)
        assert disk.judge(NEXT) == []
        disk.data[NEXT.offset_bytes] ^= 1
        assert disk.judge(NEXT)

    def test_a_pass_that_was_flushed_flushed_everything_else_too(self, disk: Disk) -> None:
        disk.write(NEXT, flushed=False)
        first = disk.ledger.begin(UNIT_BYTES, 1 << 16)
        self.cut(disk, first, first)
        disk.put(NEXT, 1)
        assert disk.judge(NEXT)

    def test_the_next_write_is_later_than_all_passes(self, disk: Disk, first: int) -> None:
        self.cut(disk, first, first)
        disk.put(HERE, first + 1000)
        assert disk.judge(HERE) == []
        assert disk.write(HERE) == first + (1 << 16)
        assert disk.judge(HERE) == []


class TestWriteHole:
    """The array had to be started with members missing after a power cut under writes."""

    @pytest.fixture(autouse=True)
    def _started(self, disk: Disk) -> None:
        first = disk.ledger.begin(UNIT_BYTES, 1 << 16)
        disk.ledger.cut(HERE, Torn(first, first, UNIT_BYTES))
        disk.put(HERE, first)
        disk.ledger.started_dirty()

    def test_a_neighbour_in_the_same_stripe_is_lost_by_it(self, disk: Disk) -> None:
        disk.data[NEXT.offset_bytes : NEXT.offset_bytes + ATOM] = bytes(ATOM)
        (found,) = disk.judge(NEXT)
        assert (found.kind, found.offset_bytes, found.settled) == (MismatchKind.WRITE_HOLE, NEXT.offset_bytes, True)

    def test_data_of_another_stripe_are_just_lost(self, disk: Disk) -> None:
        disk.data[NEXT.end_bytes - ATOM : NEXT.end_bytes] = bytes(ATOM)
        assert [each.kind for each in disk.judge(NEXT)] == [MismatchKind.GARBAGE]

    def test_what_was_being_written_is_nobodys_promise(self, disk: Disk) -> None:
        disk.data[:ATOM] = bytes(ATOM)
        assert disk.judge(HERE) == []
        disk.data[:ATOM] = b"?" * ATOM
        assert disk.judge(HERE) == []

    def test_data_may_not_change_once_they_were_read(self, disk: Disk) -> None:
        assert disk.judge(HERE) == []
        disk.data[:ATOM] = bytes(ATOM)
        assert [each.kind for each in disk.judge(HERE)] == [MismatchKind.WRITE_HOLE]

    @pytest.mark.parametrize("is_repaired", [False, True])
    def test_a_later_cut_of_a_whole_array_excuses_nothing(self, disk: Disk, *, is_repaired: bool) -> None:
        assert disk.judge(HERE) == []
        if is_repaired:
            disk.ledger.repaired()
        assert disk.ledger.has_holes is not is_repaired
        disk.write(HERE)
        disk.write(HERE, flushed=False)
        disk.ledger.cut()
        disk.data[:UNIT_BYTES] = bytes(UNIT_BYTES)
        kind = MismatchKind.GARBAGE if is_repaired else MismatchKind.WRITE_HOLE
        assert {each.kind for each in disk.judge(HERE)} == {kind}

    def test_a_neighbour_is_lost_by_it_until_parity_is_computed_anew(self, disk: Disk) -> None:
        assert disk.judge(NEXT) == []
        disk.ledger.repaired()
        disk.data[NEXT.offset_bytes : NEXT.offset_bytes + ATOM] = bytes(ATOM)
        assert [each.kind for each in disk.judge(NEXT)] == [MismatchKind.GARBAGE]


def test_data_written_after_a_forced_start_have_to_be_there(disk: Disk) -> None:
    disk.write(HERE)
    disk.write(HERE, flushed=False)
    disk.ledger.cut()
    disk.ledger.started_dirty()
    disk.write(HERE)
    disk.data[:ATOM] = bytes(ATOM)
    assert [each.kind for each in disk.judge(HERE)] == [MismatchKind.WRITE_HOLE]


def test_what_may_only_be_one_thing_is_told_in_whole_transfers(disk: Disk) -> None:
    disk.write(HERE, 2 * UNIT_BYTES)
    assert disk.ledger.certain(HERE) == ((0, 4 * UNIT_BYTES, 2),)
    disk.write(HERE, 3 * UNIT_BYTES)
    # The last unit is the second half of a transfer of the write before.
    assert disk.ledger.certain(HERE) == ((0, 3 * UNIT_BYTES, 3),)
    disk.ledger.trimmed(NEXT)
    assert disk.ledger.certain(NEXT) == ()
