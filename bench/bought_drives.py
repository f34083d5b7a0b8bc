"""What ``ssdqual run`` ends with on simulated drives that are bought today: verdict, cause, hours, exit status.

    python bench/bought_drives.py                                     # all models and situations: an hour
    python bench/bought_drives.py --models samsung-pm9a3-7t68 --situations 95
    python bench/bought_drives.py --suites drive --situations 50

Prints the table of ``docs/specs.md``. The command is the buyer's, without a suite and without a spec. Drives do what
the shipped sheet of their model publishes, times a share: all of them, or one. Guard, plan, members, verdicts and the
page are the product's; fio and the machine are simulated (``tests/support/simulator``), and an array does what a
queueing network of its drives does. So the table shows verdicts and causes, not how exact a prediction is:
``bench/attribution.py`` does. Ends with status 1 if a run is Fit that should not be, or the other way round, or if it
accuses a drive that does what its sheet says.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from pytest_ssdqual.qual.spec import spec
from pytest_ssdqual.qual.validity.attribution import Culprit
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.run_summary.causes import NO_CAUSE, CauseGroup
from pytest_ssdqual.report.run_summary.run_view import RunView

ROOT = Path(__file__).parents[1]
#: SATA, PCIe Gen4 of two makers, Gen5 of two makers, QLC.
MODELS = (
    "kingston-dc600m-960gb",
    "samsung-pm9a3-7t68",
    "solidigm-d7-p5520-7t68",
    "kioxia-cd8p-r-7t68",
    "micron-9550-pro-15t36",
    "solidigm-d5-p5336-61t44",
)
#: RAID 5 writes a second of md on servers: published ones are 463,000 to 523,000.
MD_IOPS = 463_000
#: Position of the one drive that is slower than the others.
SLOW_ONE = 1
#: Line of the plan about the whole run, or about all that there is: the hours that it expects are the fifth cell.
TOTAL = re.compile(r"^  (?:total|drivex\d+)  .*$", re.MULTILINE)
HOURS_CELL = 4


@dataclass(frozen=True, slots=True)
class Situation:
    """How a lot of drives differs from its sheet."""

    name: str
    #: Words that the run may end with.
    may_be: tuple[str, ...]
    #: What failed promises may be blamed on.
    may_blame: tuple[str, ...] = ()
    #: Share of the sheet that all drives do, and the one that is slower.
    share: float = 1.0
    one: float = 1.0
    md_iops: float | None = None


ALL_DRIVES = "all drives", "the model"
SITUATIONS = (
    Situation("100 % of the sheet", ("fit",)),
    Situation("95 %", ("fit",), share=0.95),
    Situation("85 %", ("not fit",), ALL_DRIVES, share=0.85),
    Situation("50 %", ("not fit",), ALL_DRIVES, share=0.5),
    Situation("4 %", ("not fit",), ALL_DRIVES, share=0.04),
    Situation("one drive at 80 %", ("not fit",), ("that drive",), one=0.8),
    Situation(f"md at {MD_IOPS:,} IOPS", ("fit",), md_iops=MD_IOPS),
)


@dataclass(frozen=True, slots=True)
class Ending:
    """What a run ended with."""

    model: str
    situation: str
    word: str
    #: Number of promises by outcome.
    outcomes: Mapping[str, int]
    #: Number of failed promises by what they are blamed on.
    blamed: Mapping[str, int]
    #: Expected duration by the plan, as it is printed.
    hours: str
    status: int

    def wrong(self) -> Iterator[str]:
        """Yield what contradicts the situation."""
        situation = next(each for each in SITUATIONS if each.name == self.situation)
        if self.word not in situation.may_be:
            yield f"is {self.word}"
        if (self.status == 0) is not (self.word == "fit"):
            yield f"is {self.word} with exit status {self.status}"
        if accused := set(self.blamed) - {*situation.may_blame, "no cause"}:
            yield f"blames {', '.join(sorted(accused))}"
        if situation.may_blame and not set(self.blamed) & set(situation.may_blame):
            yield f"does not blame {' or '.join(situation.may_blame)}"

    @property
    def cell(self) -> str:
        """Return ``Not fit, 12 fail: that drive``; without the exit status, which follows from the first word."""
        failed, bounded = self.outcomes.get("fail", 0), self.outcomes.get("bounded", 0)
        counts = [f"{number} {word}" for number, word in ((failed, "fail"), (bounded, "bounded")) if number]
        words = ", ".join([self.word.capitalize(), *counts])
        return f"{words}: {', '.join(self.blamed)}" if self.blamed else words


def model_of(sheet: spec.Spec) -> str:
    """Return a model string that the sheet fits."""
    pattern = next(iter(sheet.product.models), sheet.name)
    return pattern.replace("-*", "-00A07").replace("*", "").replace("?", "0")


def serials_of(drives: int) -> list[str]:
    return [f"SSDQ{number:04}" for number in range(1, drives + 1)]


def environment(key: str, situation: Situation, drives: int) -> dict[str, str]:
    """Return the variables that the simulator reads."""
    sheet = spec.load(key)
    serials = serials_of(drives)
    shares = dict.fromkeys(serials, situation.share)
    shares[serials[SLOW_ONE]] *= situation.one
    variables = {
        "SIMULATED_DRIVES": str(drives),
        "SIMULATED_SHEET": key,
        "SIMULATED_MODEL": model_of(sheet),
        "SIMULATED_SLOW": ",".join(f"{serial}={share}" for serial, share in shares.items()),
        "SIMULATED_SIZES": ",".join(f"{serial}={sheet.product.capacity_bytes}" for serial in serials),
        "SIMULATED_WWN": "eui.0025385",
        "PYTHONPATH": os.pathsep.join((str(ROOT / "tests"), str(ROOT))),
    }
    if situation.md_iops:
        variables["SIMULATED_MD"] = str(situation.md_iops)
    return variables


def run(key: str, situation: Situation, drives: int, suites: Sequence[str]) -> Ending:
    """Run the command in a process of its own, by default without a suite; the run folder is not kept."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        argv = [
            sys.executable, "-m", "pytest_ssdqual", "run", *suites, "--devices=/dev/nvme*", f"--expect={drives}",
            "-p", "support.simulator.simulated_rig", "-p", "no:cacheprovider", "-q",
            f"--rootdir={folder}", "-c", "/dev/null", f"--ssd-run-dir={folder}/runs",
        ]  # fmt: skip
        done = subprocess.run(
            argv, cwd=folder, env=os.environ | environment(key, situation, drives), check=False,
            capture_output=True, text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        runs = sorted(folder.glob("runs/*T*"))
        rows = TOTAL.findall(done.stdout)
        if not runs or not rows:
            sys.exit(f"{key}, {situation.name}: no run folder\n{done.stdout}{done.stderr}")
        view = RunView.read(runs[-1])
    hours = re.split(r"\s{2,}", rows[-1].strip())[HOURS_CELL]
    slow_one = serials_of(drives)[SLOW_ONE]
    outcomes = dict(Counter(each.outcome.value for each in view.judged))
    blamed = dict(Counter(blame(group, slow_one) for group in view.causes for _ in failed(group)))
    return Ending(key, situation.name, view.verdict.fitness.value, outcomes, blamed, hours, done.returncode)


def failed(group: CauseGroup) -> list[Evidence]:
    return [each for each in group.broken if each.outcome is Finding.FAIL]


def blame(group: CauseGroup, slow_one: str) -> str:
    """Return what a group of failed promises is blamed on, in the words of the table."""
    if group.culprit in NO_CAUSE:
        return "no cause"
    if group.culprit is Culprit.PRODUCT:
        return "the model"
    if not group.culprit.is_drive:
        return group.culprit.value
    if group.drives == (slow_one,):
        return "that drive"
    causes = [each.cause for each in group.broken if each.cause]
    return "all drives" if causes[0].subject == "all drives" else ", ".join(group.drives)


def results(cases: Sequence[tuple[str, Situation]], given: argparse.Namespace) -> Iterator[Ending]:
    """Yield the ending of each case; those that the file has are not run again, with ``only_known`` no others are."""
    kept: Path | None = given.results
    lines = kept.read_text().splitlines() if kept and kept.exists() else []
    known = {(each.model, each.situation): each for each in (Ending(**json.loads(line)) for line in lines)}
    left = [case for case in cases if (case[0], case[1].name) not in known and not given.only_known]
    with ThreadPoolExecutor(given.processes) as pool:
        for ending in pool.map(lambda case: run(case[0], case[1], given.drives, given.suites), left):
            known[ending.model, ending.situation] = ending
            print(f"{ending.model}, {ending.situation}: {ending.cell}, status {ending.status}", file=sys.stderr)
            if kept:
                with kept.open("a") as file:
                    print(json.dumps(asdict(ending)), file=file)
    yield from (known[model, situation.name] for model, situation in cases if (model, situation.name) in known)


def table(endings: Sequence[Ending]) -> Iterator[str]:
    """Yield the lines of a Markdown table: a row a situation, a column a model."""
    cells = {(each.situation, each.model): each for each in endings}
    models = list(dict.fromkeys(each.model for each in endings))
    yield f"| drives do | {' | '.join(models)} |"
    yield f"| --- {'| --- ' * len(models)}|"
    for situation in dict.fromkeys(each.situation for each in endings):
        row = (cells[situation, model].cell if (situation, model) in cells else "" for model in models)
        yield f"| {situation} | {' | '.join(row)} |"
    hours = {each.model: each.hours for each in endings}
    yield f"| hours of the plan | {' | '.join(hours[model] for model in models)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--situations", default="", metavar="TEXT", help="those whose name contains it")
    parser.add_argument("--suites", nargs="+", default=[], help="those of the run; default: what the command runs")
    parser.add_argument("--drives", type=int, default=8)
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="runs at the same time")
    parser.add_argument("--only-known", action="store_true", help="print what is kept, and run nothing")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep each result; those kept are not run again")
    given = parser.parse_args()
    chosen = [each for each in SITUATIONS if given.situations in each.name]
    cases = [(key, situation) for key in given.models for situation in chosen]
    endings = list(results(cases, given))
    if not endings:
        sys.exit("nothing was run: no situation has this name, or none is kept")
    print("\n".join(table(endings)))
    wrong = [f"{each.model}, {each.situation}: {'; '.join(said)}" for each in endings if (said := list(each.wrong()))]
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
