"""Types of drives for smartctl, on the lab's NVMe drives."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.lab.bare_drives import Bench

from pytest_ssdqual.rig.health import health

pytestmark = [pytest.mark.lab, pytest.mark.unhurried]


def test_drives_are_identified_and_read_by_their_types(here: Bench) -> None:
    plain, typed, wrong, silent = here.drives[:4]
    drives = [
        plain,
        replace(typed, smart_type="nvme"),
        replace(wrong, smart_type="megaraid,4"),
        replace(silent, smart_type="none", firmware="kernel's"),
    ]
    found = health.identify(here.machine, drives)
    assert [found[drive.path].serial for drive in drives[:2]] == [plain.serial, typed.serial]
    assert [found[drive.path].firmware for drive in drives[:2]] == [plain.firmware, typed.firmware]
    assert found[wrong.path].problem
    assert (found[silent.path].firmware, found[silent.path].problem) == ("kernel's", "")
    assert list(health.read(here.machine, [*drives[:2], drives[3]])) == [plain.path, typed.path]
