"""Nothing that a document, a workload or an option says becomes an option of fio, mdadm or ssh, or shell text."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.mutations import fuzzed, plain_like
from support.fakes.bound_commands import unbound

import pytest_ssdqual
from pytest_ssdqual.plugin.options.device_address import parse_devices
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import protocol as protocols
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.toml import DocumentError
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.fio.jobs import Job, JobTarget, fill, measurement
from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.machine import RigError, spelled
from pytest_ssdqual.rig.machine.ssh import SshTarget as Host
from pytest_ssdqual.rig.md import mdadm

#: Each would be harm, if it got through in one piece.
PAYLOADS = (
    "4k --exec_prerun=reboot", "4k\n[global]\nexec_prerun=reboot", "4k\nexec_prerun=reboot", "--exec_prerun=reboot",
    "4k:exec_prerun=reboot", "4k;reboot", "$(reboot)", "`reboot`", "4k/50:4k/50 --x", "none --force", "internal\n--run",
    "n2 --assume-clean", "n2\n", "f9", "left-symmetric /dev/sda", "64k /dev/sda", "/dev/sda:/dev/sdb", "/etc/passwd",
    "randread --filename=/dev/sda", "a\0b", "%s", "$mb_memory", "-oProxyCommand=x", "\u2028", "4K", " 4k ", "4 KiB",
)  # fmt: skip
HOSTILE = st.sampled_from(PAYLOADS) | st.text(max_size=20)
#: Every option that a job of ours has, whatever it does.
OPTION = re.compile(r"--(?P<name>[a-z_0-9-]+)(?:=(?P<value>[A-Za-z0-9._:/,+%@~-]*))?")
HARMFUL = ("exec", "write_", "read_iolog", "replay", "include", "client", "server", "cgroup", "directory", "opendir")
SHIPPED = Path(pytest_ssdqual.__file__).parent / protocols.FOLDER


def assert_harmless(job: Job, *paths: str) -> None:
    argv = unbound(job.argv("/run/out.json"))
    assert argv[0] == "fio"
    for word in argv[1:]:
        option = OPTION.fullmatch(word)
        assert option, word
        assert not option["name"].startswith(HARMFUL), word
        assert option["name"] != "filename" or option["value"] in paths, word


@fuzzed(150)
@given(st.data())
def test_a_workload_is_what_it_says_or_none(data: st.DataObject) -> None:
    fields = {
        "rw": "randrw", "bs": "4k", "offset": "0", "name": "", "qd_per_drive": 8, "read_percent": 70, "threads": None,
        "random_percent": 100, "streams_per_drive": 1,
    }  # fmt: skip
    name = data.draw(st.sampled_from(sorted(fields)))
    fields[name] = data.draw(HOSTILE)
    try:
        workload = Workload(**fields)  # type: ignore[arg-type]
        jobs = [measurement(workload, [JobTarget("/dev/md100", 1 << 30)], 3, 10)]
        jobs.append(measurement(workload, [JobTarget("/dev/sdb", 1 << 30), JobTarget("/dev/sdc", 1 << 30)], 2, 10))
    except (ValueError, TypeError):
        return
    for job in jobs:
        assert_harmless(job, "/dev/md100", "/dev/sdb", "/dev/sdc")
    assert str(workload).isprintable()
    assert not set(str(workload)) & set(" \n\0/:;-=$")


def strings_of(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from ([(*path, key)] if isinstance(each, str) else strings_of(each, (*path, key)))


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(each):08x}" for each in value if not 0xD800 <= ord(each) < 0xE000) + '"'
    return str(value).lower() if isinstance(value, bool) else str(value)


@fuzzed(150)
@given(st.data())
def test_a_protocol_cannot_smuggle_options(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = tomllib.loads((SHIPPED / f"{data.draw(st.sampled_from(protocols.shipped()))}.toml").read_text())
    content.setdefault(
        "array", {"raid5_layout": "left-symmetric", "raid10_layout": "n2", "bitmap": "none", "chunk": "64k"}
    )
    *path, last = data.draw(st.sampled_from(list(strings_of(content))))
    table = content
    for each in path:
        table = table[each]  # type: ignore[index]
    table[last] = data.draw(HOSTILE)  # type: ignore[index]
    file = tmp_path_factory.getbasetemp() / "hostile.toml"
    file.write_text("\n".join(f"{key} = {toml(each)}" for key, each in content.items()))
    protocol, why = loaded(file)
    assert why.replace("\n", "").isprintable()
    if protocol:
        check_protocol(protocol)


def loaded(file: Path) -> tuple[Protocol | None, str]:
    try:
        return protocols.load(file), ""
    except DocumentError as error:
        return None, str(error)


def check_protocol(protocol: Protocol) -> None:
    assert_harmless(fill([JobTarget("/dev/md100", 1 << 30)], 1, protocol.fill.bs), "/dev/md100")
    for name in ("raid0x4", "raid1x4", "raid5x4", "raid6x4", "raid10x4"):
        members = [f"/dev/sd{letter}" for letter in "bcde"]
        argv = mdadm.create_argv(
            Geometry.parse(name), "/dev/md100", members, protocol.array, "1:2:3:4", assume_clean=False
        )
        assert argv[:3] == ["mdadm", "--create", "/dev/md100"]
        assert argv[-4:] == members
        for word in argv[3:-4]:
            assert re.fullmatch(r"--[a-z-]+(=[a-z0-9:.-]+)?", word), word
            assert word not in ("--force", "--add", "--zero-superblock")


@pytest.mark.parametrize(
    "text",
    ["-oProxyCommand=reboot:/dev/sda", "-oProxyCommand=reboot@dut7:/dev/sda", "root@-oProxyCommand=reboot:/dev/sda",
     "root@-dut7:/dev/sda", "a@b@-c:/dev/sda", "dut7;reboot:/dev/sda", "dut7 -oX:/dev/sda", "$(reboot):/dev/sda",
     "dut7\n:/dev/sda", "[fe80::1%-x;y]:/dev/sda", "ü:/dev/sda", "dut7\0:/dev/sda"],
)  # fmt: skip
def test_hosts_that_ssh_would_take_for_something_else(text: str) -> None:
    with pytest.raises(pytest.UsageError, match=r"host name|HOST:\]PATTERN"):
        parse_devices(text)


@fuzzed(200)
@given(st.text(st.sampled_from("-oa@[]:%./;$ \n\0root"), max_size=12) | st.text(max_size=12))
def test_what_is_left_of_a_host_is_no_option(host: str) -> None:
    try:
        destination = Host(parse_devices(f"{host}:/dev/sda").host or "dut7").destination
    except (ValueError, pytest.UsageError):
        return
    assert re.fullmatch(r"([A-Za-z0-9_.@:%-]+@)?[A-Za-z0-9_.:%][A-Za-z0-9_.:%-]*", destination)
    assert not destination.startswith("-")


def test_an_ipv6_zone_is_a_host() -> None:
    assert parse_devices("root@[fe80::1%eth0]:/dev/sda").host == "root@fe80::1%eth0"


@fuzzed(60)
@given(st.lists(st.text(st.characters(codec=None), max_size=8) | st.sampled_from(PAYLOADS), min_size=1, max_size=4))
def test_a_shell_gets_every_word_whole_or_is_not_asked(words: list[str]) -> None:
    """The one place where we quote: newlines, quotes and globs are text; what no command can be given is a sentence."""
    if any("\0" in word or not is_bytes(word) for word in words):
        with pytest.raises(RigError, match="such a word"):
            spelled(["printf", *words])
        return
    given = spelled(["printf", "%s\\0", *words])
    done = subprocess.run(["sh", "-c", shlex.join(given)], capture_output=True, check=True)
    assert done.stdout.split(b"\0")[:-1] == [word.encode("utf-8", "surrogateescape") for word in words]


def is_bytes(word: str) -> bool:
    """Whether a file could be called so: a lone surrogate is none of those that stand for a byte."""
    return all(not 0xD800 <= ord(each) < 0xE000 or 0xDC80 <= ord(each) < 0xDD00 for each in word)


@pytest.mark.parametrize("word", ["a\0b", "\ud800"])
def test_a_word_that_no_command_can_have_is_one_sentence(word: str) -> None:
    channel = Channel("localhost", wrap=spelled, lost=lambda done: None)
    with pytest.raises(RigError, match=r"given .*such a"):
        channel.run(["echo", word])
    channel.close()


@fuzzed(60)
@given(plain_like([{"path": "/dev/sdb", "size_bytes": 1 << 30}]))
def test_targets(plain: object) -> None:
    try:
        target = JobTarget(**plain)  # type: ignore[arg-type]
        job = fill([target], 1)
    except (ValueError, TypeError):
        return
    assert_harmless(job, "/dev/sdb")
