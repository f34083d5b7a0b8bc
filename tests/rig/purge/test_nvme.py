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
from pytest_ssdqual.rig.purge import nvme, zero
from pytest_ssdqual.rig.purge.zero import PassedOver

DATA = Path(__file__).parents[2] / "data" / "nvme-cli" / "2.3"
DRIVE = Drive("/dev/nvme0n1", "nvme0n1", "ACME", "S0", None, None, 256 << 20, 512, 512, False, "nvme")
INVALID = "NVMe status: Invalid Field in Command: A reserved coded value or an unsupported value(0x4002)\n"
#: SSTAT, bits 2:0.
NEVER, DONE, UNDER_WAY, FAILED, DONE_UNALLOCATED = range(5)
BLOCK, CRYPTO, OVERWRITE = 0b010, 0b001, 0b100


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zero, "FIRST_PAUSE_S", 0.0)


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


def test_a_namespace_is_formatted_in_the_format_it_has() -> None:
    here = FakeNvme().machine()
    assert nvme.format_namespace(here, DRIVE) == "NVMe Format, user data erase"
    (argv,) = sent(here, "format")
    assert argv[2:8] == ("/dev/nvme0n1", "--ses=1", "--lbaf=0", "--ms=0", "--pi=0", "--pil=0")
    assert "--force" in argv  # without it, it waits ten seconds for a human
    assert here.bound == [("alone", DRIVE.path, ("nvme", "format"))]


@pytest.mark.parametrize(
    ("namespace", "options"),
    [
        ({"flbas": 4}, ("--lbaf=4", "--ms=0", "--pi=0", "--pil=0")),
        ({"flbas": 0x11, "dps": 0b1010}, ("--lbaf=1", "--ms=1", "--pi=2", "--pil=1")),
        ({"flbas": 0x22}, ("--lbaf=18", "--ms=0", "--pi=0", "--pil=0")),
    ],
)
def test_sector_size_and_protection_are_kept(namespace: dict[str, object], options: tuple[str, ...]) -> None:
    nvme.format_namespace(here := FakeNvme(namespace=namespace).machine(), DRIVE)
    assert sent(here, "format")[0][4:8] == options


@pytest.mark.parametrize("became", [{"flbas": 0}, {"dps": 0}, {"nsze": 1}, {"fpi": 0x80 | 40}])
def test_a_drive_that_is_another_one_afterwards_is_an_error(became: dict[str, object]) -> None:
    drive = FakeNvme(namespace={"flbas": 4, "dps": 1}, formatted_to=became)
    with pytest.raises(RigError, match=r"S0\) has changed its layout by being formatted: .* became "):
        nvme.format_namespace(drive.machine(), DRIVE)


def test_a_format_that_is_whole_again_is_none_of_that() -> None:
    assert nvme.format_namespace(FakeNvme(formatted_to={"fpi": 0x80}).machine(), DRIVE)


def test_a_controller_without_the_command_is_not_asked_for_it() -> None:
    here = FakeNvme({"oacs": 0b101}).machine()
    with pytest.raises(PassedOver, match="does not support it"):
        nvme.format_namespace(here, DRIVE)
    assert not sent(here, "format")


def test_a_drive_that_refuses_to_be_formatted_is_passed_over_with_its_own_words() -> None:
    with pytest.raises(PassedOver, match=r"^the drive refused it: NVMe status: Invalid Field"):
        nvme.format_namespace(FakeNvme(refuses=("format",)).machine(), DRIVE)


@pytest.mark.parametrize("broken", ["id-ctrl", "id-ns"])
def test_who_does_not_say_what_he_is_is_not_formatted(broken: str) -> None:
    here = FakeNvme(refuses=(broken,)).machine()
    with pytest.raises(PassedOver, match=f"^nvme {broken} failed: NVMe status"):
        nvme.format_namespace(here, DRIVE)
    assert not sent(here, "format")


@pytest.mark.parametrize("answer", ["", "{", "[]"])
def test_an_answer_that_cannot_be_read_is_none(answer: str) -> None:
    here = FakeNvme().machine().on("nvme", "id-ctrl", answer=answer)
    with pytest.raises(PassedOver, match="printed no JSON object"):
        nvme.format_namespace(here, DRIVE)


def test_without_its_format_a_namespace_is_not_formatted() -> None:
    here = FakeNvme().machine().on("nvme", "id-ns", answer='{"nsze": 524288}')
    with pytest.raises(PassedOver, match="does not report its format"):
        nvme.format_namespace(here, DRIVE)


def test_a_drive_that_falls_silent_after_its_format_is_an_error() -> None:
    drive = FakeNvme()
    here = drive.machine()

    def silenced(argv: tuple[str, ...]) -> str:
        drive.refuses = ("id-ns",)
        return ""

    here.on("nvme", "format", answer=silenced)
    with pytest.raises(RigError, match="was formatted and has not answered since"):
        nvme.format_namespace(here, DRIVE)


#: Bit 0 or 1 of FNA: it reaches all namespaces. NN is 256 in QEMU's drives.
REACHES = ({"fna": 1}, {"fna": 2}, {"fna": 7})


@pytest.mark.parametrize("controller", REACHES)
def test_a_format_that_would_reach_drives_nobody_gave_us_is_not_made(controller: dict[str, object]) -> None:
    here = FakeNvme(controller, namespaces=2).machine()
    with pytest.raises(PassedOver, match="it would reach 2 namespaces, not this drive alone"):
        nvme.format_namespace(here, DRIVE)
    assert not sent(here, "format")


@pytest.mark.parametrize("controller", REACHES)
def test_where_there_is_one_namespace_it_reaches_no_other(controller: dict[str, object]) -> None:
    assert nvme.format_namespace(here := FakeNvme(controller).machine(), DRIVE)
    assert sent(here, "list-ns")[0][3] == "--all"  # attached to this controller or not


def test_a_format_of_one_namespace_asks_for_no_others() -> None:
    nvme.format_namespace(here := FakeNvme(namespaces=2).machine(), DRIVE)
    assert not sent(here, "list-ns")


def test_a_controller_that_can_have_one_namespace_only_need_not_list_them() -> None:
    """Consumer drives: no namespace management, so the list of all of them is refused."""
    drive = FakeNvme({"oacs": 0x17, "fna": 5, "nn": 1}, refuses=("list-ns",))
    assert nvme.format_namespace(drive.machine(), DRIVE)


def test_without_namespace_management_the_active_ones_are_all_there_are() -> None:
    here = FakeNvme({"oacs": 0x17, "fna": 1}, refuses=("list-ns --all",)).machine()
    assert nvme.format_namespace(here, DRIVE)


def test_but_not_if_another_controller_may_have_some_of_its_own() -> None:
    here = FakeNvme({"oacs": 0x17, "fna": 1, "cmic": 2}, refuses=("list-ns --all",)).machine()
    with pytest.raises(PassedOver, match="namespaces of other controllers"):
        nvme.format_namespace(here, DRIVE)


@pytest.mark.parametrize("answer", [completed(["nvme"], status=1, stderr=INVALID), completed(["nvme"], "{}")])
def test_who_does_not_say_how_many_namespaces_there_are_is_not_formatted(answer: Completed) -> None:
    here = FakeNvme({"fna": 1}).machine().on("nvme", "list-ns", answer=answer)
    with pytest.raises(PassedOver):
        nvme.format_namespace(here, DRIVE)
    assert not sent(here, "format")


def test_what_a_controller_does_not_tell_is_taken_for_the_worst() -> None:
    here = FakeNvme(namespaces=2).machine().on("nvme", "id-ctrl", answer='{"oacs": 10}')
    with pytest.raises(PassedOver, match="reach 2 namespaces"):
        nvme.format_namespace(here, DRIVE)


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
def test_a_drive_is_sanitized_until_it_says_that_it_is_done(sanicap: int, action: int, done: str, ends: int) -> None:
    here = FakeNvme({"sanicap": sanicap}, ends=ends, looks=3).machine()
    assert nvme.sanitize(here, DRIVE) == f"NVMe Sanitize, {done}"
    assert sent(here, "sanitize") == [("nvme", "sanitize", "/dev/nvme0n1", f"--sanact={action}", "--ause")]
    assert here.bound == [("alone", DRIVE.path, ("nvme", "sanitize"))]
    after = here.asked[here.asked.index(sent(here, "sanitize")[0]) + 1 :]
    assert [argv[1] for argv in after] == ["-c", "get-log"]
    (work,) = here.must_finish
    assert work.what.startswith("NVMe Sanitize of /dev/nvme0n1")


@pytest.mark.parametrize("sanicap", [0, OVERWRITE, 1 << 29])
def test_the_lab_s_drives_cannot_and_overwriting_is_no_purge(sanicap: int) -> None:
    here = FakeNvme({"sanicap": sanicap}).machine()
    with pytest.raises(PassedOver, match="supports neither block erase nor crypto erase"):
        nvme.sanitize(here, DRIVE)
    assert not sent(here, "sanitize")


def test_a_subsystem_with_other_namespaces_is_not_sanitized() -> None:
    here = FakeNvme({"sanicap": BLOCK}, namespaces=3).machine()
    with pytest.raises(PassedOver, match="it would reach 3 namespaces"):
        nvme.sanitize(here, DRIVE)
    assert not sent(here, "sanitize")


def test_a_sanitize_that_goes_on_already_is_waited_for_first() -> None:
    here = FakeNvme({"sanicap": BLOCK}, state=UNDER_WAY, last_action=4, looks=5).machine()
    assert nvme.sanitize(here, DRIVE) == "NVMe Sanitize, block erase"
    before = here.asked[: here.asked.index(sent(here, "sanitize")[0])]
    assert [argv[1] for argv in before][-3:] == ["get-log", "-c", "get-log"]


def test_a_refused_sanitize_is_passed_over() -> None:
    with pytest.raises(PassedOver, match="the drive refused it: NVMe status: Invalid"):
        nvme.sanitize(FakeNvme({"sanicap": BLOCK}, refuses=("sanitize",)).machine(), DRIVE)


def test_a_drive_whose_sanitize_fails_is_made_to_take_data_again() -> None:
    here = FakeNvme({"sanicap": BLOCK}, ends=FAILED).machine()
    with pytest.raises(PassedOver, match="the block erase failed in the drive, which then left its failure mode"):
        nvme.sanitize(here, DRIVE)
    assert sent(here, "sanitize")[-1] == ("nvme", "sanitize", "/dev/nvme0n1", "--sanact=1")


def test_one_that_cannot_be_is_an_error_that_says_so() -> None:
    drive = FakeNvme({"sanicap": BLOCK}, ends=FAILED, refuses=("sanitize --sanact=1",))
    with pytest.raises(RigError, match=r"S0\) did not complete its sanitize \(block erase\), and may refuse all data"):
        nvme.sanitize(drive.machine(), DRIVE)


def test_the_success_of_an_earlier_sanitize_is_not_that_of_this_one() -> None:
    drive = FakeNvme({"sanicap": BLOCK}, state=DONE, last_action=4)
    here = drive.machine().on("nvme", "sanitize", answer="")  # says yes and does nothing
    with pytest.raises(RigError, match="did not complete its sanitize"):
        nvme.sanitize(here, DRIVE)


def test_a_log_that_cannot_be_read_any_more_is_not_a_success() -> None:
    drive = FakeNvme({"sanicap": BLOCK})
    here = drive.machine()

    def silenced(argv: tuple[str, ...]) -> str:
        drive.refuses = ("get-log",)
        return ""

    here.on("nvme", "sanitize", answer=silenced)
    with pytest.raises(RigError, match="did not complete its sanitize"):
        nvme.sanitize(here, DRIVE)


def test_sanitize_without_end_is_an_error() -> None:
    here = FakeNvme({"sanicap": BLOCK}).machine().on("sh", answer=DeadlineExceeded("it did not end and goes on"))
    with pytest.raises(RigError, match=r"is still being sanitized after 4 h"):
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


def test_format_must_finish_and_says_so_to_other_runs() -> None:
    here = FakeNvme().machine()
    nvme.format_namespace(here, DRIVE)
    (work,) = here.must_finish
    assert work.what == f"NVMe Format of {DRIVE.describe()}"
    assert all(lock.endswith("~unfinished.lock") for lock in work.locks)


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
