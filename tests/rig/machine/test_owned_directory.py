from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_ssdqual.rig.machine.owned_directory import OWNER, UNNAMED_S, OwnedDirectory, sweep

OWNER_PROCESS = """
import subprocess, sys
from pathlib import Path
from pytest_ssdqual.rig.machine.owned_directory import OwnedDirectory
owned = OwnedDirectory.make(Path(sys.argv[1]), "kind-")
if "child" in sys.argv:
    child = subprocess.Popen(["sleep", "600"], pass_fds=(owned.descriptor,))
    print(child.pid, flush=True)
print(owned.path, flush=True)
sys.stdin.read()
"""


def test_directory_is_made_and_removed(tmp_path: Path) -> None:
    owned = OwnedDirectory.make(tmp_path, "kind-")
    assert list(tmp_path.iterdir()) == [owned.path]
    assert owned.path.stat().st_mode & 0o777 == 0o700
    (owned.path / "content").write_bytes(b"x")
    owned.remove()
    owned.remove()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("also", [[], ["child"]])
def test_killed_owner_leaves_it_to_the_next_start(tmp_path: Path, also: list[str]) -> None:
    argv = [sys.executable, "-c", OWNER_PROCESS, str(tmp_path), *also]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        child = int(owner.stdout.readline()) if also else 0
        left = Path(owner.stdout.readline().strip())
        sweep(tmp_path, "kind-")
        assert left.is_dir()
        owner.kill()
    if child:
        # It still uses the directory.
        sweep(tmp_path, "kind-")
        assert left.is_dir()
        os.kill(child, 9)
        for _ in range(100):
            sweep(tmp_path, "kind-")
            if not left.exists():
                break
            time.sleep(0.1)
    OwnedDirectory.make(tmp_path, "kind-").remove()
    assert not left.exists()


def make_owner(kind: str, path: Path, elsewhere: Path) -> None:
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(path))
        case "link":
            elsewhere.write_text("")
            path.symlink_to(elsewhere)
        case "device":
            try:
                os.mknod(path, 0o20600, os.makedev(1, 3))
            except PermissionError:
                pytest.skip("only root makes devices")
        case "directory":
            path.mkdir()


@pytest.mark.parametrize("kind", ["fifo", "socket", "link", "device", "directory", "missing"])
def test_owner_that_is_no_file_of_ours_is_left_alone_at_once(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "tmp"
    (place / "kind-strange").mkdir(parents=True)
    make_owner(kind, place / "kind-strange" / OWNER, tmp_path / "elsewhere")
    argv = [sys.executable, "-c", "import sys, pathlib; from pytest_ssdqual.rig.machine.owned_directory import sweep; "
            "sweep(pathlib.Path(sys.argv[1]), 'kind-')", str(place)]  # fmt: skip
    subprocess.run(argv, check=True, timeout=30)
    assert (place / "kind-strange").is_dir()


def test_linked_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / OWNER).write_text("")
    (tmp_path / "kind-link").symlink_to(tmp_path / "elsewhere")
    sweep(tmp_path, "kind-")
    assert (tmp_path / "elsewhere" / OWNER).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("given", ["kind-left", f"kind-left/{OWNER}"])
def test_directory_of_another_user_is_left_alone(given: str, tmp_path: Path) -> None:
    (tmp_path / "kind-left").mkdir()
    (tmp_path / "kind-left" / OWNER).write_text("")
    os.chown(tmp_path / given, 1000, 1000)
    sweep(tmp_path, "kind-")
    assert (tmp_path / "kind-left" / OWNER).exists()


def test_directory_without_a_name_goes_when_it_is_old(tmp_path: Path) -> None:
    for name, age_s in ((".kind-new", 1.0), (".kind-old", UNNAMED_S + 1)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (time.time() - age_s,) * 2)
    sweep(tmp_path, "kind-")
    assert [path.name for path in tmp_path.iterdir()] == [".kind-new"]
