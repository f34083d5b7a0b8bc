"""``ssdqual``: runs shipped suites, and commands on run folders.

Every invalid request ends with one sentence on standard error and exit status 4, as pytest has it for usage errors.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shlex
import shutil
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from pytest_ssdqual import suites
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.names import nearest
from pytest_ssdqual.report.run_folder.find import LAST, NoSuchRun, find, find_any
from pytest_ssdqual.report.run_folder.journal import MANIFEST, RECORDS, JournalError

if TYPE_CHECKING:
    from pytest_ssdqual.report.compare.compare import Comparison
    from pytest_ssdqual.report.compare.compared_run import ComparedRun
    from pytest_ssdqual.report.view.tables import TextLine

RUNS = "ssdqual-runs"
#: Exit status of a usage error: pytest's ``ExitCode.USAGE_ERROR``, without importing pytest.
USAGE = 4
#: Options of pytest that ``run`` and ``doctor`` also take without their prefix ``ssd-``; first those of most runs.
SHORT = {
    "devices": "WHERE", "expect": "N", "spec": "SPEC", "wipe": "SERIAL", "resume": "RUN", "protocol": "PROTOCOL",
    "shared": "SERIAL", "configured": "SERIAL", "unreadable": "SERIAL", "unchecked": "SOURCE",
}  # fmt: skip
#: Suites of ``run`` if none is named: what a buyer of drives wants to know in one working day.
ACCEPTANCE = ("inspection", "acceptance")
#: Exit status of ``compare --fail-on-worse`` if a figure is worse.
WORSE = 1
#: An error of this program.
INTERNAL = 3
#: Width of output to a pipe.
PLAIN_WIDTH = 120
#: ANSI codes of the markup in ``report.view.tables``.
COLOURS = {"bold": "1", "red": "31", "green": "32", "yellow": "33"}


class Refused(ValueError):
    """The request cannot be fulfilled; the message says why."""


@contextlib.contextmanager
def refusing(*kinds: type[Exception]) -> Iterator[None]:
    """Raise an error of these kinds as ``Refused``."""
    try:
        yield
    except kinds as error:
        raise Refused(str(error)) from error


class Parser(argparse.ArgumentParser):
    """Argument parser that reports an error in one sentence, without argparse's usage lines."""

    def error(self, message: str) -> NoReturn:
        """``SystemExit`` with ``USAGE``."""
        self.exit(USAGE, f"ssdqual: {safe_text.lines(message)}; {self.prog} --help lists the options\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit status: 0, 1 for a failed condition or certificate, or 4 after a sentence on standard error."""
    parser = _parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks how a word may go on
        with contextlib.suppress(ImportError):
            import argcomplete

            argcomplete.autocomplete(parser)
    given, others = parser.parse_known_args(with_suites(sys.argv[1:] if argv is None else argv))
    if others and given.act is not doctor:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    given.others = others
    if isinstance(sys.stdout, io.TextIOWrapper):  # a locale without … must not cause an error
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status: int = given.act(given) or 0
    except BrokenPipeError:  # ``| head``
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(getattr(given, "status", 0))
    except (OSError, Refused, NoSuchRun) as error:
        cause = error.strerror if isinstance(error, OSError) else ""
        where = f"{error.filename}: " if cause and isinstance(error, OSError) and error.filename else ""
        print(f"ssdqual: {safe_text.lines(where + (cause or str(error)))}", file=sys.stderr)
        return USAGE
    except Exception:  # Python's own status, 1, is that of a figure that got worse
        traceback.print_exc()
        return INTERNAL
    return status


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="ssdqual",
        description="Run the suites of pytest-ssdqual, and read its run folders.",
        epilog="A run needs --devices=WHERE, and mostly --expect=N, --spec=SPEC, --wipe=SERIAL or --resume=RUN. "
        "ssdqual doctor --devices=WHERE reports what is missing for one. pytest --help has all options.",
    )
    parser.add_argument("--version", action="version", version=f"pytest-ssdqual {metadata.version('pytest-ssdqual')}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, text, declare, act in (
        ("run", "run shipped suites with pytest", _run, run),
        ("doctor", "report what machine and drives lack for a run, and write nothing", _doctor, doctor),
        ("report", "write the page of a run or of a fleet again", _report, report),
        ("compare", "compare runs with the first of them", _compare, compare),
        ("history", "one figure over all runs of a folder", _history, history),
        ("export", "write the figures of runs as CSV, Excel or Parquet", _export, export),
        ("dashboard", "write a page over all runs of a folder", _dashboard, dashboard),
        ("certificate", "write the certificate of a run for print", _certificate, certificate),
        ("merge", "merge separate runs into one fleet, as its bays", _merge, merge),
        ("trace", "check and summarise a trace of I/O, and write its normal form", _trace, trace),
        ("spec", "explain a spec, or write one from the run of a reference drive", _spec, spec),
    ):
        # What these two do not know goes to pytest.
        command = commands.add_parser(name, help=text, allow_abbrev=act not in (run, doctor))
        declare(command)
        command.set_defaults(act=act)
    return parser


def _run(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        f"Run suites with pytest, e.g. ssdqual run inspection raid5 --devices='/dev/sd[b-i]'. Other arguments go to "
        f"pytest, after the suites: ssdqual run raid5 --devices=lab:4 -x. Without a suite it runs "
        f"{' and '.join(ACCEPTANCE)}. Suites: {', '.join(suites.names())}."
    )
    _short(parser)
    suite = parser.add_argument(
        "suite", metavar="SUITE", help=f"name of a suite; may repeat; {' '.join(ACCEPTANCE)} if left out"
    )
    parser.add_argument(
        "rest", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="more suites, then arguments of pytest"
    )
    suite.completer = lambda **_: suites.names()  # type: ignore[attr-defined]  # argcomplete's


def _doctor(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Tell what a run would lack: tools, fio's engines, levels of md, what the guard cannot see, the sheet of each "
        "drive, whether it would be refused and which consent it needs. It only reads. Exit status 0 if a run could "
        "begin, else 1. Other arguments go to pytest, e.g. --ssd-bays=FILE."
    )
    _short(parser)


def _short(parser: argparse.ArgumentParser) -> None:
    for name, value in SHORT.items():
        parser.add_argument(f"--{name}", metavar=value, action="append", help=f"the same as --ssd-{name}")


def _report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run", metavar="RUN", help=f"a run folder or that of a fleet, the beginning of its name, or {LAST}"
    )
    _where(parser)


def _compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", help="the others are compared with the first")
    parser.add_argument("--anyway", action="store_true", help="compare although the protocols differ")
    parser.add_argument("--all", action="store_true", help="also list figures without a shown difference")
    parser.add_argument(
        "--fail-on-worse",
        action="store_true",
        help="exit status 1 if a figure is worse by an interval that holds for all comparisons; for a gate in CI",
    )
    parser.add_argument(
        "--run-to-run",
        metavar="PERCENT",
        type=float,
        default=0.0,
        help="standard deviation between runs of the same drive, which widens the intervals",
    )
    _where(parser)
    _forms(parser)


def _history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path, help="folder of the run folders, at any depth")
    for name in ("claim", "workload", "geometry", "model", "firmware", "bay"):
        parser.add_argument(f"--{name}", metavar="GLOB", help=f"only figures of this {name}")
    _forms(parser)


def _certificate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help=f"a run folder, the beginning of its name, or {LAST}")
    parser.add_argument(
        "-o", metavar="FILE", dest="output", type=Path, required=True, help="the PDF, or FILE.html, to write"
    )
    for name in ("order", "lot", "operator"):
        parser.add_argument(f"--{name}", metavar="TEXT", default="", help="without it a line to fill in by hand")
    _where(parser)


def _merge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", help="a run, or a fleet, of which every bay is merged")
    parser.add_argument("--into", metavar="DIR", type=Path, required=True, help="the new folder, which must not exist")
    parser.add_argument(
        "--names", metavar="NAME,NAME…", default="", help="names of the bays, in order; default: those of the machines"
    )
    parser.add_argument("--junitxml", metavar="FILE", type=Path, help="write the verdicts of all bays as JUnit")
    _where(parser)


def _export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", help="a run, or a fleet, of which every bay is exported")
    parser.add_argument("--csv", metavar="FILE", type=Path, help="write a text file")
    parser.add_argument("--xlsx", metavar="FILE", type=Path, help="write a workbook; needs the extra xlsx")
    parser.add_argument("--parquet", metavar="FILE", type=Path, help="write Parquet; needs the extra history")
    _where(parser)


def _dashboard(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path, help="folder of the run folders, at any depth")
    parser.add_argument(
        "-o", metavar="FILE", dest="output", type=Path, help="the page; default: dashboard.html in the folder"
    )


def _spec(parser: argparse.ArgumentParser) -> None:
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--check", metavar="FILE", help="explain a spec: a TOML file or a shipped data sheet")
    task.add_argument("--from", metavar="RUN", dest="run", help="take the figures of this run folder")
    parser.add_argument("-o", metavar="FILE", dest="output", type=Path, help="the new spec, which must not exist")
    _where(parser)


def _trace(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Check and summarise a trace: fio's iolog (version 2 or 3), text of blkparse, or CSV with the columns time "
        "(seconds), offset, size (bytes) and op (read or write). pytest --ssd-trace=FILE suites/trace replays it."
    )
    parser.add_argument("file", metavar="FILE", type=Path)
    parser.add_argument("-o", metavar="FILE", dest="output", type=Path, help="write it as iolog 3, without any names")


def _where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--run-dir", metavar="DIR", type=Path, default=Path(RUNS), help=f"folder of the runs; default: {RUNS}"
    )


def _forms(parser: argparse.ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON instead of a table")
    form.add_argument("--csv", action="store_true", help="print CSV instead of a table")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write a self-contained page")
    parser.add_argument("--svg", metavar="FILE", type=Path, help="write the chart")


def with_suites(words: Sequence[str]) -> list[str]:
    """Return the words of a command; ``run`` without a suite runs those of an acceptance test."""
    if list(words[:1]) != ["run"] or {"-h", "--help"} & set(words):
        return list(words)
    rest = iter(words[1:])
    for word in rest:
        if not word.startswith("-"):
            return list(words)
        name, joined, _ = word.removeprefix("--").partition("=")
        if name not in SHORT:
            break
        if not joined:
            next(rest, "")
    return ["run", *ACCEPTANCE, *words[1:]]


def run(given: argparse.Namespace) -> NoReturn:
    """``ssdqual run SUITE… [ARGUMENT…]``: become the pytest process, so that its exit status is that of the command."""
    _become_pytest(pytest_arguments([given.suite, *given.rest, *_typed(given)]))


def doctor(given: argparse.Namespace) -> NoReturn:
    """``ssdqual doctor --devices=WHERE``: become the pytest process that examines the drives."""
    _become_pytest(["--ssd-doctor", *pytest_arguments(_typed(given)), *given.others])


def _typed(given: argparse.Namespace) -> list[str]:
    return [f"--{name}={value}" for name in SHORT for value in getattr(given, name) or ()]


def _become_pytest(arguments: Sequence[str]) -> NoReturn:
    print(shlex.join(["pytest", *arguments]), flush=True)
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *arguments])  # noqa: S606 (no shell)


def pytest_arguments(words: Sequence[str]) -> list[str]:
    """Return pytest's arguments for suites and options; ``Refused`` for a suite that does not exist."""
    options = next((index for index, word in enumerate(words) if word.startswith("-")), len(words))
    known = suites.names()
    if unknown := [name for name in words[:options] if name not in known]:
        near = nearest(unknown[0], known)
        guess = f"; did you mean {near}?" if near else ""
        raise Refused(f"there is no suite {', '.join(unknown)}; the suites are {', '.join(known)}{guess}")
    found, rest = [f"pytest_ssdqual.suites.{name}" for name in words[:options]], iter(words[options:])
    for word in rest:
        name, joined, value = word.partition("=")
        if name.removeprefix("--") not in SHORT or not name.startswith("--"):
            found.append(word)
        elif joined or (value := next(rest, "")):
            found.append(f"--ssd-{name.removeprefix('--')}={value}")
        else:
            raise Refused(f"{name} needs a value")
    return ["--pyargs", *found] if options else found


def report(given: argparse.Namespace) -> None:
    """``ssdqual report RUN``."""
    from pytest_ssdqual.report.fleet import folder as fleet
    from pytest_ssdqual.report.fleet import page_content
    from pytest_ssdqual.report.html import run_page

    folder = find_any(given.run, given.run_dir)
    print(page_content.write(folder) if fleet.is_fleet(folder) else run_page.write(folder))


def certificate(given: argparse.Namespace) -> int:
    """``ssdqual certificate RUN -o FILE``; return 1 if the page certifies nothing, or that the product is not fit."""
    from pytest_ssdqual.report.html import certificate as certificates

    fields = {"Order": given.order, "Lot": given.lot, "Operator": given.operator}
    content = certificates.certificate(find(given.run, given.run_dir), fields)
    with refusing(certificates.NoLibrary):
        certificates.write(content, given.output)
    for reason in content.reasons:
        print(safe_text.line(f"not certified: {reason}", 10 * PLAIN_WIDTH))
    print(given.output)
    return 0 if content.is_of_fit_product else 1


def compare(given: argparse.Namespace) -> int:
    """``ssdqual compare RUN RUN…``; return the exit status, which is in ``given.status`` before anything is printed."""
    from pytest_ssdqual.report.compare import compare as comparison
    from pytest_ssdqual.report.compare import compare_output
    from pytest_ssdqual.report.compare.compared_run import ComparedRun

    if len(given.runs) < 2:
        raise Refused("compare needs at least two runs; the others are compared with the first")
    if not 0 <= given.run_to_run <= 100:
        raise Refused(f"--run-to-run={given.run_to_run:g} is not a standard deviation in per cent: give e.g. 1.5")
    folders = [find(name, given.run_dir) for name in given.runs]
    runs = [ComparedRun.read(folder) for folder in folders]
    _require_different(runs)
    try:
        found = comparison.compare(runs, anyway=given.anyway, run_to_run_percent=given.run_to_run)
    except comparison.NotComparable as error:
        raise Refused(f"{error}; --anyway compares them nevertheless") from error
    _keep(given, lambda: compare_output.svg(found), lambda: compare_output.page(found))
    refused = None
    try:
        given.status = _gate(found) if given.fail_on_worse else 0
    except Refused as error:
        given.status, refused = USAGE, error
    if given.json:
        _print_json(compare_output.record(found))
    elif given.csv:
        sys.stdout.write(compare_output.csv(found))
    else:
        write_lines(compare_output.table(found, _width(), every=given.all))
    if refused:
        raise refused
    return int(given.status)


def _gate(found: Comparison) -> int:
    """Return the exit status of ``--fail-on-worse``; ``Refused`` if no figure is worse, but not all are compared."""
    from pytest_ssdqual.qual.verdict.ratio import ChangeKind
    from pytest_ssdqual.report.run_folder import checksums

    if any(other.count(ChangeKind.WORSE) or other.rejected for other in found.others):
        return WORSE
    for run in (found.first, *(other.run for other in found.others)):
        if run.unreadable:
            raise Refused(f"{run.name} has unreadable records, so --fail-on-worse does not pass what is missing")
        if damage := checksums.changed_among(run.folder, (RECORDS, MANIFEST)):
            raise Refused(
                f"{run.name} is not as it was sealed: {damage}; --fail-on-worse does not pass what is missing"
            )
    for other in found.others:
        if not other.pairs and not other.decided:
            raise Refused("no figure is in both runs, so --fail-on-worse has nothing to decide")
        if all(pair.change.ratio.is_reading for pair in other.pairs) and not other.decided:
            several = f"all {len(other.pairs):,} figures of both runs are readings"
            of = several if len(other.pairs) > 1 else "the only figure of both runs is a reading"
            raise Refused(f"{of} without an interval, so --fail-on-worse has nothing to decide")
        if other.undecided:
            of = f"{other.undecided:,} of {len(found.first.figures):,} figures of {found.first.name}"
            raise Refused(f"{of} cannot be compared with {other.run.name}, so --fail-on-worse does not pass it")
    return 0


def _require_different(runs: Sequence[ComparedRun]) -> None:
    """Raise ``Refused`` if a run occurs twice or with its copy: no difference would look like evidence."""
    seen: dict[str, ComparedRun] = {}
    for run in runs:
        if (twin := seen.setdefault(run.identity, run)) is not run:
            raise Refused(f"{run.name} is the same run as {twin.name}")


def history(given: argparse.Namespace) -> None:
    """``ssdqual history DIR``."""
    from pytest_ssdqual.report.compare import history as histories
    from pytest_ssdqual.report.compare import history_output as text

    with refusing(histories.NoFigure):
        found = histories.read(given.folder, vars(given))
    if given.json:
        _print_json(text.record(found))
    elif given.csv:
        sys.stdout.write(text.csv(found))
    else:
        write_lines(text.table(found, _width()))
    _keep(given, lambda: text.svg(found), lambda: text.page(found))


def export(given: argparse.Namespace) -> None:
    """``ssdqual export RUN… --csv FILE``."""
    from pytest_ssdqual.report.archive import figure_table, runs, table_files
    from pytest_ssdqual.report.fleet import folder as fleet

    forms = (
        (given.csv, table_files.write_csv), (given.xlsx, table_files.write_xlsx),
        (given.parquet, table_files.write_parquet),
    )  # fmt: skip
    if not any(path for path, _ in forms):
        raise Refused("export needs --csv FILE, --xlsx FILE or --parquet FILE")
    found = [find_any(name, given.run_dir) for name in given.runs]
    read, skipped = runs.read(bay for each in found for bay in (fleet.bay_folders(each) or [each]))
    unreadable = ((run.name, run.verdict.counts.unreadable) for run in read)
    skipped += [f"{name}: {number:,} records are unreadable" for name, number in unreadable if number]
    for sentence in skipped:
        print(safe_text.line(sentence), file=sys.stderr)
    rows = list(figure_table.rows(read))
    if not rows:
        raise Refused("the given runs have no readable figure, so no file was written")
    for path, write in forms:
        if path:
            with refusing(table_files.NotWritable):
                write(path, rows)
            print(f"{path}: {len(rows):,} figures of {len(read):,} run{'' if len(read) == 1 else 's'}")


def dashboard(given: argparse.Namespace) -> None:
    """``ssdqual dashboard DIR``."""
    from pytest_ssdqual.report.html import dashboard_page

    if not given.folder.is_dir():
        raise Refused(f"{given.folder} is not a folder of runs")
    print(dashboard_page.write(given.folder, given.output or given.folder / "dashboard.html"))


def merge(given: argparse.Namespace) -> None:
    """``ssdqual merge RUN… --into DIR``."""
    from pytest_ssdqual.report.ci import junit
    from pytest_ssdqual.report.fleet import merge as merging
    from pytest_ssdqual.report.fleet import page_content
    from pytest_ssdqual.report.fleet.view import FleetView

    folders = [find_any(name, given.run_dir) for name in given.runs]
    names = [name.strip() for name in given.names.split(",")] if given.names else []
    with refusing(merging.NotMergeable, JournalError):
        merging.require_new(given.into)
        sources = merging.gather(folders)
        fleet = merging.merge(sources, given.into, names)
    page, seen = page_content.write(fleet.path), FleetView.read(fleet.path)
    if given.junitxml:
        given.junitxml.write_bytes(junit.text(fleet.path))
    differing = [*page_content.differing(seen), *merging.left_out(sources)]
    for line in [*differing, *page_content.summary_lines(seen, _width()), str(page)]:
        print(safe_text.line(line, 10 * PLAIN_WIDTH))


def spec(given: argparse.Namespace) -> None:
    """``ssdqual spec --check FILE`` and ``ssdqual spec --from RUN -o FILE``."""
    from pytest_ssdqual.qual.spec import spec as specs
    from pytest_ssdqual.qual.spec.toml import DocumentError
    from pytest_ssdqual.report.data_sheet import explain

    if bool(given.run) is not bool(given.output):
        raise Refused("--from and -o go together: write spec --from RUN -o FILE")
    with refusing(DocumentError):
        if given.run:
            _write_spec(given)
        write_lines(explain.lines(specs.load(given.output or given.check)))


def _write_spec(given: argparse.Namespace) -> None:
    from pytest_ssdqual.report.compare.compared_run import ComparedRun
    from pytest_ssdqual.report.data_sheet import from_run

    run = ComparedRun.read(find(given.run, given.run_dir))
    with refusing(from_run.NoSheet):
        from_run.write(run, given.output)
    for sentence in from_run.unread(run):
        print(safe_text.line(sentence), file=sys.stderr)


def trace(given: argparse.Namespace) -> None:
    """``ssdqual trace FILE``."""
    from pytest_ssdqual.qual.workload.trace import Trace

    try:
        with given.file.open(encoding="utf-8-sig", errors="replace") as file:
            trace = Trace.read(given.file.name, file)
    except ValueError as error:
        raise Refused(f"{given.file}: {error}") from error
    if given.output:
        with given.output.open("x", encoding="utf-8") as file:
            file.writelines(trace.lines())
    for sentence in trace.sentences():
        print(safe_text.line(sentence))


def _keep(given: argparse.Namespace, svg: Callable[[], str], page: Callable[[], str]) -> None:
    """Write the requested files; drawing takes a second, so only then."""
    if given.svg:
        given.svg.write_text(svg(), encoding="utf-8")
    if given.html:
        given.html.write_text(page(), encoding="utf-8")


def write_lines(lines: Iterable[TextLine]) -> None:
    """Print lines, in colour on a terminal."""
    coloured = bool(sys.stdout) and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for line in lines:
        text = safe_text.line(line.text, 10 * PLAIN_WIDTH)
        codes = ";".join(COLOURS[each] for each in line.markup if each in COLOURS) if coloured else ""
        print(f"\x1b[{codes}m{text}\x1b[0m" if codes else text)


def _width() -> int:
    return shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns


def _print_json(record: object) -> None:
    print(safe_text.json_text(json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)))
