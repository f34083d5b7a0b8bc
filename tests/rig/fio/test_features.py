from __future__ import annotations

import pytest
from support.fakes.scripted import ScriptedMachine, completed

from pytest_ssdqual.rig.fio.features import FioUnfit, probe
from pytest_ssdqual.rig.machine.machine import Completed


def machine() -> ScriptedMachine:
    return ScriptedMachine().on("fio", "--version", answer="fio-3.33\n").on("fio")


def test_a_fit_fio_is_recorded_by_its_version() -> None:
    assert probe(machine()).version == "fio-3.33"


def test_every_option_of_every_kind_of_job_is_tried_and_nothing_is_run() -> None:
    asked = machine()
    probe(asked)
    tried = {option.partition("=")[0] for argv in asked.asked for option in argv}
    assert {"--norandommap", "--offset_increment", "--rwmixread", "--loops", "--status-interval"} <= tried
    assert {"--bssplit", "--blockalign", "--percentage_random", "--offset", "--new_group", "--exit_what"} <= tried
    assert {
        "--startdelay",
        "--io_size",
        "--exitall",
        "--verify",
        "--verify_offset",
        "--verify_dump",
        "--verify_state_save",
    } <= tried
    assert {
        "--random_distribution",
        "--sync",
        "--fsync",
        "--buffer_compress_percentage",
        "--dedupe_percentage",
    } <= tried
    assert all(argv[1].partition("=")[0] in ("--version", "--parse-only") for argv in asked.asked)


def test_a_fit_fio_is_started_once_for_all_of_them() -> None:
    asked = machine()
    probe(asked)
    assert [argv[1].partition("=")[0] for argv in asked.asked] == ["--version", "--parse-only"]


def test_what_is_refused_only_together_is_no_objection() -> None:
    def parse(argv: tuple[str, ...]) -> Completed:
        return completed(argv, status=int(argv.count("--eta=never") > 1), stderr="fio: these do not go together\n")

    assert probe(machine().on("fio", "--parse-only", answer=parse)).version == "fio-3.33"


def test_no_fio() -> None:
    missing = ScriptedMachine().on("fio", answer=completed(["fio"], status=127))
    with pytest.raises(FioUnfit, match="scripted has no working fio; install the package fio"):
        probe(missing)


def test_no_libaio() -> None:
    said = "fio: engine libaio not loadable\nfio: failed to load engine\n"
    lacking = machine().on("fio", "--parse-only", answer=completed(["fio"], status=1, stderr=said))
    with pytest.raises(FioUnfit, match="lacks the I/O engine libaio; install the package fio-engine-libaio"):
        probe(lacking)


def test_a_crash_of_its_help_is_no_objection() -> None:
    """fio 3.26 and 3.27 crash on ``--enghelp``, and work."""
    crashing = machine().on("fio", "--enghelp=libaio", answer=completed(["fio"], status=139))
    assert probe(crashing).version == "fio-3.33"


def test_the_option_that_fio_3_16_lacks_is_the_reason_for_refusing_it() -> None:
    """``unified_rw_reporting`` was a flag until 3.27; the jobs do not need it."""

    def parse(argv: tuple[str, ...]) -> Completed:
        said = "".join(f"fio: unrecognized option '{option}'\n" for option in argv if option == "--exit_what=all")
        said += "".join("fio: failed parsing unified_rw_reporting=none\n" for option in argv if "unified" in option)
        return completed(argv, status=int(bool(said)), stderr=said)

    with pytest.raises(FioUnfit, match=r"does not know the option exit_what; install a newer package fio \(3\.19"):
        probe(machine().on("fio", "--parse-only", answer=parse))


def test_an_option_it_does_not_know() -> None:
    said = "fio: unrecognized option '--refill_buffers=1'\nfio: unrecognized option '--refill_buffers=1'\n"

    def parse(argv: tuple[str, ...]) -> Completed:
        return completed(argv, status=1, stderr=said)

    with pytest.raises(FioUnfit, match=r"fio-3\.33 on scripted does not know the option refill_buffers; install"):
        probe(machine().on("fio", "--parse-only", answer=parse))


def test_a_value_it_does_not_know() -> None:
    refusal = completed(
        ["fio"], status=1, stderr="fio: invalid output format json+\nfio: failed parsing output-format\n"
    )
    with pytest.raises(FioUnfit, match=r"refuses options of this program \(fio: failed parsing output-format\)"):
        probe(machine().on("fio", "--parse-only", answer=refusal))
