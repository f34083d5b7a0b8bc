"""Commands that make drives fail; that QEMU takes them, and what comes of them, is rehearsed in ``suites/faults``."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.lab.faults import EVERYTHING, WRITES, QmpCommand, RequestKind, Warned, failing, mended, warned

from pytest_ssdqual.lab.drives import Names, drive_argv, shelf

positions = st.integers(0, 23)


def reopened_over(command: QmpCommand) -> str:
    """The node that a drive is put over; all else must be as it was when the machine was started."""
    assert command.name == "blockdev-reopen"
    listed = command.arguments["options"]
    assert isinstance(listed, list)
    (options,) = listed
    position = int(options["node-name"].removeprefix("drive"))
    (drive,) = shelf(1)
    at_boot = dict(part.split("=", 1) for part in drive_argv(position, drive, Path("/lab"))[5].split(","))
    assert options | {"file": at_boot["file"]} == at_boot
    return str(options["file"])


@given(positions, st.sets(st.sampled_from(RequestKind), min_size=1))
def test_only_what_was_asked_for_fails_and_goes_on_failing(position: int, requests: set[RequestKind]) -> None:
    added, reopened = failing(Names(position), requests)
    rules = added.arguments["inject-error"]
    assert isinstance(rules, list)
    assert {rule["iotype"] for rule in rules} == {request.value for request in requests}
    assert not any(rule["once"] for rule in rules)
    assert added.arguments["image"] == f"media{position}"
    assert reopened_over(reopened) == added.arguments["node-name"]


@given(positions)
def test_a_mended_drive_is_as_it_was_at_boot(position: int) -> None:
    added, _ = failing(Names(position), EVERYTHING)
    reopened, deleted = mended(Names(position))
    assert reopened_over(reopened) == f"media{position}"
    assert deleted == QmpCommand("blockdev-del", {"node-name": added.arguments["node-name"]})


def test_a_drive_that_takes_no_data_still_gives_them() -> None:
    assert RequestKind.READ not in WRITES
    assert {RequestKind.WRITE, RequestKind.ZEROES, RequestKind.DISCARD} == WRITES


@pytest.mark.parametrize(("warning", "bits"), [(Warned.READ_ONLY, 8), (Warned.NONE, 0)])
def test_the_warning_is_a_bit_of_the_drives_own_controller(warning: Warned, bits: int) -> None:
    assert warned(Names(2), warning).arguments == {
        "path": "/machine/peripheral/ssd2",
        "property": "smart_critical_warning",
        "value": bits,
    }
