from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.integrity.erasure import (
    DISCARD,
    NONE,
    DiscardedTarget,
    DiscardPromise,
    ErasedDrive,
    ErasedDrives,
    ScannedRange,
    left,
)
from pytest_ssdqual.qual.records import from_plain, plain

ZEROES = ScannedRange(0, 4096, None, 0, 7)
ONES = replace(ZEROES, fill=0xFF)
OLD = ScannedRange(0, 4096, 512, None, 9)
OTHER = replace(OLD, old_at=None)
DRIVE = ErasedDrive("A", "NVMe Format, user data erase", sampled=64)


def target(promise: str, first: ScannedRange, again: ScannedRange, *, is_kept: bool = True) -> DiscardedTarget:
    return DiscardedTarget("A", DiscardPromise(promise), (ZEROES, first), (ZEROES, again), is_kept)


@pytest.mark.parametrize(
    ("promise", "first", "again", "findings", "remarks"),
    [
        ("zeroes", ZEROES, ZEROES, 0, 0),
        ("zeroes", OLD, OLD, 1, 1),
        ("zeroes", OTHER, OTHER, 1, 0),
        ("zeroes", ZEROES, OLD, 1, 1),
        ("zeroes", ONES, ONES, 1, 0),
        ("stable", OTHER, OTHER, 0, 0),
        ("stable", OLD, OLD, 0, 1),
        ("stable", OTHER, replace(OTHER, checksum=1), 1, 1),
        ("nothing", OLD, OLD, 0, 1),
        ("nothing", OTHER, replace(OTHER, checksum=1), 0, 1),
    ],
)
def test_only_a_broken_promise_is_a_finding(
    promise: str, first: ScannedRange, again: ScannedRange, findings: int, remarks: int
) -> None:
    found = target(promise, first, again)
    assert (len(found.findings), len(found.remarks)) == (findings, remarks)
    assert len(replace(found, is_kept=False).findings) == findings + 1


def test_ones_are_kept_as_promised() -> None:
    assert not DiscardedTarget("A", DiscardPromise.ONES, (ONES,), (ONES,), is_kept=True).findings


@pytest.mark.parametrize(
    ("method", "promise", "findings"),
    [
        ("NVMe Format, user data erase", "nothing", 1),
        ("ATA Sanitize, block erase", "nothing", 1),
        (DISCARD, "zeroes", 1),
        (DISCARD, "stable", 0),
        (DISCARD, "nothing", 0),
    ],
)
def test_data_left_by_a_method_that_erases_is_a_finding(method: str, promise: str, findings: int) -> None:
    erased = replace(DRIVE, method=method, promise=DiscardPromise(promise))
    assert not erased.findings
    assert not erased.remarks
    left_data = replace(erased, left=(4096,))
    assert (len(left_data.findings), len(left_data.remarks), left_data.nist_class) == (findings, 1 - findings, "none")


@pytest.mark.parametrize(
    ("method", "nist_class"),
    [
        ("NVMe Sanitize, crypto erase", "Purge"),
        ("ATA Sanitize, block erase", "Purge"),
        ("NVMe Format, user data erase", "Clear"),
        ("ATA Security Erase, enhanced", "Clear"),
        ("ATA Security Erase", "Clear"),
        (DISCARD, "none"),
        (NONE, "none"),
    ],
)
def test_class_of_each_method(method: str, nist_class: str) -> None:
    assert replace(DRIVE, method=method).nist_class == nist_class


def test_record_is_read_back() -> None:
    record = ErasedDrives((DRIVE, replace(DRIVE, left=(1, 2), promise=DiscardPromise.ONES)))
    assert from_plain(ErasedDrives, plain(record)) == record


def test_nothing_is_claimed_without_a_sample() -> None:
    known = {replace(DRIVE, sampled=count, read_bytes=size).evidence for count, size in ((0, 0), (0, 1), (1, 0))}
    assert len(known) == 3
    assert [text for text in known if "nothing is known" in text] == [replace(DRIVE, sampled=0).evidence]


SAMPLES = st.lists(st.integers(0, 5), min_size=1, max_size=12)


@given(SAMPLES, st.data())
def test_left_are_places_with_their_own_data_unchanged(values: list[int], data: st.DataObject) -> None:
    def samples(numbers: list[int]) -> list[ScannedRange]:
        return [ScannedRange(at * 4096, 4096, None, None if n else 0, n) for at, n in enumerate(numbers)]

    after = data.draw(st.lists(st.integers(0, 5), min_size=len(values), max_size=len(values)))
    own = [at for at, value in enumerate(values) if value and values.count(value) == 1]
    expected = tuple(at * 4096 for at in own if after[at] == values[at])
    assert left(samples(values), samples(after)) == (len(own), expected)


def test_places_that_cannot_be_read_are_no_evidence() -> None:
    unread = replace(OTHER, size_bytes=0)
    assert left([unread], [unread]) == (0, ())
    assert left([OTHER], [unread]) == (0, ())
    assert left([OTHER], []) == (0, ())
