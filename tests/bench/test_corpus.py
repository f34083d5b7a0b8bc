from __future__ import annotations

import gzip
from pathlib import Path

import corpus
import pytest

DATA = Path(__file__).parents[1] / "data"


def test_every_kind_of_answer_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = {
        "smart.json": DATA / "smartctl" / "qemu-nvme-7.3.json",
        "log.json": DATA / "nvme-cli" / "2.3" / "smart-log.json",
        "lsblk.json": DATA / "lsblk" / "lab-2.38.json",
    }
    for name, path in inputs.items():
        (tmp_path / name).write_bytes(path.read_bytes())
    fio = gzip.decompress((DATA / "series" / "steady.json.gz").read_bytes())
    (tmp_path / "fio.json.gz").write_bytes(gzip.compress(fio))
    messages = "[    1.5] nvme nvme0: I/O 12 QID 1 timeout, aborting\n[    2.5] usb 1-1: new device\n"
    (tmp_path / "dmesg.txt").write_text(messages)
    (tmp_path / "mdstat").write_text(
        "Personalities : [raid1]\nmd0 : active raid1 sdb1[1](F) sda1[0]\n      8 blocks [2/1]\n"
    )
    (tmp_path / "notes.txt").write_text("not of a tool")
    assert corpus.main([str(tmp_path), "--names", "nvme0"]) == 0
    printed = capsys.readouterr().out
    assert "6 read" in printed.splitlines()[-1] and "1 no reader" in printed.splitlines()[-1]  # noqa: PT018
    assert "messages: 1\n" in printed
    assert "md0: sdb1, sda1\n" in printed
    assert "timeout, aborting" in printed


def test_drive_that_smartctl_cannot_open_is_refused() -> None:
    text = '{"smartctl": {"exit_status": 2, "messages": [{"string": "Permission denied", "severity": "error"}]}}'
    kind, outcome, found = corpus.read(text)
    assert (kind, outcome) == ("smartctl", "refused")
    assert "Permission denied" in str(found["because"])


def test_what_no_reader_may_raise_is_a_bug(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def raising(text: str, names: str) -> dict[str, object]:
        raise KeyError("model")

    monkeypatch.setitem(corpus.KINDS, "smartctl", ("smartctl", raising))
    (tmp_path / "x.json").write_text('{"smartctl": {}}')
    assert corpus.read('{"smartctl": {}}')[1] == "BUG"
    assert corpus.main([str(tmp_path)]) == 1


def test_an_empty_folder_is_not_green(tmp_path: Path) -> None:
    assert corpus.main([str(tmp_path)]) == 1
