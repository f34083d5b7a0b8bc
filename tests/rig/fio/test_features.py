from __future__ import annotations

import pytest
from support.fakes.scripted import ScriptedMachine, completed

from pytest_ssdqual.rig.fio.features import FioUnfit, probe
from pytest_ssdqual.rig.machine.machine import Completed


def machine() -> ScriptedMachine:
    return ScriptedMachine().on("fio", "--version", answer="fio-3.33\n").on("fio")


def test_fit_fio_is_started_once_and_runs_nothing() -> None:
    """fio 3.26 and 3.27 crash on ``--enghelp``, and work."""
    asked = machine().on("fio", "--enghelp=libaio", answer=completed(["fio"], status=139))
    probe(asked)
    assert [argv[1].partition("=")[0] for argv in asked.asked] == ["--version", "--parse-only"]
    tried = {option.partition("=")[0] for argv in asked.asked for option in argv}
    assert tried >= {
        "--norandommap", "--offset_increment", "--rwmixread", "--loops", "--status-interval", "--bssplit",
        "--blockalign", "--percentage_random", "--offset", "--new_group", "--exit_what", "--startdelay", "--io_size",
        "--exitall", "--verify", "--verify_offset", "--verify_dump", "--verify_state_save", "--random_distribution",
        "--sync", "--fsync", "--buffer_compress_percentage", "--dedupe_percentage",
    }  # fmt: skip


def test_what_is_refused_only_together_is_no_objection() -> None:
    def parse(argv: tuple[str, ...]) -> Completed:
        return completed(argv, status=int(argv.count("--eta=never") > 1), stderr="fio: these do not go together\n")

    probe(machine().on("fio", "--parse-only", answer=parse))


@pytest.mark.parametrize(
    ("command", "status", "said", "cause"),
    [
        ("--version", 127, "", "install the package fio"),
        (
            "--parse-only",
            1,
            "fio: engine libaio not loadable\nfio: failed to load engine\n",
            "the package fio-engine-libaio",
        ),
        (
            "--parse-only",
            1,
            "fio: unrecognized option '--refill_buffers=1'\n" * 2,
            "the option refill_buffers; install",
        ),
        (
            "--parse-only",
            1,
            "fio: invalid output format json+\nfio: failed parsing output-format\n",
            "failed parsing output-format",
        ),
    ],
)
def test_unfit_fio_is_refused_with_its_reason(command: str, status: int, said: str, cause: str) -> None:
    refusing = machine().on("fio", command, answer=completed(["fio"], status=status, stderr=said))
    with pytest.raises(FioUnfit, match=cause):
        probe(refusing)


def test_option_that_fio_3_16_lacks_is_named() -> None:
    """``unified_rw_reporting`` was a flag until 3.27; the jobs do not need it."""

    def parse(argv: tuple[str, ...]) -> Completed:
        said = "".join(f"fio: unrecognized option '{option}'\n" for option in argv if option == "--exit_what=all")
        said += "".join("fio: failed parsing unified_rw_reporting=none\n" for option in argv if "unified" in option)
        return completed(argv, status=int(bool(said)), stderr=said)

    with pytest.raises(FioUnfit, match=r"exit_what; .*3\.19"):
        probe(machine().on("fio", "--parse-only", answer=parse))
