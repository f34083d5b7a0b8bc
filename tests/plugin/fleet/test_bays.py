"""Several bays in one run: ids, folders, JUnit, and what becomes of the others when one of them is lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ssdqual.plugin.bay.bay import BayOpener, OpenedBay
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.run_folder import checksums
from pytest_ssdqual.report.run_folder.journal import SCHEMA
from pytest_ssdqual.rig.guard import shared_paths
from pytest_ssdqual.rig.machine.machine import RigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from support.fakes.inner_session import Inner

    from pytest_ssdqual.rig.drives.topology import Drive

pytestmark = pytest.mark.slow

QUICK = "--ssd-protocol=quick"
TWO = ("--ssd-devices=root@dut1:/dev/nvme*", "--ssd-devices=root@dut2:/dev/nvme*")


def of_bay(inner: Inner, bay: str) -> dict[str, str]:
    """Outcomes of its tests, by their ids without it."""
    return {name.replace(f"{bay}-", ""): case for name, case in inner.outcomes().items() if f"[{bay}" in name}


@pytest.fixture
def alone(inner: Inner, promises: str) -> dict[str, str]:
    """What comes of a single bay."""
    inner.run("--ssd-devices=root@dut1:/dev/nvme*", promises, QUICK)
    outcomes = inner.outcomes()
    (inner.pytester.path / "ssdqual-runs").rename(inner.pytester.path / "alone")
    return outcomes


def test_every_bay_goes_through_the_whole_suite(inner: Inner, promises: str, alone: dict[str, str]) -> None:
    inner.pytester.makepyfile(test_other="def test_of_another_kind(): pass")
    result = inner.run(*TWO, promises, QUICK, "-n", "auto", "--ssd-openmetrics=ssd.prom")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([
        "ssdqual: 2 bays, 8 drives, protocol *", "ssdqual: dut1: 4 × * on root@dut1, *", "ssdqual: dut2: 4 × *",
        "created: 2/2 workers", "*= storage qualification of dut1 =*", "*= storage qualification of dut2 =*",
    ])  # fmt: skip
    for bay in ("dut1", "dut2"):
        assert of_bay(inner, bay) == {**alone, "test_of_another_kind[dut2]".replace("dut2", bay): "passed"}
        (ran,) = {record["writer"] for record in inner.records("measured", bay=bay)}
        assert str(ran).startswith("gw")
        assert [record["geometry"] for record in inner.records("array_created", bay=bay)] == ["raid5x3", "raid5x4"]
        by_controller = inner.records("verdict", "run_started", "run_ended", bay=bay)
        assert {record["writer"] for record in by_controller} == {"main"}
        assert (inner.folder() / "bays" / bay / "SHA256SUMS").is_file()
    case = inner.cases()["test_iops[dut2-raid5x3-randread_4k_qd8]"]
    assert case.properties["ssd.bay"] == "dut2"
    found = fleet.read(inner.folder())
    assert [bay.name for bay in found.bays] == ["dut1", "dut2"]
    assert (found.exit_status, bool(found.ended)) == (1, True)
    assert {"ssd.dut1.machine", "ssd.dut2.machine"} <= inner.suite_properties().keys()
    assert sorted(path.name for path in inner.pytester.path.glob("*.prom")) == ["ssd-dut1.prom", "ssd-dut2.prom"]
    assert '{machine="root@dut2",bay="dut2",' in (inner.pytester.path / "ssd-dut2.prom").read_text()


@pytest.mark.parametrize(("last", "where"), [("dut3", "root@dut3:/dev/nvme*"), ("localhost", "/dev/nvme*")])
def test_the_folder_of_a_bay_is_whole_when_others_still_go_on(
    inner: Inner, promises: str, last: str, where: str
) -> None:
    """A controller that dies at hour 40 has lost nothing of hour 30, and nobody waits for 100 pages at the end.

    Where this computer is measured itself, drawing would slow it down.
    """
    inner.pytester.makeconftest(
        """
    import json, pathlib, pytest

    def pytest_runtest_setup(item):
        if "LAST" in item.nodeid:
            (folder,) = pathlib.Path("ssdqual-runs").iterdir()
            found = {path.name: sorted(each.name for each in path.glob("*.*")) for path in (folder / "bays").iterdir()}
            pathlib.Path("found.json").write_text(json.dumps(found))
    """.replace("LAST", last)
    )
    three = (*TWO, f"--ssd-devices={where}")
    result = inner.run(*three, promises, QUICK, "-n", "1", "-o", "ssd_page=true", "-k", "iops and randread")
    result.assert_outcomes(failed=3, passed=3)
    # Each bay has a worker of its own, one after the other.
    result.stdout.fnmatch_lines(["created: 1/1 worker"])
    assert len({inner.records("measured", bay=bay)[0]["writer"] for bay in ("dut1", "dut2", last)}) == 3
    found = json.loads((inner.pytester.path / "found.json").read_text())
    assert ("report.html" in found["dut1"]) == (last == "dut3")
    assert "SHA256SUMS" not in found[last]
    for bay in ("dut1", "dut2", last):
        assert [record["exit_status"] for record in inner.records("run_ended", bay=bay)] == [1]
        folder = inner.folder() / "bays" / bay
        assert (folder / "report.html").is_file()
        assert (folder / "SHA256SUMS").read_bytes() == checksums.text(folder)


def test_a_machine_that_is_lost_errors_its_own_tests(
    inner: Inner, promises: str, alone: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_ONLY", "root@dut2")
    monkeypatch.setenv("SIMULATED_LOST_AT", "2")
    result = inner.run(*TWO, promises, QUICK, "-n", "2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert of_bay(inner, "dut1") == alone
    lost = {name: case for name, case in inner.cases().items() if "[dut2" in name}
    assert len(lost) == len(alone)
    errors = [case.message for case in lost.values() if case.outcome == "error"]
    assert 'failed on setup with "root@dut2 is lost: no answer"' in errors
    assert errors.count('failed on setup with "not run: root@dut2 is lost: no answer"') == len(errors) - 1
    assert len(errors) >= len(alone) - 2
    assert all(inner.records("run_ended", bay=bay) for bay in ("dut1", "dut2"))


def test_a_killed_worker_takes_no_other_bay_with_it(
    inner: Inner, promises: str, alone: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_ONLY", "root@dut1")
    monkeypatch.setenv("SIMULATED_KILLED_AT", "2")
    three = (*TWO, "--ssd-devices=root@dut3:/dev/nvme*")
    inner.run(*three, promises, QUICK, "-n", "1")
    assert of_bay(inner, "dut2") == of_bay(inner, "dut3") == alone
    lost = {name: case for name, case in inner.cases().items() if "[dut1" in name}
    assert len(lost) == len(alone)
    told = [case.message for case in lost.values() if case.outcome == "error"]
    assert sum("crashed while running" in each for each in told) == 1
    assert (
        sum("the bay dut1 was given up, because the process of its worker died" in each for each in told)
        == len(told) - 1
    )
    noted = [record["test"] for record in inner.records("error", bay="dut1")]
    assert len(noted) == len(set(noted)) == len(told)


def test_what_is_wrong_with_one_bay_refuses_all(inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_ONLY", "root@dut2")
    monkeypatch.setenv("SIMULATED_HELD", "1")
    told = inner.refused(*TWO, promises, QUICK, "-n", "2")
    assert told.startswith("dut2: another run holds drives on root@dut2: ")
    assert "dut1" not in told
    assert [record["reasons"] for record in inner.records("run_refused", bay="dut1")] == [
        "another bay of the run was refused"
    ]
    assert "holds drives" in str(inner.records("run_refused", bay="dut2")[0]["reasons"])
    assert fleet.read(inner.folder()).exit_status == pytest.ExitCode.USAGE_ERROR


def test_a_machine_without_an_answer_refuses_its_own_bay(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_bay = BayOpener.open

    def opened(opener: BayOpener, *args: Any) -> OpenedBay:  # noqa: ANN401 (as it is given)
        if opener.settings.devices.machine == "root@dut2":
            raise RigError("dut2 answers nothing")
        return open_bay(opener, *args)

    monkeypatch.setattr(BayOpener, "open", opened)
    assert inner.refused(*TWO, promises, QUICK, "-n", "2").startswith("dut2: dut2 answers nothing")
    reasons = [inner.records("run_refused", bay=bay)[0]["reasons"] for bay in ("dut1", "dut2")]
    assert reasons == ["another bay of the run was refused", "dut2 answers nothing"]


def test_one_drive_is_not_in_two_bays(inner: Inner, promises: str) -> None:
    """``a1`` and ``b1`` have the same drives in the simulation, as two hosts of one shelf would."""
    told = inner.refused(
        "--ssd-devices=root@a1:/dev/nvme*", "--ssd-devices=root@b1:/dev/nvme*", promises, QUICK, "-n", "2"
    )
    assert "SSDQ10001" in told
    assert inner.records("run_started", bay="a1") == []


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ((), "2 bays need workers of pytest-xdist (pip install pytest-xdist): add -n auto"),
        (("-n", "2", "--collect-only"), "--collect-only works with one bay, and there are 2"),
        (("-n", "2", "--ssd-resume=last"), "--ssd-resume: there is no run in "),
        (("-n", "1", "--ssd-budget=8h"), "--ssd-budget needs a worker for each of 2 bays, and -n starts 1: add -n 2"),
    ],
)
def test_what_cannot_be_done_with_several(inner: Inner, promises: str, more: tuple[str, ...], sentence: str) -> None:
    assert sentence in inner.refused(*TWO, promises, QUICK, *more)
    assert not (inner.pytester.path / "ssdqual-runs").exists()


def test_one_of_them_is_an_ordinary_run(inner: Inner, promises: str, alone: dict[str, str]) -> None:
    inner.run(*TWO, promises, QUICK, "--ssd-bay=dut2")
    assert inner.outcomes() == alone
    assert not fleet.is_fleet(inner.folder())


def test_a_fleet_is_resumed(inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_ONLY", "root@dut2")
    monkeypatch.setenv("SIMULATED_LOST_AT", "2")
    inner.run(*TWO, promises, QUICK, "-n", "2")
    before = inner.outcomes()
    measured = {bay: len(inner.records("measured", bay=bay)) for bay in ("dut1", "dut2")}
    monkeypatch.setenv("SIMULATED_LOST_AT", "0")
    of_first = fleet.read(inner.folder())
    assert of_first.ended
    (inner.pytester.path / "junit.xml").unlink()
    with monkeypatch.context() as held:
        held.setenv("SIMULATED_HELD", "1")
        assert "holds drives" in inner.refused(*TWO, promises, QUICK, "-n", "2", "--ssd-resume=last")
    assert fleet.read(inner.folder()) == of_first
    result = inner.run(*TWO, promises, QUICK, "-n", "2", "--ssd-resume=last")
    result.stdout.fnmatch_lines(["ssdqual: dut1: resuming dut1: * reused"])
    assert of_bay(inner, "dut1") == of_bay(inner, "dut2")
    assert "error" in before.values()
    assert len(inner.records("measured", bay="dut1")) == measured["dut1"]
    assert len(inner.records("measured", bay="dut2")) == measured["dut1"]
    assert fleet.read(inner.folder()).ended


def test_what_the_first_failure_stopped_goes_on(inner: Inner, promises: str, alone: dict[str, str]) -> None:
    inner.run(*TWO, promises, QUICK, "-n", "2", "-x")
    assert len(inner.outcomes()) < 2 * len(alone)
    # Which of them fails first is a race, and the other one may not have begun.
    assert inner.records("measured", bay="dut1") or inner.records("measured", bay="dut2")
    inner.run(*TWO, promises, QUICK, "-n", "2", "--ssd-resume=last")
    assert of_bay(inner, "dut1") == of_bay(inner, "dut2") == alone
    for bay in ("dut1", "dut2"):
        found = [(record["geometry"], record["workload"]) for record in inner.records("measured", bay=bay)]
        assert len(found) == len(set(found)) > 1


def test_a_run_of_one_bay_is_not_resumed_with_several(inner: Inner, promises: str) -> None:
    inner.run("--ssd-devices=root@dut1:/dev/nvme*", promises, QUICK, "-k", "iops and randread")
    (inner.pytester.path / "junit.xml").unlink()
    assert "is the run of a single bay" in inner.refused(*TWO, promises, QUICK, "-n", "2", "--ssd-resume=last")


def test_a_bay_that_the_run_never_had_is_not_resumed(inner: Inner, promises: str) -> None:
    result = inner.run(*TWO, promises, QUICK, "-k", "iops and randread", "-n", "5")
    result.stdout.fnmatch_lines(["created: 2/2 workers"])
    (inner.pytester.path / "junit.xml").unlink()
    third = "--ssd-devices=root@dut3:/dev/nvme*"
    told = inner.refused(TWO[0], third, promises, QUICK, "-n", "2", "--ssd-resume=last")
    assert told.endswith("has no bay dut3; it has dut1, dut2")


def test_consents_may_be_for_drives_of_any_bay_but_not_of_none(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = inner.refused(*TWO, promises, QUICK, "-n", "2", "--ssd-wipe=SSDQ20001,SSDQ99")
    assert told.startswith("--ssd-wipe=SSDQ99: is the serial of no drive that was named; theirs are SSDQ10001, ")
    result = inner.run(*TWO, promises, QUICK, "-n", "2", "--ssd-wipe=SSDQ20001", "-k", "iops and randread and x4")
    result.assert_outcomes(passed=2)


@pytest.mark.parametrize(("what", "status"), [("error", 4), ("warn", 0), ("ignore", 0)])
def test_bays_that_share_a_switch(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch, what: str, status: int
) -> None:
    monkeypatch.setenv("SIMULATED_DRIVES", "6")
    monkeypatch.setenv("SIMULATED_SWITCHED", "nvme0n1 nvme5n1")
    (inner.pytester.path / "bays.toml").write_text(
        "".join(
            f'[[bay]]\nname = "{name}"\nhost = "dut1"\ndevices = {[f"/dev/nvme{number}n1" for number in numbers]}\n'
            for name, numbers in (("left", (0, 1, 2)), ("right", (3, 4, 5)))
        )
    )
    result = inner.run(
        "--ssd-bays=bays.toml",
        promises,
        QUICK,
        "-n",
        "2",
        f"--ssd-shared-path={what}",
        "-k",
        "x3 and randread and iops",
        "-o",
        "ssd_junit_properties=false",
    )
    told = "\n".join([*result.outlines, *result.errlines])
    assert ("share PCIe switch" in told) is (what != "ignore")
    assert (result.ret == 4) is (status == 4)
    assert ("left: 3 ×" in told) is (status != 4)


def test_a_baseline_is_a_fleet_or_one_run_for_all_bays(inner: Inner, promises: str) -> None:
    few = (promises, QUICK, "-k", "iops and randread and x4")
    inner.run(*TWO, *few, "-n", "2")
    before = inner.folder().rename(inner.pytester.path / "before")
    inner.run(*TWO, *few, "-n", "2", f"--ssd-baseline={before}")
    for bay in ("dut1", "dut2"):
        manifest = inner.manifest(bay)
        assert manifest["baseline"]["run"] == f"before/{bay}"
    (inner.pytester.path / "junit.xml").unlink()
    third = ("--ssd-devices=root@dut3:/dev/nvme*", *TWO)
    told = inner.refused(*third, *few, "-n", "2", f"--ssd-baseline={before}")
    assert told == f"--ssd-baseline: {before} has no run of the bay dut3"
    alone = before / "bays" / "dut1"
    assert inner.run(*third, *few, "-n", "3", f"--ssd-baseline={alone}").ret == 0


def test_ctrl_c_before_a_resumed_run_leaves_its_bays_sealed(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = (*TWO, QUICK, promises, "-n", "1", "-k", "iops and randread")
    inner.run(*args)
    folder = inner.folder()

    def stopped(bays: Mapping[str, Sequence[Drive]]) -> Iterable[str]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shared_paths, "same_drives", stopped)
        inner.run(*args, "--ssd-resume=last")
    for bay in fleet.bay_folders(folder):
        assert (bay / checksums.SUMS).is_file()
        assert len(inner.records("resume_refused", bay=bay.name)) == 1


def test_bays_of_another_version_are_refused_in_a_sentence(inner: Inner, promises: str) -> None:
    args = (*TWO, QUICK, promises, "-n", "1", "-k", "iops and randread")
    inner.run(*args)
    file = inner.folder() / "bays" / "dut2" / "records.jsonl"
    file.write_text(file.read_text().replace(f'"schema":{SCHEMA}', '"schema":1'))
    result = inner.run(*args, "--ssd-resume=last")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "schema 1" in "".join(result.errlines)
