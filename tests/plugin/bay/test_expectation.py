"""``--ssd-expect`` and the other sources of the expected number of drives."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.sheet import PRODUCT, promise
from support.fakes import fake_ansible

from pytest_ssdqual.plugin.bay import expectation
from pytest_ssdqual.plugin.options import values
from pytest_ssdqual.report.run_folder.manifest import NONE

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

GLOB = "--ssd-devices=/dev/nvme*"
FEW = ("--ssd-protocol=quick", "-k", "iops and randread and x4")


@pytest.fixture(autouse=True)
def four_drives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_DRIVES", "4")


def write(inner: Inner, name: str, text: str) -> None:
    (inner.pytester.path / name).write_text(text)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--ssd-expect=8",), "4 drives found on localhost, 8 drives expected (--ssd-expect): "),
        (("--ssd-expect=3",), "4 drives found on localhost, 3 drives expected (--ssd-expect): "),
        (("-o", "ssd_expect=8"), "8 drives expected (ssd_expect): "),
        (("--collect-only", "--ssd-expect=8"), "8 drives expected (--ssd-expect): "),
        (("-n", "1", "--ssd-expect=8"), "8 drives expected (--ssd-expect): "),
    ],
)
def test_expect_refuses_another_number(inner: Inner, promises: str, args: tuple[str, ...], expected: str) -> None:
    answer = inner.refused(GLOB, promises, *FEW, *args)
    assert expected in answer
    assert all(f"/dev/nvme{number}n1 (SSDQ000{number + 1})" in answer for number in range(4))
    assert answer.endswith("--ssd-expect=4")


def test_expect_names_missing_paths(inner: Inner, promises: str) -> None:
    answer = inner.refused("--ssd-devices=/dev/nvme[0-5]n1", promises, *FEW, "--ssd-expect=6")
    assert "/dev/nvme4n1, /dev/nvme5n1; " in answer


@pytest.mark.parametrize("more", [(), ("--ssd-expect=4",), ("-o", "ssd_expect=4")])
def test_expect_accepts_the_number(inner: Inner, promises: str, more: tuple[str, ...]) -> None:
    assert inner.run(GLOB, promises, *FEW, *more).ret == pytest.ExitCode.OK


@pytest.mark.parametrize("text", ["0", "-1", "eight", "1.5", "99999999", "\u0664"])
def test_expect_refuses_other_text(text: str) -> None:
    with pytest.raises(pytest.UsageError, match=f"^--ssd-expect={text}: "):
        values.drive_count("--ssd-expect", text)


@pytest.mark.parametrize("how", ["--ssd-expect=eight", "-ossd_expect=eight"])
def test_expect_is_a_number_wherever_it_is_given(inner: Inner, promises: str, how: str) -> None:
    assert "e.g. 8" in inner.refused(GLOB, promises, how)


def test_expect_from_spec(inner: Inner, promises: str) -> None:
    write(
        inner,
        "acme.toml",
        PRODUCT.replace("[product]", "[product]\ndrives = 8") + promise(claim="steady_iops", at_least="1 IOPS"),
    )
    for devices in (GLOB, "--ssd-devices=lab:4"):
        assert "(the spec acme)" in inner.refused(devices, promises, *FEW)
    assert inner.run(GLOB, promises, *FEW, "--ssd-expect=4").ret == pytest.ExitCode.OK


def test_expect_from_inventory_by_bay(inner: Inner, promises: str) -> None:
    bay = '[[bay]]\nname = "{0}"\nhost = "{0}"\ndevices = "/dev/nvme*"\nexpect = {1}\n'
    write(inner, "bays.toml", bay.format("dut1", 4) + bay.format("dut2", 5))
    args = ("--ssd-bays=bays.toml", promises, *FEW)
    answer = inner.refused(*args, "-n", "2", "-o", "ssd_expect=4")
    assert re.match(r"dut2: 4 .*inventory", answer)
    assert "dut1: " not in answer
    assert inner.run(*args, "-n", "2", "--ssd-expect=4").ret == pytest.ExitCode.OK
    assert inner.run(*args, "--ssd-bay=dut1").ret == pytest.ExitCode.OK


@pytest.mark.parametrize("expect", ["5", "many"])
def test_expect_from_ansible_inventory(
    inner: Inner, promises: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expect: str
) -> None:
    hosts = {"dut1": {"ssd_devices": "/dev/nvme*", "ssd_expect": expect}}
    fake_ansible.install(monkeypatch, tmp_path / "ansible", fake_ansible.listing(hosts))
    write(inner, "hosts", f"dut1 ssd_devices=/dev/nvme* ssd_expect={expect}")
    answer = inner.refused("--ssd-bays=hosts", promises, *FEW)
    assert ("(the inventory)" in answer) is (expect == "5")
    assert ("dut1: ssd_expect: " in answer) is (expect == "many")


def test_expect_from_baseline_names_missing_drives(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner.run(GLOB, promises, *FEW)
    (inner.pytester.path / "junit.xml").unlink()
    monkeypatch.setenv("SIMULATED_DRIVES", "3")
    args = (GLOB, promises, "--ssd-protocol=quick", "-k", "iops and randread", "--ssd-baseline=last")
    answer = inner.refused(*args)
    assert "(the baseline " in answer
    assert "SSDQ0004" in answer
    assert answer.endswith("--ssd-expect=3")
    result = inner.run(*args, "--ssd-expect=3")
    assert result.ret == pytest.ExitCode.TESTS_FAILED  # of 3 drives it is 900 IOPS
    # Drives that are named one by one are meant.
    names = "--ssd-devices=" + ",".join(f"/dev/nvme{number}n1" for number in range(3))
    assert inner.run(names, *args[1:]).ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    ("args", "phrase"),
    [
        ((GLOB,), NONE),
        ((GLOB, "--ssd-expect=4"), "4 drives expected (--ssd-expect)"),
        (("--ssd-devices=lab:4",), "4 drives expected (--ssd-devices)"),
    ],
)
def test_expectation_is_reported_everywhere(inner: Inner, promises: str, args: tuple[str, ...], phrase: str) -> None:
    result = inner.run(*args, promises, *FEW, "-o", "ssd_page=true")
    assert any(f", {phrase}, " in line for line in result.outlines)
    is_given = phrase != NONE
    assert ("--ssd-expect=4 would" in result.stdout.str()) is not is_given
    folder = inner.folder()
    for name in ("report.html", "summary.md"):
        text = (folder / name).read_text()
        # A pass without a number must not alarm: only the test setup has the phrase.
        assert (phrase in text) is is_given
    number = "4" if is_given else "none"
    properties = inner.suite_properties()
    assert (properties["ssd.drives_found"], properties["ssd.drives_expected"]) == ("4", number)
    manifest = inner.manifest()
    assert bool(manifest["expected"]) is (number == "4")


def test_plan_reports_missing_expectation(inner: Inner, promises: str) -> None:
    text = inner.run(GLOB, promises, *FEW, "--collect-only").stdout.str()
    assert "--ssd-expect=4 would" in text


DRIVES: list[Any] = [SimpleNamespace(kname=f"nvme{number}n1") for number in (1, 2, 4)]


@pytest.mark.parametrize(
    ("patterns", "missing"),
    [
        (["/dev/nvme[1-4]n1"], ["/dev/nvme3n1"]),
        (["/dev/nvme[12]n1", "/dev/nvme[3-5]n1"], ["/dev/nvme3n1", "/dev/nvme5n1"]),
        (["/dev/nvme[1-4]n[1-2]"], ["/dev/nvme1n2", "/dev/nvme2n2", "/dev/nvme3n1", "/dev/nvme3n2", "/dev/nvme4n2"]),
        (["/dev/nvme[!1]n1"], []),
        (["/dev/nvme*n1"], []),
        (["/dev/disk/by-id/nvme-[1-9]"], []),
        (["/dev/nvme[1-9][0-9][0-9][0-9]n1"], []),
        (["/dev/nvme[4-1]n1"], []),
    ],
)
def test_not_there_lists_unmatched_names(patterns: list[str], missing: list[str]) -> None:
    assert expectation.not_there(patterns, DRIVES) == missing


@given(
    st.lists(st.sampled_from("abcdefgh0123"), min_size=1, max_size=6).map("".join),
    st.sampled_from(["sd{}", "nvme{}n1"]),
)
def test_not_there_expands_to_matching_names(inside: str, name: str) -> None:
    pattern = f"/dev/{name.format(f'[{inside}]')}"
    found = expectation.not_there([pattern], [])
    assert all(fnmatchcase(each, pattern) for each in found)
    assert len(found) == (len(set(inside)) if len(set(inside)) > 1 else 0)
    assert Path(pattern).parent == Path("/dev")
