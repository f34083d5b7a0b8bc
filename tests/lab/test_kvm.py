from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pytest_ssdqual.lab import host
from pytest_ssdqual.lab.image.image import Image
from pytest_ssdqual.lab.kvm import accelerator

IMAGE = Image(Path("/cache/kernel"), Path("/cache/initrd"))


@pytest.fixture
def qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A QEMU that counts its starts and says what ``says`` holds, on a host with a device file for KVM."""
    program = tmp_path / "qemu"
    program.write_text(f"#!/bin/sh\necho >>{tmp_path}/starts\ncat {tmp_path}/says\n")
    program.chmod(0o755)
    monkeypatch.setattr(os, "access", lambda *_: True)
    monkeypatch.setattr(host, "QEMU", str(program))
    return program


def test_kvm_is_used_if_it_starts_a_kernel_and_tried_once(qemu: Path, tmp_path: Path) -> None:
    (tmp_path / "says").write_text("")
    assert [accelerator(IMAGE, tmp_path / "cache") for _ in range(3)] == ["tcg"] * 3, "the kernel prints nothing"
    assert (tmp_path / "starts").read_text() == "\n"
    os.utime(qemu, ns=(1, 1))  # another QEMU
    (tmp_path / "says").write_text("Kernel panic - not syncing: no root\n")
    assert [accelerator(IMAGE, tmp_path / "cache") for _ in range(3)] == ["kvm"] * 3
    assert (tmp_path / "starts").read_text() == "\n\n"


def test_a_kernel_that_hangs_means_emulation(qemu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*_: object, timeout: float, **__: object) -> None:
        raise subprocess.TimeoutExpired("qemu", timeout)

    monkeypatch.setattr(subprocess, "run", hang)
    assert accelerator(IMAGE, tmp_path / "cache") == "tcg"


def test_without_the_device_nothing_is_started(qemu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert accelerator(IMAGE, tmp_path / "cache") == "tcg"
    assert not (tmp_path / "starts").exists()
