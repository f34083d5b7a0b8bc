"""The scripts that run on the machine under test; script/test runs shellcheck on them."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.shells import AWKS

import pytest_ssdqual
from pytest_ssdqual.rig.machine import scripts

PACKAGE = Path(pytest_ssdqual.__file__).parent
FOLDER = PACKAGE / "rig" / "scripts"
NAMES = sorted(path.name for path in FOLDER.iterdir() if path.is_file())
SHELLS = (["dash"], ["bash"], ["bash", "--posix"], ["busybox", "sh"])
KINDS = {".sh", ".awk", ".pl", ".py"}
MANUAL = ("Arguments", "Output", "Exit status")
#: Text that precedes a script, which then uses what it defines.
PARTS = {"environment.sh": "kernel_log.sh", "keeper_attach.sh": "keeper_start.sh"}


def of_kind(*kinds: str) -> list[str]:
    return [name for name in NAMES if Path(name).suffix in kinds]


def require(*programs: str) -> None:
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"there is no {program} here")


def test_every_script_is_of_a_known_kind() -> None:
    assert {Path(name).suffix for name in NAMES} == KINDS
    assert len(of_kind(".sh")) >= 30


@pytest.mark.parametrize("name", NAMES)
def test_script_begins_with_its_manual(name: str) -> None:
    manual = (FOLDER / name).read_text("utf-8").split("\n\n", 1)[0]
    lines = manual.splitlines()
    assert all(line.startswith("#") for line in lines)
    assert len(lines[0]) > len("# ")
    joined = " ".join(line.removeprefix("#").strip() for line in lines)
    assert "exit status: see" in joined or all(f"{word}:" in joined for word in MANUAL)
    if name.endswith(".sh"):
        assert lines[-2].startswith("# Shells: ")
        assert lines[-1] == "# shellcheck shell=dash"


@pytest.mark.parametrize("name", NAMES)
def test_script_is_sent_without_its_comments(name: str) -> None:
    text = scripts.text(name)
    assert text.endswith("\n")
    assert not [line for line in text.split("\n") if line.lstrip().startswith("#")]
    # The whole argv of a survey over ssh is one argument, which the kernel limits to 128 KiB (MAX_ARG_STRLEN).
    assert len(text) < 16384


@pytest.mark.parametrize("name", NAMES)
def test_script_is_used(name: str) -> None:
    sources = [path.read_text("utf-8") for path in (PACKAGE / "rig").rglob("*.py") if path.parent != FOLDER]
    assert [text for text in sources if f'"{name}"' in text]


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize("name", of_kind(".sh"))
def test_shell_can_read_the_script(name: str, shell: list[str]) -> None:
    require(shell[0])
    before = scripts.text(PARTS[name]) if name in PARTS else ""
    done = subprocess.run(
        [*shell, "-n", "-c", before + scripts.text(name)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", of_kind(".sh"))
def test_only_comments_are_left_out(name: str) -> None:
    """The whole file and what is sent of it are the same functions and commands, as bash prints them."""
    require("bash")
    whole = (FOLDER / name).read_text("utf-8")
    both = [f"f() {{\n{text}\n}}\ndeclare -f f" for text in (whole, scripts.text(name))]
    printed = [subprocess.run(["bash", "-c", each], capture_output=True, text=True, check=True).stdout for each in both]
    assert printed[0] == printed[1] != ""


@pytest.mark.parametrize("name", of_kind(".py"))
def test_python_is_of_the_oldest_version_that_is_promised(name: str) -> None:
    """By the grammar; the oldest that this interpreter knows is a little newer than 3.6."""
    trees = [
        ast.dump(ast.parse(text, feature_version=(3, 7)))
        for text in ((FOLDER / name).read_text("utf-8"), scripts.text(name))
    ]
    assert trees[0] == trees[1]


@pytest.mark.parametrize("name", of_kind(".pl"))
def test_perl_can_read_the_script(name: str) -> None:
    require("perl")
    done = subprocess.run(["perl", "-wc", "-e", scripts.text(name)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "-e syntax OK\n")


@pytest.mark.parametrize("awk", AWKS)
@pytest.mark.parametrize("name", of_kind(".awk"))
def test_awk_can_read_the_script(name: str, awk: list[str]) -> None:
    argv = [*awk, scripts.text(name)]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_no_shell_script_is_elsewhere_in_the_package() -> None:
    """So that script/test checks all of them. Single commands may be strings."""
    assert {path.parent for path in PACKAGE.rglob("*.sh")} == {FOLDER}
    shell = re.compile(r"; ?(do|then|done|fi)\b|\n *(do|then|done|fi|esac)\b|\b2>|\| ?\w+ -| && |\$\{?\w+[#%:]")
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text("utf-8")
        for node in ast.walk(ast.parse(source)) if "$" in source else ():
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            assert not ("$" in text and shell.search(text)), f"{path}:{getattr(node, 'lineno', 0)}"


def test_wheel_has_every_script(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    root = PACKAGE.parent
    if not (root / "pyproject.toml").exists():
        pytest.skip("the package is not that of a checkout")
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(argv, cwd=root, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    shipped = set(zipfile.ZipFile(wheel).namelist())
    guest = (path.relative_to(root) for path in (PACKAGE / "lab" / "image").rglob("*") if "." not in path.name)
    assert {f"pytest_ssdqual/rig/scripts/{name}" for name in NAMES} <= shipped
    assert "pytest_ssdqual/lab/image/guest/init" in shipped
    assert {str(path) for path in guest if (root / path).is_file()} <= shipped
