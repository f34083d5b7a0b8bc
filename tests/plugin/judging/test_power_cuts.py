"""Power cuts of bare drives by a site's commands, on simulated drives."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.fakes.inner_session import Inner
from support.simulator.simulated_power import COMMANDS

pytestmark = pytest.mark.slow

DRIVES = "--ssd-devices=/dev/nvme*"
ARGUMENTS = DRIVES, "--ssd-protocol=six.toml", "--ssd-spec=default"
TEST = "test_drives_keep_flushed_data[drivex2]"


@pytest.fixture
def suite(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> str:
    """The suite, with six cuts of two drives."""
    monkeypatch.setenv("SIMULATED_DRIVES", "2")
    shipped = Path(__file__).parents[3] / "pytest_ssdqual" / "protocols" / "acceptance.toml"
    text = shipped.read_text().replace("power_cuts = 30", "power_cuts = 6").replace("regions = 16", "regions = 4")
    inner.pytester.path.joinpath("six.toml").write_text(text)
    return inner.suite("power_cuts")


def verdict(inner: Inner) -> dict[str, object]:
    (found,) = (record for record in inner.records("verdict") if record["claim"] == "power_cut_losses")
    return found


def test_sound_drives_pass_with_the_bound_of_their_cuts(inner: Inner, suite: str) -> None:
    assert inner.run(*ARGUMENTS, *COMMANDS, suite).ret == pytest.ExitCode.OK
    found = verdict(inner)
    assert (found["outcome"], found["value"], found["n"]) == ("pass", 0.0, 4), "six cuts, two of them unflushed"
    assert found["figures"]["bound_percent"] == 75.0  # type: ignore[index]
    modes = [record["mode"] for record in inner.records("drive_power_cut")]
    assert modes == ["flushed", "FUA", "unflushed"] * 2


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("lost", "lost"),
        ("torn", "shorn"),
        ("unreadable", "damaged"),
    ],
)
def test_a_drive_that_loses_flushed_data_fails(
    inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch, fault: str, kind: str
) -> None:
    monkeypatch.setenv("SIMULATED_POWER", f"SSDQ0002={fault}")
    assert inner.run(*ARGUMENTS, *COMMANDS, suite).ret == pytest.ExitCode.TESTS_FAILED
    assert inner.outcomes()[TEST] == "failure"
    found = verdict(inner)
    counts = {name: count for name, count in found["figures"].items() if name.endswith("writes") and count}  # type: ignore[attr-defined]
    assert found["worst"] == "SSDQ0002"
    assert set(counts) == {f"{kind}_writes"}
    assert found["value"] == counts[f"{kind}_writes"]
    cut = [len(record["drives"]) for record in inner.records("drive_power_cut")]
    assert cut == [2, 1, 1, 1, 1, 1], "a drive with a finding is not cut again"
    assert all((inner.folder() / name).is_file() for name in found["raw"])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("spec", "cache", "outcome", "judged"),
    [("no", "on", "passed", 4), ("yes", "on", "failure", 6), ("no", "off", "failure", 4)],
)
def test_only_drives_that_may_lose_unflushed_data(
    inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch, spec: str, cache: str, outcome: str, judged: int
) -> None:
    """A volatile cache may, unless the spec promises power-loss protection."""
    monkeypatch.setenv("SIMULATED_POWER", "SSDQ0002=volatile")
    inner.pytester.path.joinpath("caches.json").write_text(f'{{"SSDQ0002": "{cache}"}}')
    monkeypatch.setenv("SIMULATED_CACHES", "caches.json")
    promise = f"power_loss_protection = {'true' if spec == 'yes' else 'false'}"
    inner.pytester.path.joinpath("acme.toml").write_text(f'[product]\nname = "A"\nmodels = ["*"]\n{promise}\n')
    inner.run(DRIVES, "--ssd-protocol=six.toml", "--ssd-spec=acme.toml", *COMMANDS, suite)
    assert inner.outcomes()[TEST] == outcome
    found = verdict(inner)
    # Of the sound drive, whose volatile cache may lose what was not flushed, fewer cuts count.
    assert found["n"] == judged
    assert bool(found["remarks"]) is (outcome == "passed")
    assert found["figures"]["lost_writes"] == (0 if outcome == "passed" else 16)  # type: ignore[index]


@pytest.mark.parametrize(
    ("fault", "outcome", "said"),
    [
        ("renamed", "passed", ""),
        ("dead", "failure", "did not come back"),
        ("swapped", "failure", "OTHER"),
        ("smaller", "failure", "240,051,990,528 bytes"),
        ("mounted", "error", "mounted"),
        ("stays", "error", "--ssd-power-off did not take"),
    ],
)
def test_a_drive_is_identified_when_it_is_back(
    inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch, fault: str, outcome: str, said: str
) -> None:
    monkeypatch.setenv("SIMULATED_POWER", f"SSDQ0002={fault}")
    inner.run(*ARGUMENTS, *COMMANDS, suite)
    assert inner.outcomes()[TEST] == outcome
    assert said in inner.cases()[TEST].message
    assert not list(inner.pytester.path.glob("off-*")), "the power is on"
    if outcome == "failure":
        assert verdict(inner)["worst"] == "SSDQ0002"
        cut = [len(record["drives"]) for record in inner.records("drive_power_cut")]
        assert cut == [2, 1, 1, 1, 1, 1]


def test_a_command_that_fails_is_an_error_of_the_rig(inner: Inner, suite: str) -> None:
    inner.run(*ARGUMENTS, "--ssd-power-off=false", "--ssd-power-on=true {slot}", suite)
    assert inner.outcomes()[TEST] == "error"
    assert "--ssd-power-off" in inner.cases()[TEST].message


def test_one_outlet_that_fails_leaves_no_other_drive_without_power(inner: Inner, suite: str) -> None:
    off = COMMANDS[0]
    on = inner.pytester.path / "on.sh"
    on.write_text('rm -f "off-$1"; test "$1" != SSDQ0001')
    inner.run(*ARGUMENTS, off, f"--ssd-power-on=sh {on} {{serial}}", suite)
    assert inner.outcomes()[TEST] == "error"
    assert not list(inner.pytester.path.glob("off-*")), "the power is on"
    assert not inner.records("drive_worsened")


def test_no_drive_is_accused_if_none_comes_back(inner: Inner, suite: str) -> None:
    inner.run(*ARGUMENTS, COMMANDS[0], "--ssd-power-on=true {slot}", suite)
    assert inner.outcomes()[TEST] == "error"
    assert "--ssd-power-on" in inner.cases()[TEST].message
    assert not inner.records("verdict")
    assert not inner.records("drive_worsened")


def test_one_command_may_cut_the_power_of_all(inner: Inner, suite: str) -> None:
    script = inner.pytester.path / "off.sh"
    script.write_text('echo "$@" >>calls; touch off-SSDQ0001 off-SSDQ0002')
    off, on = f"--ssd-power-off=sh {script} all", "--ssd-power-on=rm -f off-SSDQ0001 off-SSDQ0002"
    assert inner.run(*ARGUMENTS, off, on, suite).ret == pytest.ExitCode.OK
    assert (inner.pytester.path / "calls").read_text() == "all\n" * 6


def test_without_commands_nothing_is_judged_and_the_run_is_not_green(inner: Inner, suite: str) -> None:
    result = inner.run(*ARGUMENTS, suite)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert inner.outcomes()[TEST] == "skipped"
    assert "--ssd-power-off=COMMAND" in inner.cases()[TEST].message
    assert not inner.records("purging")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--ssd-power-off=x"], "belong together"),
        (["--ssd-power-off=x {seral}", "--ssd-power-on=y"], "{seral} is no placeholder"),
        (["--ssd-power-off=x 'y", "--ssd-power-on=y"], "quotation"),
        ([*COMMANDS, "--ssd-read-only"], "remove it"),
    ],
)
def test_unusable_commands_are_refused(inner: Inner, suite: str, given: list[str], said: str) -> None:
    assert said in inner.refused(*ARGUMENTS, *given, suite)
