from __future__ import annotations

import platform
from pathlib import Path

import pytest

from pytest_ssdqual.lab.host import TO_BOOT, LabUnavailable, Program, cache_directory, require


def test_all_that_is_missing_is_named_with_what_installs_it() -> None:
    programs = [Program("sh", "dash"), Program("no-qemu", "qemu"), Program("no-ssh", "ssh"), Program("no-scp", "ssh")]
    with pytest.raises(LabUnavailable) as caught:
        require(programs)
    assert "no-qemu, no-ssh, no-scp," in str(caught.value)
    assert str(caught.value).endswith("install qemu ssh")


def test_a_host_that_has_everything() -> None:
    require([Program("sh", "dash")])


def test_an_unknown_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(LabUnavailable, match="one is riscv64"):
        require([])


def test_booting_needs_the_architectures_qemu() -> None:
    assert Program("qemu-system-x86_64", "qemu-system-x86") in TO_BOOT


def test_the_cache_is_where_the_standard_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache_directory() == Path("/elsewhere/pytest-ssdqual")
    monkeypatch.setenv("HOME", "/home/me")
    for unusable in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", unusable)
        assert cache_directory() == Path("/home/me/.cache/pytest-ssdqual")
