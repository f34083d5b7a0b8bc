"""``suites/integrity`` as a whole, on arrays that were never there."""

from __future__ import annotations

from pathlib import Path

import hypothesis  # noqa: F401 (pytester forgets what is first imported inside)
import pytest
from support.fakes.inner_session import Inner
from support.simulator.simulated_array import Bugs, SimulatedBody

import pytest_ssdqual
from pytest_ssdqual.plugin.searches import integrity
from pytest_ssdqual.qual.integrity import steps
from pytest_ssdqual.qual.integrity.array_state import Abilities
from pytest_ssdqual.rig.campaign.campaign import Campaign
from pytest_ssdqual.rig.integrity.power_cut import PowerSwitch
from pytest_ssdqual.rig.measure.session import Setup

LAB = ("--ssd-devices=lab:4", "integrity/test_acknowledged_data.py", "-k", "raid5x3")
TEST = "test_a_raid5_keeps_what_it_acknowledged[raid5x3]"


class Bodies:
    """Every array that is asked for, and who was to cut its power."""

    def __init__(self) -> None:
        self.bugs = Bugs()
        self.made: list[SimulatedBody] = []
        self.switches: list[PowerSwitch | None] = []

    def __call__(self, setup: Setup, switch: PowerSwitch | None) -> SimulatedBody:
        self.switches.append(switch)
        can = Abilities(power_cut=switch is not None)
        self.made.append(SimulatedBody(self.bugs, len(setup.held.drives), can, chunk=65536))
        return self.made[-1]


@pytest.fixture
def bodies(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> Bodies:
    bodies = Bodies()
    monkeypatch.setattr(integrity, "body_of", bodies)
    inner.suite("integrity")
    return bodies


def test_an_array_that_keeps_its_data_passes(inner: Inner, bodies: Bodies) -> None:
    inner.run(*LAB).assert_outcomes(passed=1, deselected=9)
    (case,) = inner.cases().values()
    assert case.properties["ssd.claim"] == "lost_blocks"
    assert case.properties["ssd.outcome"] == "pass"
    (found,) = inner.records("integrity")
    assert "24 steps" in found["sentence"]
    assert len(inner.records("history")) == 2
    assert bodies.switches != [None], "the lab cuts its own power"
    for record in inner.records("history"):
        script = steps.parse((inner.folder() / str(record["script"])).read_text())
        assert len(script.steps) == record["steps_done"] == 12


def test_lost_data_fail_the_test_with_a_script_to_repeat_it(inner: Inner, bodies: Bodies) -> None:
    bodies.bugs = Bugs(misplaced=True)
    shipped = (Path(pytest_ssdqual.__file__).parent / "protocols" / "quick.toml").read_text()
    inner.pytester.path.joinpath("long.toml").write_text(shipped.replace("histories = 2", "histories = 40"))
    inner.run(*LAB, "--ssd-protocol=long.toml").assert_outcomes(failed=1, deselected=9)
    (case,) = inner.cases().values()
    assert case.outcome == "failure"
    assert case.message.startswith("raid5x3: 8 blocks ")
    assert "pytest --ssd-devices=lab:4 --ssd-protocol=long.toml --ssd-replay=" in case.message
    script = inner.folder() / "integrity" / "raid5x3.history"
    assert list(map(str, steps.parse(script.read_text()).steps)) == ["write 0 16k"]
    assert case.properties["ssd.shortest_steps"] == "1"
    built = bodies.made[-1].built
    inner.run(*LAB, f"--ssd-replay={script}", "--ssd-run-dir=again").assert_outcomes(failed=1, deselected=9)
    assert (bodies.made[-1].built, built > 1) == (1, True)


def test_what_stood_before_is_stopped_first(inner: Inner, bodies: Bodies, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[int] = []
    monkeypatch.setattr(Campaign, "close", lambda campaign: closed.append(len(bodies.made)))
    inner.run(*LAB)
    assert closed[0] == 0, "before the first array is built"


def test_a_broken_rig_is_an_error(inner: Inner, bodies: Bodies) -> None:
    bodies.bugs = Bugs(broken="write")
    inner.run(*LAB).assert_outcomes(errors=1, deselected=9)
    assert "write failed on" in inner.cases()[TEST].message
    assert bodies.made[0].closed


def test_a_replay_of_another_array_is_skipped_and_says_so(inner: Inner, bodies: Bodies) -> None:
    inner.pytester.path.joinpath("x.history").write_text("array raid5x4 bitmap none\nwrite 0 4k\n")
    inner.run(*LAB, "--ssd-replay=x.history").assert_outcomes(skipped=1, deselected=9)
    assert "for raid5x4" in inner.cases()[TEST].message
    assert bodies.made == []


def test_a_script_that_makes_no_sense_is_refused(inner: Inner, bodies: Bodies) -> None:
    inner.pytester.path.joinpath("x.history").write_text("array raid5x3 bitmap none\nwriet 0 4k\n")
    assert "x.history: line 2: " in inner.refused(*LAB, "--ssd-replay=x.history")
    assert "No such file" in inner.refused(*LAB, "--ssd-replay=y.history")


def test_without_hypothesis_the_run_is_refused_with_what_to_type(
    inner: Inner, bodies: Bodies, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_ssdqual.plugin.session import controller

    monkeypatch.setattr(controller, "find_spec", lambda name: None)
    result = inner.run(*LAB)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "pip install 'pytest-ssdqual[search]'" in result.stdout.str() + result.stderr.str()


SITE = """
    def pytest_ssdqual_power_cut(machine):
        print("cutting", machine)
        return {answer}
"""


def test_a_site_cuts_the_power_of_its_machines(inner: Inner, bodies: Bodies) -> None:
    inner.pytester.makeconftest(SITE.format(answer="True"))
    inner.run("--ssd-devices=dut:/dev/nvme*n1", "--ssd-protocol=quick", *LAB[1:])
    (switch,) = bodies.switches
    assert switch is not None
    switch()


def test_a_site_that_does_not_is_an_error(inner: Inner, bodies: Bodies) -> None:
    inner.pytester.makeconftest(SITE.format(answer="None"))
    inner.run("--ssd-devices=dut:/dev/nvme*n1", "--ssd-protocol=quick", *LAB[1:])
    (switch,) = bodies.switches
    assert switch is not None
    with pytest.raises(Exception, match="pytest_ssdqual_power_cut"):
        switch()


def test_any_other_machine_keeps_its_power(inner: Inner, bodies: Bodies) -> None:
    inner.run("--ssd-devices=dut:/dev/nvme*n1", "--ssd-protocol=quick", *LAB[1:]).assert_outcomes(
        passed=1, deselected=9
    )
    assert bodies.switches == [None]


def test_it_comes_last_and_is_in_the_plan(inner: Inner, bodies: Bodies) -> None:
    result = inner.run("--collect-only", *LAB)
    result.stdout.fnmatch_lines(["*raid5x3 integrity*", "*will be destroyed*"])
