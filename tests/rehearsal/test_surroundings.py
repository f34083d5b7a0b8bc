"""What really goes on around fio in the lab: nothing to speak of; and what somebody else does is found and named."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from bare_drives import Bench, bench
from rehearsed import BRIEF, Lab, Running, Server, Start, drives

from pytest_ssdqual.qual.geometry import Geometry
from pytest_ssdqual.rig import surroundings
from pytest_ssdqual.rig.md import Array
from pytest_ssdqual.rig.sight import parse
from pytest_ssdqual.rig.surroundings import SCRIPT, When

pytestmark = pytest.mark.lab

#: Figures of a JUnit testcase that must be known here; nothing tells how hot the guest's CPU is.
KNOWN = (
    "foreign_percent", "temperature_c", "too_warm_s", "link_percent", "cpu_busy_percent", "cpu_busiest_percent",
    "fio_cpu_percent", "clock_jump_s", "fio_clock_ahead_s",
)  # fmt: skip
ONE = "test_steady_state_iops_match_the_data_sheet[raid5x3-randread_4k_qd8]"


@pytest.fixture(scope="module")
def here(lab: Lab) -> Iterator[Bench]:
    with bench(lab) as found:
        yield found


@pytest.mark.parametrize("shell", [["sh"], ["busybox", "sh"]], ids=" ".join)
def test_all_that_is_asked_is_answered_by_either_shell(here: Bench, shell: list[str]) -> None:
    members = here.drives[:2]
    names = [part for drive in members for part in (drive.kname, drive.path)]
    argv = [*shell, "-c", SCRIPT, "surroundings", "before", "-", *names]
    seen = parse(here.machine.run(argv).text, "", names[::2])
    assert len(seen.cpus) == 3
    assert seen.clock_s is not None
    for drive in seen.drives:
        assert drive.counted.traffic is not None
        assert drive.counted.appearance > 0
        assert drive.link is not None
        assert drive.link.share == 1
        assert (drive.warmth.temperature_c, drive.warmth.too_warm) == (50, False)


def test_a_drive_beyond_its_own_threshold_is_too_warm(here: Bench) -> None:
    """The emulated drive always has 50 °C; its threshold can be moved."""
    drive = here.drives[1]
    array = Array(Geometry.parse("drivex1"), drive.path, (drive,), "", drive.size_bytes, "none needed")
    set_feature = ["nvme", "set-feature", drive.path.removesuffix("n1"), "--feature-id=4"]
    here.machine.run([*set_feature, f"--value={273 + 47}"])
    try:
        (seen,) = surroundings.look(here.machine, array, When.AFTER).drives
    finally:
        here.machine.run([*set_feature, f"--value={273 + 70}"])
    assert seen.warmth.too_warm is True


def begun(start: Start, server: Server) -> Running:
    """A run of one workload, when its measurement (the last fio) is under way; it has a single attempt."""
    start.protocol = start.place / "once.toml"
    start.protocol.write_text(BRIEF.read_text().replace("attempts = 4", "attempts = 1"))
    run = start(drives(3), "-k", "steady_state and raid5x3 and randread_4k_qd8")
    run.await_record("conditioned")
    server.await_fio()
    return run


def test_nothing_speaks_against_a_quiet_run_and_its_figures_are_known(server: Server, start: Start) -> None:
    finished = start(drives(3), "-k", "steady_state and raid5x3 and randread_4k_qd8").finish()
    assert finished.status == 0, finished.output
    properties = finished.properties(ONE)
    figures = {name: float(properties[f"ssd.{name}"]) for name in KNOWN}
    assert figures["foreign_percent"] == 0
    assert float(properties["ssd.members_foreign_percent"]) < 1
    assert (figures["link_percent"], figures["temperature_c"], figures["too_warm_s"]) == (100, 50, 0)
    assert properties["ssd.checks_unknown"] == "1"
    for record in finished.folder.records("surroundings"):
        assert record.facts["objections"] == []
    assert len(finished.folder.commands("sh", "-c", SCRIPT)) == 2 * len(finished.folder.records("ran"))


def test_another_program_that_reads_a_member_is_found_and_the_drive_is_named(server: Server, start: Start) -> None:
    run = begun(start, server)
    reading = "while :; do dd if=/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_SSDQ0002 of=/dev/null bs=1M iflag=direct; done"
    with subprocess.Popen(
        server.lab.ssh("timeout", "300", "sh", "-c", reading), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as other:  # fmt: skip
        finished = run.finish()
        server.ask("sh", "-c", "kill $(pidof dd) $(pidof timeout)", check=False)
        other.kill()
    (said,) = finished.results()[ONE]
    assert said.startswith("error: ")
    assert "the members of raid5x3 read " in said
    assert "something else uses them (most at drive SSDQ0002: " in said


def test_a_clock_that_is_set_meanwhile_is_found(server: Server, start: Start) -> None:
    run = begun(start, server)
    server.ask("sh", "-c", "date --set=@$(($(date +%s) + 3600))")
    try:
        finished = run.finish()
    finally:
        server.ask("sh", "-c", "date --set=@$(($(date +%s) - 3600))")
    (said,) = finished.results()[ONE]
    assert said.startswith("error: ")
    assert "clock was set" in said
