"""What sessions and their plans refuse to destroy, and the consents that they ask for."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest
from support.simulator.simulated_disks import World

from pytest_ssdqual.rig.drives.topology import Source

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner


@pytest.mark.parametrize("more", [(), ("--collect-only",)])
def test_what_the_survey_cannot_see_is_refused_without_consent(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    facts = World.facts
    monkeypatch.setattr(World, "facts", lambda self, *nodes: f"pidns\x004026532201\0{facts(self, *nodes)}")
    inner.suite("drive")
    assert inner.refused("--ssd-devices=/dev/nvme*", *more, "drive").endswith("add --ssd-unchecked=openers.")
    assert "openers" in inner.refused("--ssd-devices=/dev/nvme*", "--ssd-unchecked=exports", *more, "drive")
    accepted = "--ssd-unchecked=openers,exports"
    said = inner.run("--ssd-devices=/dev/nvme*", accepted, "--collect-only", "drive").stdout.str()
    assert "--ssd-unchecked=openers: " in said
    assert "--ssd-unchecked=exports: not needed" in said


def test_sources_that_were_not_checked_are_on_record(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = World.facts
    monkeypatch.setattr(World, "facts", lambda self, *nodes: f"blind\0exports\0no configfs\0{facts(self, *nodes)}")
    inner.suite("drive")
    few = "--ssd-protocol=quick", "-k", "randread_4k_qd8 and steady", "--ssd-unchecked=exports"
    inner.run("--ssd-devices=/dev/nvme*", promises, *few, "drive")
    assert inner.suite_properties()["ssd.unchecked"] == "exports"
    manifest = inner.manifest()
    assert any(each.startswith("--ssd-unchecked=exports: ") for each in manifest["remarks"])


def test_a_source_of_the_guard_that_does_not_exist(inner: Inner) -> None:
    said = inner.refused("--ssd-devices=/dev/nvme*", "--ssd-unchecked=exports,all")
    assert said.startswith("--ssd-unchecked: all is")
    assert said.endswith(", ".join(source.value for source in Source))


def test_consent_for_a_drive_that_was_not_named(inner: Inner) -> None:
    assert "SSDQ0009" in inner.refused("--ssd-devices=/dev/nvme*", "--ssd-wipe=SSDQ0009")


@pytest.mark.parametrize("more", [(), ("--collect-only",)])
def test_a_run_and_its_plan_refuse_content_without_a_signature(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.setenv("SIMULATED_DATA", "/dev/nvme1n1")
    monkeypatch.setenv("SIMULATED_UNREADABLE", "/dev/nvme2n1")
    said = inner.refused("--ssd-devices=/dev/nvme*", *more).splitlines()
    assert len(said) == 3
    assert all(each in said[0] for each in ("byte 1048576", "--ssd-wipe=SSDQ"))
    assert "at byte 0" in said[1]
    assert "options: --ssd-wipe=SSDQ" in said[2]


def test_consent_for_a_second_port_is_none_for_newer_content(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The options of the last line are enough for what it was printed for, and for nothing else."""
    facts, nodes = World.facts, ("/dev/nvme0n1", "/dev/nvme1n1")
    ports = "".join(f"multiport\0{node}\0" for node in nodes)
    monkeypatch.setattr(World, "facts", lambda self, *opened: f"{ports if opened else ''}{facts(self, *opened)}")
    inner.suite("drive")
    plan = "--ssd-devices=/dev/nvme*", "--ssd-spec=default", "--collect-only", "drive"
    options = shlex.split(inner.refused(*plan).rpartition(": ")[2])
    assert [option.partition("=")[0] for option in options] == ["--ssd-shared"]
    monkeypatch.setenv("SIMULATED_DATA", nodes[0])
    said = inner.refused(*plan, *options)
    assert "without a signature" in said
    assert "further port" not in said
    monkeypatch.delenv("SIMULATED_DATA")
    assert inner.run(*plan, *options).ret == pytest.ExitCode.OK


@pytest.mark.parametrize("more", [(), ("--collect-only",)])
def test_consent_with_a_mark_is_none_for_content_made_since(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.setenv("SIMULATED_DATA", "/dev/nvme1n1")
    inner.suite("drive")
    plan = "--ssd-devices=/dev/nvme*", "--ssd-spec=default", "drive"
    given = re.findall(r"--ssd-wipe=SSDQ0002@\w+", inner.refused(*plan, *more))[-1]
    assert inner.run(*plan, given, "--collect-only").ret == pytest.ExitCode.OK
    facts, signature = World.facts, "signature\0/dev/nvme1n1\0ext4 0011\0"
    monkeypatch.setattr(World, "facts", lambda self, *opened: f"{signature if opened else ''}{facts(self, *opened)}")
    (inner.pytester.path / "junit.xml").unlink()
    said = inner.refused(*plan, given, *more)
    assert f"that {given} was" in said
    assert re.findall(r"--ssd-wipe=SSDQ0002@\w+", said)[-1] != given
