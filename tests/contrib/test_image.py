"""Containerfile: its entry point, and the image itself if it is asked for.

The image takes minutes and a registry, or a base that is given, so a plain run skips it:
``SSDQUAL_IMAGE_BASE=docker.io/library/debian:trixie-slim pytest tests/contrib/test_image.py``.
``SSDQUAL_IMAGE_OPTIONS`` are more options of ``buildah build``.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_ssdqual.rig.machine import facts

ROOT = Path(__file__).parents[2]
CONTAINERFILE = (ROOT / "Containerfile").read_text()
ENTRYPOINT = ROOT / "contrib/image/entrypoint"
BASE = os.environ.get("SSDQUAL_IMAGE_BASE", "")
BUILDAH = shutil.which("buildah")


def entered(place: Path) -> subprocess.CompletedProcess[str]:
    places = {"DEV": "dev", "HOST": "host", "RUN": "run", "CONFIG": "config"}
    env = {"PATH": os.environ["PATH"], **{name: f"{place}/{folder}" for name, folder in places.items()}}
    return subprocess.run([str(ENTRYPOINT), "echo", "began"], env=env, capture_output=True, text=True, check=False)


def test_entry_point_needs_what_protects_the_drives(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "null").touch()
    assert entered(tmp_path).stdout == "began\n"
    (tmp_path / "dev" / "nvme0n1").touch()
    refused = entered(tmp_path)
    assert (refused.returncode, refused.stdout) == (4, "")
    assert "/host/etc" in refused.stderr
    (tmp_path / "host" / "etc").mkdir(parents=True)
    (tmp_path / "config").mkdir()
    assert "/sys/kernel/config" in entered(tmp_path).stderr, "the directory is there, and nothing is mounted on it"
    (tmp_path / "config").rmdir()
    refused = entered(tmp_path)
    assert (refused.returncode, refused.stdout) == (4, "")
    assert re.search("--pid=host|leases", refused.stderr)


def test_documented_command_has_every_mount_of_the_entry_point() -> None:
    command = (ROOT / "docs/labs.md").read_text()
    asked = re.findall(r"-v \S+?(?=\")|--pid=host", ENTRYPOINT.read_text())
    assert len(asked) == 4
    assert [option for option in asked if option not in command] == []


def test_image_has_every_tool_and_file_that_the_guard_reads() -> None:
    words = set(re.findall(r"[\w.-]+", CONTAINERFILE))
    assert set(facts.TOOLS.values()) | set(facts.NVME_TOOLS.values()) <= words | {"coreutils", "gzip"}
    script = (ROOT / "pytest_ssdqual/rig/scripts/configured_names.sh").read_text()
    # Those behind the loop are also read below /host/etc.
    read = set(re.findall(r'\$etc"?/([\w.-]+)', script.partition("for etc in")[0]))
    assert "fstab" in read
    assert read <= words


@pytest.mark.skipif(not BASE, reason="SSDQUAL_IMAGE_BASE names no base for the image: building it takes minutes")
@pytest.mark.skipif(not BUILDAH, reason="buildah is not installed")
def test_image_has_the_program_and_its_tools() -> None:
    def buildah(*words: str) -> str:
        isolated = [*words[:1], "--isolation", "chroot", *words[1:]] if words[0] in ("build", "run") else list(words)
        done = subprocess.run([str(BUILDAH), *isolated], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    options = shlex.split(os.environ.get("SSDQUAL_IMAGE_OPTIONS", ""))
    buildah(
        "build", "--quiet", "--layers", "--build-arg", f"BASE={BASE}", *options, "--tag", "localhost/ssdqual-test", "."
    )
    container = buildah("from", "--pull-never", "localhost/ssdqual-test")
    try:
        missing = (
            f"for tool in {' '.join([*facts.TOOLS, *facts.NVME_TOOLS])}; do command -v $tool || echo no $tool; done"
        )
        tools = buildah("run", container, "--", "sh", "-c", f"{missing}; readlink /etc/fstab; ssdqual --version")
        assert not re.search("^no ", tools, re.MULTILINE)
        assert "/host/etc/fstab" in tools
        listed = buildah("run", container, "--", "pytest", "--pyargs", "pytest_ssdqual.suites.raid5", "--help")
        assert "--ssd-devices" in listed
    finally:
        buildah("rm", container)
