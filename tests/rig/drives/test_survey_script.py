"""The survey's own script under several shells, on trees like /sys and /proc that have hostile names in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.mutations import fuzzed
from support.shells import SHELLS, shell_argv

from pytest_ssdqual.rig.drives import survey_parse
from pytest_ssdqual.rig.drives.survey import FACTS, PERL_PROBE, PYTHON_PROBE

TOOLS = ("stat", "sort", "cat", "grep", "cut", "sed", "sleep")
#: No name of the kernel has a NUL in it; everything else a drive may have put there.
NAMES = st.binary(min_size=1, max_size=30).map(lambda name: name.replace(b"\0", b"\\"))
HOSTILE = st.sampled_from(
    (
        rb"\n==mounts", rb"x\n==writers", rb"\c", rb"\0end\0", rb"\000end\000", b"$(kill $$)", b"`kill $$`", b"-n",
        b"%s%s%n", b"a  b", b"*", b"/*", b"'", b'"', b"\\", b"\x81\x82\x88\xff", "Á中\u2028".encode(), b"\x1b[2J",
        b"-e", b"x\ny", b"end", b"~", b"serial\tsda", rb"\x00", rb"\\0", b"x\ry",
    )
)  # fmt: skip


class Tree:
    """A machine's /sys and /proc."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for pid in ("1", "self"):
            self.write(f"proc/{pid}/mountinfo", "22 1 8:1 / / rw - ext4 /dev/root rw\n")
        (root / "proc/1/fd").mkdir()
        self.write("proc/mdstat", "Personalities :\n")
        self.write("proc/swaps", "Filename Type\n")
        self.write("proc/kallsyms", "ffffffff81000000 T _text\n")

    def write(self, path: str, content: str | bytes) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(content.encode() if isinstance(content, str) else content)

    def disk(self, kname: str, **attributes: str | bytes) -> None:
        attributes = {"dev": "8:0\n", "size": "2048\n", "ro": "0\n", **attributes}
        for name, value in attributes.items():
            self.write(f"sys/class/block/{kname}/{name.replace('__', '/')}", value)

    def generic(self, kname: str) -> None:
        """Make /dev/null (1:3) the sg node of a disk."""
        self.write("sys/class/scsi_generic/sg0/dev", "1:3\n")
        (self.root / "sys/class/scsi_generic/sg0/device/block" / kname).mkdir(parents=True)

    def opens(self, pid: int, target: str, comm: bytes = b"dd\n", flags: str = "0100000", mount: int = 22) -> Path:
        """A process that has a file open; the link is returned."""
        self.write(f"proc/{pid}/comm", comm)
        self.write(f"proc/{pid}/fdinfo/3", f"pos:\t0\nflags:\t{flags}\nmnt_id:\t{mount}\nino:\t5\n")
        link = self.root / f"proc/{pid}/fd/3"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
        return link

    def survey(self, shell: str, *nodes: str, pause: str = ":", path: str | None = None) -> survey_parse.Records:
        script = FACTS.replace("root=\n", f"root={self.root}\n", 1).replace("sleep 0.3", pause)
        assert script.count(str(self.root)) >= 1
        done = subprocess.run(
            [*shell_argv(shell), "-c", script, "facts", PERL_PROBE, PYTHON_PROBE, *nodes],
            capture_output=True, stdin=subprocess.DEVNULL, timeout=60,
            env={**os.environ, "PATH": path or f"{self.root / 'bin'}:{os.environ['PATH']}"},
        )  # fmt: skip
        return survey_parse.parse(done.stdout.decode("utf-8", "surrogateescape"))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


every_shell = pytest.mark.parametrize("shell", SHELLS)


def first_line(value: bytes) -> list[str]:
    """What a file of sysfs says, as the script reads it: blanks around it are no part of it."""
    text = value.split(b"\n")[0].strip(b" \t").decode("utf-8", "surrogateescape")
    return [text] if text else []


@every_shell
@fuzzed(30)
@given(serial=NAMES | HOSTILE, model=NAMES | HOSTILE, firmware=NAMES | HOSTILE, comm=HOSTILE | NAMES)
def test_names_arrive_as_they_are_and_hide_nothing(
    tmp_path_factory: pytest.TempPathFactory, shell: str, serial: bytes, model: bytes, firmware: bytes, comm: bytes
) -> None:
    tree = Tree(tmp_path_factory.mktemp("tree"))
    tree.disk("sda", serial=serial, device__model=model + b"\n", device__rev=firmware)
    tree.generic("sda")
    tree.opens(40, "/dev/null")
    tree.opens(41, "/dev/null", comm + b"\n")
    tree.write("sys/kernel/config/nvmet/subsystems/x/namespaces/1/device_path", serial.split(b"\n")[0] + b"\n")
    found = tree.survey(shell)
    for kind, value in (("serial", serial), ("model", model), ("firmware", firmware)):
        assert [name for _, name in found[kind]] == first_line(value)
    name = (first_line(comm) or ["unknown"])[0]
    assert sorted(found["opened"]) == [("40", "3", "generic", "1:3", "dd"), ("41", "3", "generic", "1:3", name)]
    path = serial.split(b"\n")[0].decode("utf-8", "surrogateescape")
    assert [name for _, name in found["export"]] == ([path] if path else [])
    assert found["dev"] == [("sda", "8:0")]


@every_shell
def test_mount_points_arrive_as_they_are(tree: Tree, shell: str) -> None:
    line = "8:1 / /mnt/\\012==end\\040Á\x81 rw - ext4 /dev/sda1 rw"
    tree.write("proc/1/mountinfo", f"30 1 {line}\n31 1 0:5 / /proc rw - proc proc rw\n")
    tree.write("proc/self/mountinfo", "")
    assert tree.survey(shell).text("mounts") == line


#: A ``stat`` that takes /dev/null for the block device 8:16: to make the node of one needs root.
BLOCK_STAT = """#!/bin/sh
{stat} "$@" | sed 's/^2[0-9a-f]* 1 3 /61b0 8 10 /'
"""


@pytest.fixture
def block(tree: Tree) -> Tree:
    tree.generic("sda")
    tree.write("bin/stat", BLOCK_STAT.format(stat=shutil.which("stat")))
    (tree.root / "bin/stat").chmod(0o755)
    return tree


@every_shell
@pytest.mark.parametrize(
    ("flags", "access"),
    [("0100000", "read"), ("02100000", "read"), ("0100001", "write"), ("0140002", "write"), ("0100003", "read")],
)
def test_access_of_an_open_block_device(block: Tree, shell: str, flags: str, access: str) -> None:
    block.opens(40, "/dev/null", flags=flags)
    assert block.survey(shell)["opened"] == [("40", "3", access, "8:16", "dd")]


@every_shell
def test_reader_counts_only_if_it_stays(tree: Tree, shell: str) -> None:
    tree.disk("sda")
    tree.generic("sda")
    gone = tree.opens(40, "/dev/null")
    again = tree.opens(41, "/dev/null")
    tree.opens(42, "/dev/null")
    # The descriptor of one is another file then.
    pause = f"rm -f {gone}; ln -sf /dev/zero {again}"
    assert [pid for pid, *_ in tree.survey(shell, pause=pause)["opened"]] == ["42"]


@every_shell
@pytest.mark.parametrize(
    ("comm", "readings", "counts"),
    [("smartd", 20, True), ("(udev-worker)", 20, False), ("systemd-udevd", 20, False), ("systemd-udevd", 1000, True)],
)
def test_udev_may_take_longer(tree: Tree, shell: str, comm: str, readings: int, counts: bool) -> None:
    tree.disk("sda")
    tree.generic("sda")
    reader, number = tree.opens(40, "/dev/null", f"{comm}\n".encode()), tree.root / "readings"
    pause = f'echo >>{number}; [ "$(grep -c "" {number})" -lt {readings} ] || rm -f {reader}'
    assert [pid for pid, *_ in tree.survey(shell, pause=pause)["opened"]] == ["40"] * counts


@pytest.fixture
def opened(block: Tree) -> Tree:
    """udev has sdb open, and waits in the kernel for the one request that the drive has."""
    block.disk("sdb", dev="8:16\n", stat="9 0 72 1 4 0 32 1 1 9 9 2 0 0 0\n")
    (block.root / "sys/dev/block").mkdir(parents=True)
    (block.root / "sys/dev/block/8:16").symlink_to(block.root / "sys/class/block/sdb")
    block.opens(40, "/dev/null", b"systemd-udevd\n")
    block.write("proc/40/stat", "40 (systemd-udevd) D 1 40 40 0\n")
    block.write("proc/uptime", "100.25 1.0\n")
    return block


@every_shell
def test_process_that_waits_for_a_drive_without_answers_hangs(opened: Tree, shell: str) -> None:
    """The drive is not opened then: whoever reads from it hangs as well."""
    pause = f"sed -i 's/^1/2/' {opened.root}/proc/uptime"
    found = opened.survey(shell, "/dev/sdb", "/dev/null", pause=pause)
    assert found["hanging"] == [("40", "8:16", "100", "1")]
    assert [path for path, _ in found["probe"]] == ["/dev/null"]


@every_shell
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("proc/40/stat", "40 (x) D (systemd-udevd) S 1 40 40 0\n"),
        ("sys/class/block/sdb/stat", "9 0 72 1 4 0 32 1 0 9 9 2 0 0 0\n"),
        ("sys/class/block/sdb/stat", "99 0 792 1 4 0 32 1 1 9 9 2 0 0 0\n"),
    ],
    ids=["process sleeps", "no request", "requests complete"],
)
def test_process_that_has_a_drive_open_does_not_hang(opened: Tree, shell: str, file: str, text: str) -> None:
    (opened.root / "then").write_text(text)
    found = opened.survey(shell, "/dev/sdb", pause=f"cp {opened.root}/then {opened.root}/{file}")
    assert found["hanging"] == ()
    assert [pid for pid, *_ in found["opened"]] == ["40"]


@every_shell
def test_slow_machine_ends_the_wait_before_the_deadline(opened: Tree, shell: str) -> None:
    """Each reading takes ten seconds here."""
    pause = (
        f"read -r up rest <{opened.root}/proc/uptime; echo $((${{up%%.*}} + 10)).0 0 >{opened.root}/proc/uptime; "
        f"echo >>{opened.root}/readings"
    )
    ((_, _, waited, _),) = opened.survey(shell, "/dev/sdb", pause=pause)["hanging"]
    assert int(waited) == 80
    assert len((opened.root / "readings").read_text()) == 8


@every_shell
def test_hang_that_ends_or_of_another_drive_is_none(opened: Tree, shell: str) -> None:
    assert opened.survey(shell)["hanging"] == ()
    found = opened.survey(shell, "/dev/sdb", pause=f"rm -f {opened.root}/proc/40/fd/3")
    assert (found["hanging"], found["opened"]) == ((), ())


@every_shell
def test_files_of_networks_and_other_devices_do_not_count(tree: Tree, shell: str) -> None:
    tree.disk("sda")
    tree.generic("sda")
    tree.write("proc/1/mountinfo", "77 1 0:50 / /net rw - nfs4 server:/x rw\n78 1 0:51 / /f rw - fuse.sshfs x rw\n")
    tree.opens(40, "/dev/null", mount=77)
    tree.opens(41, "/dev/null", mount=78)
    tree.opens(42, "/dev/null", mount=7)
    tree.opens(43, "/dev/zero", flags="0100002")
    assert [pid for pid, *_ in tree.survey(shell)["opened"]] == ["42"]


@every_shell
def test_more_files_than_one_command_takes(tree: Tree, shell: str) -> None:
    tree.generic("sda")
    first = tree.opens(40, "/dev/null")
    for number in range(4, 1100):
        first.with_name(str(number)).symlink_to("/dev/null")
    assert len(tree.survey(shell)["opened"]) == 1097


@every_shell
def test_nvme_namespaces_have_their_nodes_controllers_and_links(tree: Tree, shell: str) -> None:
    """Generic nodes have the numbers of the namespace, and a subsystem has several controllers."""
    tree.disk("nvme3n2", device__cntlid="1\n", device__dev="240:3\n", device__device__max_link_speed="16.0 GT/s PCIe\n")
    tree.write("sys/class/nvme-generic/ng3n2/dev", "1:3\n")
    tree.opens(40, "/dev/null")
    of_two = {
        f"device__nvme{n}__{name}": f"{value}\n" for n in (0, 1) for name, value in (("cntlid", n), ("dev", f"240:{n}"))
    }
    tree.disk(
        "nvme0n1", **of_two, device__nvme0n1__dev="259:0\n", device__nvme1__device__max_link_speed="32.0 GT/s PCIe\n"
    )
    tree.disk("sda")
    found = tree.survey(shell)
    assert found["generic"] == [("1:3", "nvme3n2")]
    assert sorted(found["controller"]) == [("nvme0n1", "240:0"), ("nvme0n1", "240:1"), ("nvme3n2", "240:3")]
    assert [access for _, _, access, *_ in found["opened"]] == ["generic"]
    assert sorted(found["link"]) == [("nvme0n1", "32.0 GT/s PCIe"), ("nvme3n2", "16.0 GT/s PCIe")]


FILEIO = (
    "Status: ACTIVATED  Max Queue Depth: 0  SectorSize: 512  HwMaxSectors: 16384\n"
    "        TCM FILEIO ID: 0        File: /dev/odd  Size: name  Size: 1073741824  Mode: O_DSYNC Async: 0"
)


@every_shell
def test_every_way_of_exporting_is_found(tree: Tree, shell: str) -> None:
    configfs, gadget = "sys/kernel/config", "sys/kernel/config/usb_gadget/g1/functions/mass_storage.usb0"
    for name, text in {
        f"{configfs}/target/core/fileio_0/disk/info": FILEIO,
        f"{configfs}/target/core/iblock_0/disk/udev_path": "/dev/sdy ",
        f"{configfs}/nvmet/subsystems/a/passthru/device_path": "/dev/null",
        f"{configfs}/nvmet/subsystems/b/passthru/device_path": "/dev/nvme9",
        f"{configfs}/nvmet/subsystems/c/passthru/device_path": "",
        f"{gadget}/lun.0/file": "/dev/sdy",
        f"{gadget}/lun.1/file": "",
        "sys/devices/udc/gadget.0/lun0/file": "/dev/odd name",
        "sys/devices/sdz/dev": "65:144",
        "sys/bus/xen-backend/devices/vbd-1-768/physical_device": "fd:1a",
        "sys/kernel/scst_tgt/devices/disk1/filename": "/dev/sdy\n[key]",
    }.items():
        tree.write(name, f"{text}\n")
    for link, target in (("udc/dummy/device", "udc"), ("rnbd-server/ctl/devices/sdz/block_dev", "sdz")):
        (tree.root / "sys/class" / link).parent.mkdir(parents=True)
        (tree.root / "sys/class" / link).symlink_to(tree.root / "sys/devices" / target)
    found = tree.survey(shell)
    assert sorted(found["export"]) == [
        ("gadget", "/dev/odd name"),
        ("gadget", "/dev/sdy"),
        ("scst", "/dev/sdy"),
        ("target", "/dev/odd  Size: name"),
        ("target", "/dev/sdy "),
    ]
    assert found["passthru"] == [("/dev/null", "1 3"), ("/dev/nvme9", "")]
    assert sorted(found["exported"]) == [("rnbd", "41", "90"), ("xen", "fd", "1a")]


def blind(records: survey_parse.Records) -> list[str]:
    return [source for source, *_ in (*records["blind"], *records["blind_drive"])]


@every_shell
def test_open_files_that_cannot_be_looked_at_blind_the_guard(tree: Tree, shell: str) -> None:
    tree.opens(1, "/dev/null")
    tree.opens(40, "/dev/null")
    assert blind(tree.survey(shell)) == []
    tree.opens(41, "/nowhere", b"vm\n")
    ((source, why),) = tree.survey(shell)["blind"]
    assert source == "openers"
    assert why.endswith("vm (pid 41)")


@every_shell
def test_processes_that_are_not_shown_blind_the_guard(tree: Tree, shell: str) -> None:
    """As hidepid does, a user namespace, a /proc that is not mounted, and one of another PID namespace."""
    (tree.root / "proc/1/fd").rmdir()
    assert blind(tree.survey(shell)) == ["openers"]
    (tree.root / "proc/1/fd").mkdir()
    shutil.rmtree(tree.root / "proc/self")
    assert blind(tree.survey(shell)) == ["openers"]


@every_shell
@pytest.mark.parametrize(
    ("module", "directory"),
    [("nvmet", "nvmet"), ("target_core_mod", "target"), ("usb_f_mass_storage", "usb_gadget")],
)
def test_exporter_without_configfs_blinds_the_guard(tree: Tree, shell: str, module: str, directory: str) -> None:
    """A container's fresh sysfs has an empty directory there, a machine that unmounted configfs, too."""
    (tree.root / "sys/kernel/config").mkdir(parents=True)
    assert blind(tree.survey(shell)) == []
    (tree.root / "sys/module" / module).mkdir(parents=True)
    ((source, why),) = tree.survey(shell)["blind"]
    assert source == "exports"
    assert module in why
    (tree.root / "sys/kernel/config" / directory).mkdir()
    assert blind(tree.survey(shell)) == []


@every_shell
def test_exporter_that_is_built_in_needs_a_configfs(tree: Tree, shell: str) -> None:
    symbols = "ffffffff81000000 T nvmet_register_transport\t[nvmet]\nffffffff81000000 T {}nvmet_register_transport\n"
    (tree.root / "sys/kernel/config").mkdir(parents=True)
    for text, sources in ((symbols.format("__ksymtab_"), []), (symbols.format(""), ["exports"]), ("", ["exports"])):
        tree.write("proc/kallsyms", text)
        assert blind(tree.survey(shell)) == sources
    (tree.root / "proc/kallsyms").unlink()
    assert blind(tree.survey(shell)) == ["exports"]
    tree.write("proc/self/mountinfo", "40 22 0:30 / /sys/kernel/config rw - configfs configfs rw\n")
    assert blind(tree.survey(shell)) == []


@every_shell
@pytest.mark.parametrize(("enable", "sources"), [("1", ["exports"]), ("0", [])])
def test_export_by_a_path_that_is_not_there_blinds_the_guard(
    tree: Tree, shell: str, enable: str, sources: list[str]
) -> None:
    """A container has other files, and a name may have been removed since; process 1 may have it."""
    place = "sys/kernel/config/nvmet/subsystems/x/namespaces/1"
    tree.write(f"{place}/device_path", "/srv/disk of the host\n")
    tree.write(f"{place}/enable", f"{enable}\n")
    assert blind(tree.survey(shell)) == sources
    tree.write("proc/1/root/srv/disk of the host", "")
    assert blind(tree.survey(shell)) == []


@every_shell
@pytest.mark.parametrize(
    ("tool", "sources"), [("wipefs", ["signatures"]), ("zpool", []), ("zpool with zfs", ["layers"])]
)
def test_tool_that_fails_blinds_the_guard(tree: Tree, shell: str, tool: str, sources: list[str]) -> None:
    """Pools that cannot be listed count only with the module."""
    name = tool.split()[0]
    tree.write(f"bin/{name}", "#!/bin/sh\nexit 1\n")
    (tree.root / "bin" / name).chmod(0o755)
    if tool.endswith("zfs"):
        (tree.root / "sys/module/zfs").mkdir(parents=True)
    drive = tree.root / "drive"
    drive.write_bytes(bytes(8192))
    nodes = [str(drive), str(tree.root / "gone")] if name == "wipefs" else []
    assert blind(tree.survey(shell, *nodes)) == sources


@every_shell
@pytest.mark.parametrize("interpreter", ["perl", "python3"])
def test_loop_device_that_cannot_be_asked_blinds_the_guard(
    tree: Tree, shell: str, tmp_path: Path, interpreter: str
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in (*TOOLS, interpreter):
        if where := sys.executable if tool == "python3" else shutil.which(tool):
            # Not a link: a Python is where its library is.
            (tools / tool).write_text(f'#!/bin/sh\nexec {Path(where).resolve()} "$@"\n')
            (tools / tool).chmod(0o755)
    tree.write("sys/class/block/loop99/loop/backing_file", "/mnt/image\n")
    assert blind(tree.survey(shell, path=str(tools))) == ["layers"]


@every_shell
def test_without_perl_and_python_nothing_is_probed(tree: Tree, shell: str, tmp_path: Path) -> None:
    """Then the survey is an error: ``test_a_candidate_that_was_not_probed_is_an_error``."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in (*TOOLS, "wipefs"):
        if where := shutil.which(tool):
            (tools / tool).symlink_to(where)
    assert tree.survey(shell, "/dev/null", path=str(tools))["probe"] == ()


@every_shell
@pytest.mark.parametrize("is_gone", [False, True])
def test_signatures_are_found_if_one_device_cannot_be_read(
    tree: Tree, shell: str, tmp_path: Path, is_gone: bool
) -> None:
    """wipefs prints nothing of any if one of them cannot be read."""
    if not (shutil.which("wipefs") and shutil.which("mkswap")):
        pytest.skip("there is no wipefs or no mkswap")
    nodes = [tmp_path / "a" / name for name in ("blank", "swap one", "swap")]
    nodes[0].parent.mkdir()
    for node in nodes:
        with node.open("wb") as file:
            file.truncate(1 << 20)
    for node in nodes[1:]:
        subprocess.run(["mkswap", node], check=True, capture_output=True, timeout=60)
    gone = [str(tmp_path / "gone")] if is_gone else []
    found = tree.survey(shell, *gone, *map(str, nodes))["signature"]
    assert [(path, text.split()[0]) for path, text in found] == [(str(node), "swap") for node in nodes[1:]]


WHOLE = "mounts\0\0swaps\0\0mdstat\0\0scanned\0"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (WHOLE + "end\0end\0", "is not a record"),
        (WHOLE + "end\0dev\0sda\0", "is not a record"),
        (WHOLE + "odd\0end\0", "'odd' is not a record"),
        (WHOLE + "\0end\0", "'' is not a record"),
        (WHOLE, "end missing"),
        (WHOLE + "dev\0sda\0end\0", "end missing"),
        (WHOLE + "dev\0sda\0", "within dev"),
        (WHOLE.replace("scanned\0", "end\0"), "scanned missing"),
        (WHOLE + "mounts\0\0end\0", "mounts more than once"),
        (WHOLE + "dev\0sda\08:0\0dev\0sda\08:0\0end\0", "dev more than once"),
        (WHOLE + "end", "cut short"),
        ("", "cut short"),
    ],
)
def test_an_answer_that_is_not_whole_is_an_error(answer: str, message: str) -> None:
    assert survey_parse.parse(WHOLE + "end\0")["dev"] == ()
    with pytest.raises(ValueError, match=message):
        survey_parse.parse(answer)
