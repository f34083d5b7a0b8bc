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


#: What comes of a single bay with four drives.
ALONE = {
    "test_iops[raid5x3-randwrite_4k_qd8]": "error",
    "test_iops[raid5x3-randread_4k_qd8]": "failure",
    "test_iops[raid5x4-randwrite_4k_qd8]": "error",
    "test_iops[raid5x4-randread_4k_qd8]": "passed",
    "test_scaling[raid5-randwrite_4k_qd8]": "passed",
    "test_scaling[raid5-randread_4k_qd8]": "passed",
}
#: One test of each bay, which passes.
FEW = (QUICK, "-k", "iops and randread and x4")


def of_bay(inner: Inner, bay: str) -> dict[str, str]:
    """Outcomes of its tests, by their ids without it."""
    return {name.replace(f"{bay}-", ""): case for name, case in inner.outcomes().items() if f"[{bay}" in name}


def test_every_bay_goes_through_the_whole_suite(inner: Inner, promises: str) -> None:
    inner.pytester.makepyfile(test_other="def test_of_another_kind(): pass")
    result = inner.run(*TWO, promises, QUICK, "-n", "auto", "--ssd-openmetrics=ssd.prom")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["created: 2/2 workers"])
    for bay in ("dut1", "dut2"):
        assert of_bay(inner, bay) == {**ALONE, "test_of_another_kind[dut2]".replace("dut2", bay): "passed"}
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
    result = inner.run(*three, promises, *FEW, "-n", "1", "-o", "ssd_page=true")
    result.assert_outcomes(passed=3)
    # Each bay has a worker of its own, one after the other.
    result.stdout.fnmatch_lines(["created: 1/1 worker"])
    assert len({inner.records("measured", bay=bay)[0]["writer"] for bay in ("dut1", "dut2", last)}) == 3
    found = json.loads((inner.pytester.path / "found.json").read_text())
    assert ("report.html" in found["dut1"]) == (last == "dut3")
    assert "SHA256SUMS" not in found[last]
    for bay in ("dut1", "dut2", last):
        assert [record["exit_status"] for record in inner.records("run_ended", bay=bay)] == [0]
        folder = inner.folder() / "bays" / bay
        assert (folder / "report.html").is_file()
        assert (folder / "SHA256SUMS").read_bytes() == checksums.text(folder)


def test_a_killed_worker_takes_no_other_bay_with_it(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_ONLY", "root@dut1")
    monkeypatch.setenv("SIMULATED_KILLED_AT", "2")
    three = (*TWO, "--ssd-devices=root@dut3:/dev/nvme*")
    inner.run(*three, promises, QUICK, "-n", "1")
    assert of_bay(inner, "dut2") == of_bay(inner, "dut3") == ALONE
    lost = {name: case for name, case in inner.cases().items() if "[dut1" in name}
    assert len(lost) == len(ALONE)
    told = [case.message for case in lost.values() if case.outcome == "error"]
    assert sum("crashed while running" in each for each in told) == 1
    assert sum("dut1 was given up" in each for each in told) == len(told) - 1
    noted = [record["test"] for record in inner.records("error", bay="dut1")]
    assert len(noted) == len(set(noted)) == len(told)


def test_what_is_wrong_with_one_bay_refuses_all(inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_ONLY", "root@dut2")
    monkeypatch.setenv("SIMULATED_HELD", "1")
    told = inner.refused(*TWO, promises, QUICK, "-n", "2")
    assert told.startswith("dut2: ")
    assert "dut1" not in told
    assert len(inner.records("run_refused", bay="dut1")) == 1
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
    assert inner.refused(*TWO, promises, QUICK, "-n", "2").startswith("dut2: dut2 answers")
    reasons = [inner.records("run_refused", bay=bay)[0]["reasons"] for bay in ("dut1", "dut2")]
    assert [reason.startswith("dut2 answers") for reason in reasons] == [False, True]


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


def test_a_machine_that_is_lost_errors_its_own_tests_and_its_bay_is_resumed(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_ONLY", "root@dut2")
    monkeypatch.setenv("SIMULATED_LOST_AT", "2")
    result = inner.run(*TWO, promises, QUICK, "-n", "2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert of_bay(inner, "dut1") == ALONE
    lost = {name: case for name, case in inner.cases().items() if "[dut2" in name}
    assert len(lost) == len(ALONE)
    errors = [case.message for case in lost.values() if case.outcome == "error"]
    assert all("root@dut2 is lost" in message for message in errors)
    assert sum("not run: " in message for message in errors) == len(errors) - 1
    assert len(errors) >= len(ALONE) - 2
    assert all(inner.records("run_ended", bay=bay) for bay in ("dut1", "dut2"))
    measured = len(inner.records("measured", bay="dut1"))
    monkeypatch.setenv("SIMULATED_LOST_AT", "0")
    of_first = fleet.read(inner.folder())
    assert of_first.ended
    (inner.pytester.path / "junit.xml").unlink()
    with monkeypatch.context() as held:
        held.setenv("SIMULATED_HELD", "1")
        assert "holds drives" in inner.refused(*TWO, promises, QUICK, "-n", "2", "--ssd-resume=last")
    assert fleet.read(inner.folder()) == of_first
    inner.run(*TWO, promises, QUICK, "-n", "2", "--ssd-resume=last")
    assert of_bay(inner, "dut1") == of_bay(inner, "dut2") == ALONE
    assert [len(inner.records("measured", bay=bay)) for bay in ("dut1", "dut2")] == [measured, measured]
    assert fleet.read(inner.folder()).ended


def test_what_the_first_failure_stopped_is_not_lost_and_goes_on(inner: Inner, promises: str) -> None:
    inner.run(*TWO, promises, QUICK, "-n", "1", "-x")
    assert list(inner.outcomes().values()) == ["error"]
    assert [inner.manifest(bay)["exit_status"] for bay in ("dut1", "dut2")] == [2, 2]
    inner.run(*TWO, promises, QUICK, "-n", "2", "--ssd-resume=last")
    assert of_bay(inner, "dut1") == of_bay(inner, "dut2") == ALONE
    for bay in ("dut1", "dut2"):
        found = [(record["geometry"], record["workload"]) for record in inner.records("measured", bay=bay)]
        assert len(found) == len(set(found)) > 1


def test_one_of_several_is_an_ordinary_run_and_not_resumed_with_the_others(inner: Inner, promises: str) -> None:
    inner.run(*TWO, promises, QUICK, "--ssd-bay=dut2")
    assert inner.outcomes() == ALONE
    assert not fleet.is_fleet(inner.folder())
    (inner.pytester.path / "junit.xml").unlink()
    assert "of a single bay" in inner.refused(*TWO, promises, QUICK, "-n", "2", "--ssd-resume=last")


def test_what_cannot_be_resumed_leaves_the_bays_as_they_were(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C before it, with a bay that the run never had, and with a bay of another version."""
    args = (*TWO, promises, *FEW, "-n", "5")
    inner.run(*args).stdout.fnmatch_lines(["created: 2/2 workers"])
    folder = inner.folder()

    def stopped(bays: Mapping[str, Sequence[Drive]]) -> Iterable[str]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shared_paths, "same_drives", stopped)
        inner.run(*args, "--ssd-resume=last")
    for bay in fleet.bay_folders(folder):
        assert (bay / checksums.SUMS).is_file()
        assert len(inner.records("resume_refused", bay=bay.name)) == 1
    (inner.pytester.path / "junit.xml").unlink(missing_ok=True)
    third = "--ssd-devices=root@dut3:/dev/nvme*"
    told = inner.refused(TWO[0], third, promises, QUICK, "-n", "2", "--ssd-resume=last")
    assert told.endswith("no bay dut3; it has dut1, dut2")
    file = folder / "bays" / "dut2" / "records.jsonl"
    file.write_text(file.read_text().replace(f'"schema":{SCHEMA}', '"schema":1'))
    assert "schema 1" in inner.refused(*args, "--ssd-resume=last")


def test_consents_may_be_for_drives_of_any_bay_but_not_of_none(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = inner.refused(*TWO, promises, QUICK, "-n", "2", "--ssd-wipe=SSDQ20001,SSDQ99")
    assert told.startswith("--ssd-wipe=SSDQ99: ")
    assert "SSDQ20001" in told
    result = inner.run(*TWO, promises, *FEW, "-n", "2", "--ssd-wipe=SSDQ20001")
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
    few = (promises, *FEW)
    inner.run(*TWO, *few, "-n", "2")
    before = inner.folder().rename(inner.pytester.path / "before")
    inner.run(*TWO, *few, "-n", "2", f"--ssd-baseline={before}")
    for bay in ("dut1", "dut2"):
        manifest = inner.manifest(bay)
        assert manifest["baseline"]["run"] == f"before/{bay}"
    (inner.pytester.path / "junit.xml").unlink()
    third = ("--ssd-devices=root@dut3:/dev/nvme*", *TWO)
    told = inner.refused(*third, *few, "-n", "2", f"--ssd-baseline={before}")
    assert told.startswith("--ssd-baseline: ")
    assert told.endswith("the bay dut3")
    alone = before / "bays" / "dut1"
    assert inner.run(*third, *few, "-n", "3", f"--ssd-baseline={alone}").ret == 0
