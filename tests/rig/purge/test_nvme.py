from __future__ import annotations

import json
import os
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.fakes.scripted import ScriptedMachine, completed

from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.machine.machine import Completed, DeadlineExceeded, RigError
from pytest_ssdqual.rig.purge import nvme
from pytest_ssdqual.rig.purge.zero import PassedOver

DATA = Path(__file__).parents[2] / "data" / "nvme-cli" / "2.3"
DRIVE = Drive("/dev/nvme0n1", "nvme0n1", "ACME", "S0", None, None, 256 << 20, 512, 512, False, "nvme")
INVALID = "NVMe status: Invalid Field in Command: A reserved coded value or an unsupported value(0x4002)\n"
#: SSTAT, bits 2:0.
NEVER, DONE, UNDER_WAY, FAILED, DONE_UNALLOCATED = range(5)
BLOCK, CRYPTO, OVERWRITE = 0b010, 0b001, 0b100


@dataclass
class FakeNvme:
    """Answers as nvme-cli does for the lab's drive, with what is changed in its identity; it can sanitize, too."""

    controller: dict[str, object] = field(default_factory=dict)
    namespace: dict[str, object] = field(default_factory=dict)
    #: What ``id-ns`` says after a format.
    formatted_to: dict[str, object] = field(default_factory=dict)
    namespaces: int = 1
    state: int = NEVER
    last_action: int = 0
    #: Looks at the log until a sanitize is over, and how it is then.
    looks: int = 2
    ends: int = DONE
    refuses: tuple[str, ...] = ()

    #: Commands that are refused once a command of that name was sent.
    then_refuses: dict[str, str] = field(default_factory=dict)

    def machine(self) -> ScriptedMachine:
        return ScriptedMachine().on("nvme", answer=self._answer).on("sh", answer=self._awaited)

    def _awaited(self, argv: tuple[str, ...]) -> Completed:
        """What ``AWAIT_SANITIZE`` does."""
        while self.state == UNDER_WAY:
            self._log(argv)
        return completed(argv)

    def _answer(self, argv: tuple[str, ...]) -> Completed:
        if argv[1] in self.refuses or f"{argv[1]} {argv[3]}" in self.refuses:
            return completed(argv, status=1, stderr=INVALID)
        self.refuses = (*self.refuses, *filter(None, [self.then_refuses.get(argv[1])]))
        if argv[1] == "get-log":
            return self._log(argv)
        return completed(argv, getattr(self, f"_{argv[1].replace('-', '_')}")(argv))

    def _id_ctrl(self, argv: Sequence[str]) -> str:
        return json.dumps({**json.loads((DATA / "id-ctrl.json").read_text()), **self.controller})

    def _id_ns(self, argv: Sequence[str]) -> str:
        return json.dumps({**json.loads((DATA / "id-ns.json").read_text()), **self.namespace})

    def _list_ns(self, argv: Sequence[str]) -> str:
        return json.dumps({"nsid_list": [{"nsid": number + 1} for number in range(self.namespaces)]})

    def _format(self, argv: Sequence[str]) -> str:
        self.namespace |= self.formatted_to
        return "Success formatting namespace:1\n"

    def _sanitize(self, argv: Sequence[str]) -> str:
        action = int(argv[3].removeprefix("--sanact="))
        self.state, self.last_action = (DONE, 0) if action == 1 else (UNDER_WAY, action)
        return ""

    def _log(self, argv: tuple[str, ...]) -> Completed:
        if self.state == UNDER_WAY:
            self.looks -= 1
            if self.looks < 0:
                self.state = self.ends
        progress = 0x7FFF if self.state == UNDER_WAY else 0xFFFF
        page = struct.pack("<HHI", progress, self.state | 1 << 8, self.last_action).ljust(512, b"\0")
        return Completed(argv, 0, page, b"", "2026-01-01T00:00:00+00:00", 0.0)


def sent(here: ScriptedMachine, command: str) -> list[tuple[str, ...]]:
    return [argv for argv in here.asked if argv[1] == command]


@pytest.mark.parametrize(
    ("namespace", "options"),
    [
        ({}, ("--lbaf=0", "--ms=0", "--pi=0", "--pil=0")),
        ({"flbas": 4}, ("--lbaf=4", "--ms=0", "--pi=0", "--pil=0")),
        ({"flbas": 0x11, "dps": 0b1010}, ("--lbaf=1", "--ms=1", "--pi=2", "--pil=1")),
        ({"flbas": 0x22}, ("--lbaf=18", "--ms=0", "--pi=0", "--pil=0")),
    ],
)
def test_namespace_is_formatted_in_the_format_it_has(namespace: dict[str, object], options: tuple[str, ...]) -> None:
    here = FakeNvme(namespace=namespace, namespaces=2).machine()
    assert nvme.format_namespace(here, DRIVE).startswith("NVMe Format")
    (argv,) = sent(here, "format")
    assert argv[2:8] == ("/dev/nvme0n1", "--ses=1", *options)
    assert "--force" in argv  # without it, it waits ten seconds for a human
    assert here.bound == [("alone", DRIVE.path, ("nvme", "format"))]
    assert not sent(here, "list-ns"), "it is about this namespace only"
    (work,) = here.must_finish
    assert work.what == f"NVMe Format of {DRIVE.describe()}"
    assert all(lock.endswith("~unfinished.lock") for lock in work.locks)


@pytest.mark.parametrize(
    ("drive", "cause"),
    [
        *(
            (FakeNvme(namespace={"flbas": 4, "dps": 1}, formatted_to={name: value}), r"changed its layout .* became ")
            for name, value in (("flbas", 0), ("dps", 0), ("nsze", 1), ("fpi", 0x80 | 40))
        ),
        (FakeNvme(then_refuses={"format": "id-ns"}), "has not answered"),
    ],
)
def test_drive_that_is_another_one_after_its_format_is_an_error(drive: FakeNvme, cause: str) -> None:
    with pytest.raises(RigError, match=rf"S0\) .*{cause}"):
        nvme.format_namespace(drive.machine(), DRIVE)


@pytest.mark.parametrize(
    ("drive", "answers", "reason"),
    [
        (FakeNvme({"oacs": 0b101}), {}, "does not support it"),
        (FakeNvme(refuses=("id-ctrl",)), {}, "id-ctrl failed: NVMe"),
        (FakeNvme(refuses=("id-ns",)), {}, "id-ns failed: NVMe"),
        *((FakeNvme(), {"id-ctrl": answer}, "no JSON object") for answer in ("", "{", "[]")),
        (FakeNvme(), {"id-ns": '{"nsze": 524288}'}, "report its format"),
        # Bit 0 or 1 of FNA: it reaches all namespaces. NN is 256 in QEMU's drives.
        *((FakeNvme({"fna": fna}, namespaces=2), {}, "reach 2 namespaces") for fna in (1, 2, 7)),
        # What a controller does not tell is taken for the worst.
        (FakeNvme(namespaces=2), {"id-ctrl": '{"oacs": 10}'}, "reach 2 namespaces"),
        (FakeNvme({"oacs": 0x17, "fna": 1, "cmic": 2}, refuses=("list-ns --all",)), {}, "of other controllers"),
        (FakeNvme({"fna": 1}, refuses=("list-ns",)), {}, "list-ns failed: NVMe"),
        (FakeNvme({"fna": 1}), {"list-ns": "{}"}, "an unknown number"),
    ],
)
def test_drive_that_cannot_be_formatted_alone_is_passed_over(
    drive: FakeNvme, answers: dict[str, str], reason: str
) -> None:
    here = drive.machine()
    for command, answer in answers.items():
        here.on("nvme", command, answer=answer)
    with pytest.raises(PassedOver, match=reason):
        nvme.format_namespace(here, DRIVE)
    assert not sent(here, "format")


def test_drive_that_refuses_its_format_is_passed_over() -> None:
    with pytest.raises(PassedOver, match="refused it: NVMe"):
        nvme.format_namespace(FakeNvme(refuses=("format",)).machine(), DRIVE)


@pytest.mark.parametrize(
    ("drive", "listed"),
    [
        (FakeNvme(formatted_to={"fpi": 0x80}), []),  # whole again
        # It manages namespaces, attached to this controller or not.
        *((FakeNvme({"fna": fna}), ["--all"]) for fna in (1, 2, 7)),
        # Consumer drives: no namespace management, so the list of all of them is refused.
        (FakeNvme({"oacs": 0x17, "fna": 5, "nn": 1}, refuses=("list-ns",)), []),
        (FakeNvme({"oacs": 0x17, "fna": 1}, refuses=("list-ns --all",)), ["--output-format=json"]),
    ],
)
def test_format_that_reaches_one_namespace_is_made(drive: FakeNvme, listed: list[str]) -> None:
    here = drive.machine()
    assert nvme.format_namespace(here, DRIVE)
    assert [argv[3] for argv in sent(here, "list-ns")] == listed


@pytest.mark.parametrize(
    ("sanicap", "action", "done"),
    [
        (BLOCK | CRYPTO | OVERWRITE, 2, "block erase"),
        (BLOCK, 2, "block erase"),
        (CRYPTO, 4, "crypto erase"),
        # nvme-cli 2.1: bits 31 and 29 in a signed number.
        ((BLOCK | 1 << 31 | 1 << 29) - (1 << 32), 2, "block erase"),
    ],
)
@pytest.mark.parametrize("ends", [DONE, DONE_UNALLOCATED])
def test_drive_is_sanitized_until_it_reports_the_end(sanicap: int, action: int, done: str, ends: int) -> None:
    here = FakeNvme({"sanicap": sanicap}, ends=ends, looks=3).machine()
    assert nvme.sanitize(here, DRIVE) == f"NVMe Sanitize, {done}"
    assert sent(here, "sanitize") == [("nvme", "sanitize", "/dev/nvme0n1", f"--sanact={action}", "--ause")]
    assert here.bound == [("alone", DRIVE.path, ("nvme", "sanitize"))]
    after = here.asked[here.asked.index(sent(here, "sanitize")[0]) + 1 :]
    assert [argv[1] for argv in after] == ["-c", "get-log"]
    (work,) = here.must_finish
    assert DRIVE.describe() in work.what


@pytest.mark.parametrize(
    ("drive", "reason"),
    [
        *((FakeNvme({"sanicap": sanicap}), "neither block erase") for sanicap in (0, OVERWRITE, 1 << 29)),
        (FakeNvme({"sanicap": BLOCK}, namespaces=3), "reach 3 namespaces"),
    ],
)
def test_drive_that_cannot_be_sanitized_alone_is_passed_over(drive: FakeNvme, reason: str) -> None:
    """Overwriting is no purge."""
    here = drive.machine()
    with pytest.raises(PassedOver, match=reason):
        nvme.sanitize(here, DRIVE)
    assert not sent(here, "sanitize")


def test_a_sanitize_that_goes_on_already_is_waited_for_first() -> None:
    here = FakeNvme({"sanicap": BLOCK}, state=UNDER_WAY, last_action=4, looks=5).machine()
    assert nvme.sanitize(here, DRIVE).endswith("block erase")
    before = here.asked[: here.asked.index(sent(here, "sanitize")[0])]
    assert [argv[1] for argv in before][-3:] == ["get-log", "-c", "get-log"]


def test_sanitize_that_is_refused_or_fails_is_passed_over() -> None:
    with pytest.raises(PassedOver, match="refused it: NVMe"):
        nvme.sanitize(FakeNvme({"sanicap": BLOCK}, refuses=("sanitize",)).machine(), DRIVE)
    here = FakeNvme({"sanicap": BLOCK}, ends=FAILED).machine()
    with pytest.raises(PassedOver, match="failure mode"):
        nvme.sanitize(here, DRIVE)
    assert sent(here, "sanitize")[-1] == ("nvme", "sanitize", "/dev/nvme0n1", "--sanact=1")


@pytest.mark.parametrize(
    ("drive", "answers"),
    [
        (FakeNvme({"sanicap": BLOCK}, ends=FAILED, refuses=("sanitize --sanact=1",)), {}),
        # It does nothing, and the log is of an earlier one.
        (FakeNvme({"sanicap": BLOCK}, state=DONE, last_action=4), {("nvme", "sanitize"): ""}),
        (FakeNvme({"sanicap": BLOCK}, then_refuses={"sanitize": "get-log"}), {}),
        (FakeNvme({"sanicap": BLOCK}), {("sh",): DeadlineExceeded("it did not end and goes on")}),
    ],
    ids=["stays failed", "an earlier success", "no log", "no end"],
)
def test_sanitize_without_proof_of_its_end_is_an_error(
    drive: FakeNvme, answers: dict[tuple[str, ...], str | Exception]
) -> None:
    here = drive.machine()
    for command, answer in answers.items():
        here.on(*command, answer=answer)
    with pytest.raises(RigError, match=r"its sanitize|being sanitized"):
        nvme.sanitize(here, DRIVE)


#: A drive whose log says "in progress" (SSTAT 2, with bit 8 set) as often as ``left`` says, and then "completed".
NVME = r"""#!/bin/sh
left=$(cat "${0%/*}/left")
echo $((left - 1)) >"${0%/*}/left"
if [ "$left" -gt 0 ]; then printf '\377\177\002\001'; else printf '\377\377\001\001'; fi
head -c 508 /dev/zero
"""


@pytest.mark.parametrize("log", [NVME, "#!/bin/sh\necho 'NVMe status: Invalid Log Page' >&2; exit 1\n"])
def test_await_sanitize_script_ends_with_the_sanitize(log: str, tmp_path: Path) -> None:
    (tmp_path / "nvme").write_text(log)
    (tmp_path / "nvme").chmod(0o755)
    (tmp_path / "left").write_text("3\n")
    argv = ["sh", "-c", nvme.AWAIT_SANITIZE, "await", "/dev/nvme0n1", "0", *nvme.SANITIZE_STATUS]
    subprocess.run(argv, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, check=True, timeout=60)
    assert (tmp_path / "left").read_text() == ("-1\n" if log is NVME else "3\n")


@pytest.mark.parametrize(
    ("drive", "waited"),
    [
        (FakeNvme(state=UNDER_WAY), True),
        (FakeNvme(state=DONE), False),
        (FakeNvme(state=FAILED), False),
        (FakeNvme(refuses=("get-log",)), False),  # the lab's drives keep no such log
    ],
)
def test_whether_a_sanitize_was_under_way(drive: FakeNvme, waited: bool) -> None:
    assert nvme.await_sanitize(drive.machine(), DRIVE) is waited
    assert drive.state != UNDER_WAY
