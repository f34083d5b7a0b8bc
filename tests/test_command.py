"""``ssdqual``, as it is typed."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.builders import inspected
from support.builders.kept_runs import Kept, KeptMeasurement

from pytest_ssdqual import command
from pytest_ssdqual.qual.inspection.checks import Answer
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.run_folder import checksums

Out = pytest.CaptureFixture[str]


class Inspected(KeptMeasurement):
    """An inspection in which ``value`` of four drives deviate."""

    def record(self) -> dict[str, object]:
        answers = {f"S{n}": ("", Answer.DEVIATES if n < self.value else Answer.CONFORMS) for n in range(4)}
        return {"test": "t.py::t", **plain(inspected.checked("power_on_hours", "", answers, acceptance=False))}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three runs in ``ssdqual-runs`` of the current folder, the last one slower."""
    for index, value in enumerate((12_000, 12_010, 11_000)):
        kept = Kept(
            [KeptMeasurement(value), KeptMeasurement(9e5, Claim.P99_LATENCY)],
            started=f"2026-03-0{index + 1}T12:00:00+00:00",
        )
        kept.keep(tmp_path / "ssdqual-runs" / f"2026030{index + 1}T120000Z-aaaa")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path / "ssdqual-runs"


def refused(out: Out, *argv: str) -> str:
    assert command.main(argv) == 4
    said = out.readouterr()
    assert said.out == ""
    assert said.err.startswith("ssdqual: ")
    assert said.err.count("\n") == 1
    return said.err.removeprefix("ssdqual: ").rstrip()


def test_runs_are_named_by_prefix_last_or_path(runs: Path, capsys: Out) -> None:
    assert command.main(["compare", "20260301", "last"]) == 0
    first = capsys.readouterr().out
    assert command.main(["compare", str(runs / "20260301T120000Z-aaaa"), "20260303T120000Z-aaaa"]) == 0
    assert capsys.readouterr().out == first
    assert "1 worse" in first
    assert "\x1b" not in first
    assert max(map(len, first.splitlines())) <= 100


def test_what_is_wrong_is_one_sentence(runs: Path, capsys: Out) -> None:
    nothing = "x is neither a run folder nor the beginning of the name of one in ssdqual-runs"
    assert refused(capsys, "compare", "x", "last") == nothing
    assert "two runs" in refused(capsys, "compare", "last")
    assert "3 runs in ssdqual-runs: 20260301T" in refused(capsys, "compare", "2026", "last")
    for number in ("-1", "nan"):
        assert "standard deviation" in refused(capsys, "compare", f"--run-to-run={number}", "20260301", "last")
    assert refused(capsys, "compare", "--run-dir=nowhere", "last", "last").endswith("nowhere")
    assert "nowhere: " in refused(capsys, "history", "nowhere")
    assert refused(capsys, "history", ".").startswith("2 figures match: steady_iops")
    assert "has such a figure" in refused(capsys, "history", ".", "--claim=throughput")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["compare"], "the following arguments are required: RUN"),
        (["compare", "a", "b", "--run-to-run=much"], "argument --run-to-run: invalid float value: 'much'"),
        (["history", ".", "--nonsense"], "unrecognized arguments: --nonsense"),
        (["histories", "."], "argument COMMAND: invalid choice: 'histories'"),
        (["compare", "a", "b", "--json", "--csv"], "argument --csv: not allowed with argument --json"),
        (["report", "a", "\x1b[2J"], "unrecognized arguments: "),
    ],
)
def test_a_wrong_argument_is_a_sentence_and_pytests_status(argv: list[str], said: str, capsys: Out) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(argv)
    printed = capsys.readouterr()
    assert ended.value.code == 4
    assert printed.err.startswith(f"ssdqual: {said}")
    assert printed.err.count("\n") == 1
    assert "--help" in printed.err
    assert "\x1b" not in printed.err


def test_a_trace_that_is_no_text_has_no_known_format(tmp_path: Path, capsys: Out) -> None:
    recorded = tmp_path / "blktrace.0"
    recorded.write_bytes(bytes(range(256)))
    assert "known format" in refused(capsys, "trace", str(recorded))


def test_a_run_is_not_compared_with_itself_or_its_copy(runs: Path, capsys: Out) -> None:
    name = "20260301T120000Z-aaaa"
    assert refused(capsys, "compare", "20260301", name).split(" is the same ")[0] == name
    shutil.copytree(runs / name, "copied")
    assert refused(capsys, "compare", "20260301", "copied").endswith(f"run as {name}")


def test_a_run_that_has_not_ended_is_told_as_that(runs: Path, capsys: Out) -> None:
    path = runs / "20260301T120000Z-aaaa" / "manifest.json"
    manifest = json.loads(path.read_text())
    for status in (0, 1):
        path.write_text(json.dumps({**manifest, "ended": "2026-03-01T13:00:00Z", "exit_status": status}))
        command.main(["compare", "20260301", "20260302"])
        first, now = capsys.readouterr().out.splitlines()[1:3]
        assert "has not ended" not in first
        assert now.endswith("not ended: No verdict")
    path.write_text(json.dumps({**manifest, "ended": "2026-03-01T13:00:00Z", "exit_status": 2}))
    command.main(["compare", "20260301", "20260302"])
    assert capsys.readouterr().out.splitlines()[1].endswith("not ended: No verdict")


def test_a_file_that_cannot_be_written_is_said_so(runs: Path, capsys: Out) -> None:
    assert command.main(["compare", "20260301", "last", "--svg=missing/c.svg"]) == 4
    assert capsys.readouterr().err.startswith("ssdqual: missing/c.svg: ")


def test_another_protocol_is_refused_unless_it_is_wanted(runs: Path, capsys: Out) -> None:
    Kept([KeptMeasurement(5)], protocol="other").keep(runs / "20260401T120000Z-bbbb")
    assert "protocol differs: quick" in refused(capsys, "compare", "20260301", "20260401")
    assert command.main(["compare", "20260301", "20260401", "--anyway"]) == 0
    assert "differs: protocol: quick" in capsys.readouterr().out


def test_a_gate_fails_on_a_figure_that_is_worse(runs: Path, capsys: Out) -> None:
    assert command.main(["compare", "20260301", "20260303", "--fail-on-worse"]) == 1
    assert "1 worse" in capsys.readouterr().out
    assert command.main(["compare", "20260301", "20260302", "--fail-on-worse"]) == 0
    assert command.main(["compare", "20260303", "20260301", "--fail-on-worse"]) == 0


def test_a_gate_keeps_its_status_if_nobody_reads_on(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(lines: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(command, "write_lines", gone)
    monkeypatch.setattr("os.dup2", lambda *numbers: None)
    worse = ("compare", "20260301", "20260303", "--fail-on-worse")
    assert command.main([*worse, f"--html={runs / 'x.html'}"]) == 1
    assert (runs / "x.html").exists()
    assert command.main(["compare", "20260301", "20260302", "--fail-on-worse"]) == 0


def test_an_error_of_the_program_is_not_called_worse(runs: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(lines: object) -> None:
        raise AttributeError("a mistake")

    monkeypatch.setattr(command, "write_lines", broken)
    assert command.main(["compare", "20260301", "20260302", "--fail-on-worse"]) == 3
    assert "a mistake" in capsys.readouterr().err


def test_a_gate_does_not_pass_if_nothing_is_compared(runs: Path, capsys: Out) -> None:
    Kept([KeptMeasurement(1.0, Claim.MEAN_LATENCY)]).keep(runs / "20260401T120000Z-bbbb")
    assert command.main(["compare", "20260301", "20260401", "--fail-on-worse"]) == 4
    assert "nothing to decide" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([KeptMeasurement(9e5, Claim.P99_LATENCY)], []),
        ([KeptMeasurement(1e8, Claim.SLOWEST_SECOND)], [KeptMeasurement(0, Claim.SLOWEST_SECOND)]),
        (
            [KeptMeasurement(9e4, geometry="drivex3", drives={"S1": 9e4, "S2": 9e4, "S3": 9e4})],
            [KeptMeasurement(9e4, geometry="drivex2", drives={"S1": 9e4, "S2": 9e4})],
        ),
    ],
    ids=["no measurement", "no ratio", "no drive"],
)
def test_a_gate_does_not_pass_a_run_that_lacks_a_figure(
    runs: Path, capsys: Out, before: list[KeptMeasurement], after: list[KeptMeasurement]
) -> None:
    alike = KeptMeasurement(12_000)
    Kept([alike, *before]).keep(runs / "old")
    Kept([alike, *after]).keep(runs / "new")
    assert command.main(["compare", "old", "new"]) == 0
    assert command.main(["compare", "old", "new", "--fail-on-worse"]) == 4
    said = capsys.readouterr().err
    assert said.startswith("ssdqual: 1 of 2 ")
    assert "--fail-on-worse" in said


def test_a_gate_passes_figures_that_were_and_are_zero(runs: Path) -> None:
    for name in ("old", "new"):
        Kept([KeptMeasurement(12_000), KeptMeasurement(0, Claim.SLOWEST_SECOND)]).keep(runs / name)
    assert command.main(["compare", "old", "new", "--fail-on-worse"]) == 0


@pytest.mark.parametrize("damaged", ["old", "new"])
def test_a_gate_does_not_pass_what_an_unreadable_record_may_say(runs: Path, capsys: Out, damaged: str) -> None:
    for name in ("old", "new"):
        Kept([KeptMeasurement(12_000)]).keep(runs / name)
    assert command.main(["compare", "old", "new", "--fail-on-worse"]) == 0
    records = runs / damaged / "records.jsonl"
    last = records.read_text().splitlines()[-1]
    records.write_text(records.read_text() + last.replace('"steady_iops"', "99") + "\n")
    assert command.main(["compare", "old", "new", "--fail-on-worse"]) == 4
    assert f"{damaged} has unreadable records" in capsys.readouterr().err


def test_a_gate_does_not_pass_readings_alone(runs: Path, capsys: Out) -> None:
    for name, value in (("old", 4), ("new", 3)):
        Kept([KeptMeasurement(value, Claim.CONFORMING_DRIVES, is_reading=True)]).keep(runs / name)
    assert command.main(["compare", "old", "new", "--fail-on-worse"]) == 4
    assert "without an interval" in capsys.readouterr().err


def test_a_lot_that_is_rejected_now_closes_the_gate(runs: Path) -> None:
    for name, value, outcome in (("old", 4, Finding.PASS), ("new", 3, Finding.FAIL)):
        counted = KeptMeasurement(value, Claim.CONFORMING_DRIVES, is_reading=True, lot="steady_iops", outcome=outcome)
        Kept([KeptMeasurement(12_000), counted]).keep(runs / name)
    assert command.main(["compare", "old", "new", "--fail-on-worse"]) == 1
    assert command.main(["compare", "new", "old", "--fail-on-worse"]) == 0


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        (Finding.PASS, Finding.PASS, 0),
        (Finding.FAIL, Finding.PASS, 0),
        (Finding.FAIL, Finding.FAIL, 0),
        (Finding.PASS, Finding.FAIL, 1),
        (Finding.PASS, Finding.INCONCLUSIVE, 4),
        (Finding.INCONCLUSIVE, Finding.INCONCLUSIVE, 4),
    ],
)
def test_the_verdicts_on_lots_decide_alone(runs: Path, before: Finding, after: Finding, status: int) -> None:
    for name, outcome in (("old", before), ("new", after)):
        counted = KeptMeasurement(4, Claim.CONFORMING_DRIVES, is_reading=True, lot="steady_iops", outcome=outcome)
        Kept([counted]).keep(runs / name)
    assert command.main(["compare", "old", "new", "--fail-on-worse"]) == status


def test_a_lot_without_a_verdict_does_not_pass_beside_figures(runs: Path) -> None:
    for name, outcome in (("old", Finding.PASS), ("new", Finding.INCONCLUSIVE)):
        counted = KeptMeasurement(4, Claim.CONFORMING_DRIVES, is_reading=True, lot="steady_iops", outcome=outcome)
        Kept([KeptMeasurement(12_000), counted]).keep(runs / name)
    assert command.main(["compare", "old", "new", "--fail-on-worse"]) == 4


@pytest.mark.parametrize(("before", "after", "status"), [(0, 0, 0), (2, 0, 0), (0, 2, 1)])
def test_the_verdicts_of_an_inspection_decide_alone(
    runs: Path, capsys: Out, before: int, after: int, status: int
) -> None:
    """Drives that deviate are counted, and none is the usual number: it has no ratio."""
    for name, deviating in (("old", before), ("new", after)):
        Kept([Inspected(deviating)]).keep(runs / name)
    assert command.main(["compare", "old", "new", "--fail-on-worse"]) == status
    assert ("failed in new" in capsys.readouterr().out) is (status == 1)


@pytest.mark.parametrize("damaged", ["old", "new"])
def test_a_gate_does_not_pass_a_run_that_is_not_as_it_was_sealed(runs: Path, capsys: Out, damaged: str) -> None:
    for name in ("old", "new"):
        folder = Kept([KeptMeasurement(12_000), KeptMeasurement(9e5, Claim.P99_LATENCY)]).keep(runs / name)
        (folder / checksums.SUMS).write_bytes(checksums.text(folder))
    assert command.main(["compare", "old", "new", "--fail-on-worse"]) == 0
    records = runs / damaged / "records.jsonl"
    records.write_bytes(records.read_bytes().replace(b'"p99_latency"', b'"p99_latency\0'))
    assert command.main(["compare", "old", "new", "--fail-on-worse"]) == 4
    assert f"{damaged} is not as " in capsys.readouterr().err


def test_the_version(capsys: Out) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("pytest-ssdqual ")


def test_json_and_csv_are_all_that_is_printed(runs: Path, capsys: Out) -> None:
    assert command.main(["compare", "20260301", "20260302", "20260303", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["run"]["name"] for each in found["others"]] == ["20260302T120000Z-aaaa", "20260303T120000Z-aaaa"]
    assert command.main(["compare", "20260301", "last", "--csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert command.main(["history", ".", "--claim=steady*", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["points"]) == 3
    assert command.main(["history", ".", "--claim=steady*", "--csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_drawings_and_pages_are_written(runs: Path, capsys: Out) -> None:
    assert command.main(["compare", "20260301", "last", "--html=c.html", "--svg=c.svg"]) == 0
    assert command.main(["history", ".", "--claim=steady*", "--html=h.html", "--svg=h.svg"]) == 0
    for name in ("c", "h"):
        assert Path(f"{name}.svg").read_text().startswith("<svg ")
        assert "<svg " in Path(f"{name}.html").read_text()


def test_report_writes_the_page_of_a_run(runs: Path, capsys: Out) -> None:
    assert command.main(["report", "20260301"]) == 0
    written = Path(capsys.readouterr().out.strip())
    assert written.parent == Path("ssdqual-runs") / "20260301T120000Z-aaaa"
    assert "<html" in written.read_text()


def test_colour_is_for_terminals(runs: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    command.main(["compare", "20260301", "last"])
    assert "\x1b[31m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "")
    command.main(["compare", "20260301", "last"])
    assert "\x1b" not in capsys.readouterr().out


def test_it_is_a_program_that_loads_nothing_heavy_for_its_help(runs: Path) -> None:
    code = (
        "import sys\nfrom pytest_ssdqual.command import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'numpy', 'scipy', 'pydantic', 'matplotlib', 'jinja2', 'duckdb', 'pytest'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "compare" in done.stdout
    argv = [sys.executable, "-m", "pytest_ssdqual", "compare", "20260301", "last"]
    plain = subprocess.run(argv, capture_output=True, check=False, env={"PYTHONIOENCODING": "ascii"})
    assert plain.returncode == 0
    assert b"raid5x4" in plain.stdout


def test_a_spec_is_explained(capsys: Out) -> None:
    assert command.main(["spec", "--check", "intel-dc-s3500-480gb"]) == 0
    said = capsys.readouterr().out
    assert "67,500 IOPS" in said
    assert "no figure: throughput" in said


def test_an_error_in_a_spec_is_one_sentence(tmp_path: Path, capsys: Out) -> None:
    (tmp_path / "wrong.toml").write_text('[product]\nname = "A"\nmodels = []\ncolour = "red"\n')
    assert refused(capsys, "spec", "--check", str(tmp_path / "wrong.toml")).startswith("wrong.toml: product.colour: ")
    assert "is not shipped" in refused(capsys, "spec", "--check", "nothing")


def test_a_spec_is_written_from_a_run_and_explained(runs: Path, capsys: Out) -> None:
    assert command.main(["spec", "--from", "last", "-o", "new.toml"]) == 0
    proposed = capsys.readouterr().out
    assert all(each in proposed for each in ("raid5x4 randread_4k_qd8: ", "11,000 IOPS", "run 20260303T"))
    assert "File exists" in refused(capsys, "spec", "--from", "last", "-o", "new.toml")
    assert "--from and -o" in refused(capsys, "spec", "--from", "last")
    assert "--from and -o" in refused(capsys, "spec", "--check", "default", "-o", "other.toml")
    assert "a run folder" in refused(capsys, "spec", "--from", "x", "-o", "other.toml")
    assert not (runs.parent / "other.toml").exists()


def test_run_becomes_the_pytest_of_the_suites(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda path, argv: ran.append([path, *argv]))
    command.main(
        ["run", "inspection", "raid5", "--devices", "/dev/sd[b-i]", "--expect=8", "-k", "x3 or x5", "--spec=a.toml"]
    )
    names = ["pytest_ssdqual.suites.inspection", "pytest_ssdqual.suites.raid5"]
    options = ["--ssd-devices=/dev/sd[b-i]", "--ssd-expect=8", "-k", "x3 or x5", "--ssd-spec=a.toml"]
    assert ran == [[sys.executable, sys.executable, "-m", "pytest", "--pyargs", *names, *options]]
    assert shlex.split(capsys.readouterr().out) == ["pytest", "--pyargs", *names, *options]
    command.main(["run", "--devices=lab:3", "--devices=root@dut9:/dev/sdb", "raid5"])
    both = ["--ssd-devices=lab:3", "--ssd-devices=root@dut9:/dev/sdb"]
    assert ran[1][4:] == ["--pyargs", "pytest_ssdqual.suites.raid5", *both]


def test_run_without_a_suite_is_an_acceptance_test(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda path, argv: ran.append([path, *argv]))
    command.main(["run", "--devices=/dev/nvme*", "--expect", "8"])
    names = ["pytest_ssdqual.suites.inspection", "pytest_ssdqual.suites.acceptance"]
    assert ran[0][4:] == ["--pyargs", *names, "--ssd-devices=/dev/nvme*", "--ssd-expect=8"]


def test_doctor_becomes_the_pytest_that_examines_the_drives(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda path, argv: ran.append(argv))
    command.main(["doctor", "--devices", "/dev/sd[b-i]", "--ssd-smart-type", "sat", "--expect=8", "--wipe=S1"])
    options = ["--ssd-devices=/dev/sd[b-i]", "--ssd-expect=8", "--ssd-wipe=S1", "--ssd-smart-type", "sat"]
    assert ran[0][3:] == ["--ssd-doctor", *options]
    assert shlex.split(capsys.readouterr().out) == ["pytest", "--ssd-doctor", *options]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("ssdqual do", {"doctor"}), ("ssdqual run burn", {"burn_in"}), ("ssdqual doctor --ex", {"--expect"})],
)
def test_a_shell_completes_words(tmp_path: Path, typed: str, expected: set[str]) -> None:
    found = tmp_path / "words"
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": typed, "COMP_POINT": str(len(typed)), "_ARGCOMPLETE_IFS": "\n"}
    environment = {**os.environ, **asked, "_ARGCOMPLETE_STDOUT_FILENAME": str(found)}
    subprocess.run([sys.executable, "-m", "pytest_ssdqual"], env=environment, check=False, timeout=60)
    assert {word.strip() for word in found.read_text().split("\n")} == expected


def test_run_refuses_what_is_no_suite(capsys: Out) -> None:
    assert "suite raid7; " in refused(capsys, "run", "raid5", "raid7", "-x")
    assert refused(capsys, "run", "raid5", "--devices").startswith("--devices ")


def test_short_options_of_run_are_options_of_the_plugin(pytestconfig: pytest.Config) -> None:
    assert all(hasattr(pytestconfig.option, f"ssd_{name}") for name in command.SHORT)


def test_exit_status_of_run_is_that_of_pytest(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "pytest_ssdqual", "run", "raid5", "-p", "no:cacheprovider"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout  # the gate's: without drives
    assert done.stdout.split()[:3] == ["pytest", "--pyargs", "pytest_ssdqual.suites.raid5"]
