from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.fakes.scripted import ScriptedMachine

from pytest_ssdqual.rig.machine import facts as provenance
from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.facts import TOOLS, ToolsMissing, facts, require_tools


def test_everything_there_is_no_news() -> None:
    machine = ScriptedMachine().on("sh")
    require_tools(machine)
    assert set(TOOLS) <= set(machine.asked[0])


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ("fio\n", "scripted has no fio: install the package fio there"),
        ("lsblk\nflock\n", "scripted has no lsblk and flock: install the package util-linux there"),
        (
            "fio\nmdadm\nsmartctl\n",
            "scripted has no fio, mdadm and smartctl: install the packages fio mdadm smartmontools there",
        ),
        ("perl\n", "scripted has no perl or python3: install the package perl there"),
    ],
)
def test_all_that_is_missing_is_told_at_once_with_its_packages(missing: str, sentence: str) -> None:
    with pytest.raises(ToolsMissing) as told:
        require_tools(ScriptedMachine().on("sh", answer=missing).on("cat", answer=""))
    assert str(told.value) == sentence


@pytest.mark.parametrize(
    ("distribution", "command"),
    [
        ('PRETTY_NAME="Debian"\nVERSION_ID="12"\nID=debian\n', "`apt install perl udev`"),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\n', "`apt install perl udev`"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "`dnf install perl-interpreter systemd-udev`"),
        ('ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', "`zypper install perl udev`"),
        ("ID=slackware\n", ""),
        ("", ""),
    ],
)
def test_missing_packages_have_the_command_of_the_distribution(distribution: str, command: str) -> None:
    machine = ScriptedMachine().on("sh", "-c", provenance.MISSING, answer="perl\nudevadm\n")
    with pytest.raises(ToolsMissing) as caught:
        require_tools(machine.on("cat", "/etc/os-release", answer=distribution))
    sentence = str(caught.value)
    assert command in sentence
    assert ("`" in sentence) == bool(command)


def test_the_question_is_understood_by_a_shell(unprivileged: Channel) -> None:
    require_tools(unprivileged, {"sh": "dash", "cat": "coreutils"})
    with pytest.raises(ToolsMissing, match="has no no-such-tool"):
        require_tools(unprivileged, {"sh": "dash", "no-such-tool": "nothing"})


@pytest.mark.parametrize(("there", "is_missing"), [("perl", False), ("python3", False), ("python2", True)])
def test_perl_or_python_is_enough(tmp_path: Path, there: str, is_missing: bool) -> None:
    if Path("/usr/libexec/platform-python").exists():
        pytest.skip("there is always a Python here")
    (tmp_path / there).write_text("")
    (tmp_path / there).chmod(0o755)
    argv = [str(shutil.which("sh")), "-c", provenance.MISSING, "missing", "perl", "no-such-tool"]
    done = subprocess.run(argv, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [*["perl"] * is_missing, "no-such-tool"]


def test_facts_are_what_was_said() -> None:
    kernel = "Linux 6.1.0 #1 SMP x86_64"
    said = f"hostname dut7\nkernel {kernel}\nfio 3.33\nodd\n"
    assert facts(ScriptedMachine().on("sh", answer=said)) == {"hostname": "dut7", "kernel": kernel, "fio": "3.33"}


def test_this_computer_has_facts(unprivileged: Channel) -> None:
    found = facts(unprivileged)
    assert found["kernel"].startswith("Linux ")
    assert int(found["cpus"]) >= 1
    assert int(found["memory_kib"]) > 0
    assert found["util-linux"][0].isdigit()
    assert len(found["boot_id"]) == 36


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, {}),
        (
            {
                "devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave",
                "devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave",
                "devices/system/cpu/intel_pstate/no_turbo": "0",
                "devices/system/cpu/smt/active": "1",
                "module/pcie_aspm/parameters/policy": "default performance [powersupersave] powersave",
            },
            {"governor": "powersave", "turbo": "on", "smt": "on", "pcie_aspm": "powersupersave"},
        ),
        (
            {
                "devices/system/cpu/cpu0/cpufreq/scaling_governor": "schedutil",
                "devices/system/cpu/cpu11/cpufreq/scaling_governor": "performance",
                "devices/system/cpu/cpufreq/boost": "0",
            },
            {"governor": "performance schedutil", "turbo": "off"},
        ),
        ({"devices/system/cpu/intel_pstate/no_turbo": "1"}, {"turbo": "off"}),
        ({"devices/system/cpu/smt/active": "0"}, {"smt": "off"}),
        ({"devices/system/cpu/cpufreq/boost": "1"}, {"turbo": "on"}),
    ],
)
def test_how_processors_are_clocked_and_links_sleep(
    unprivileged: Channel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: dict[str, str], found: dict[str, str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    monkeypatch.setattr(provenance, "FACTS", f"sys={tmp_path}\n{provenance.FACTS}")
    here = facts(unprivileged)
    assert {name: here[name] for name in ("governor", "turbo", "smt", "pcie_aspm") if name in here} == found


def test_a_tool_that_is_not_there_has_no_version(unprivileged: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "FACTS", "PATH=/nowhere\n" + provenance.FACTS)
    assert not {"fio", "mdadm", "smartctl", "nvme", "util-linux"} & set(facts(unprivileged))
