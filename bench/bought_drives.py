"""What runs of ``suites/raid5`` end with, on simulated drives that are bought today: verdict, cause, status.

    python bench/bought_drives.py                                     # all models and situations: half an hour
    python bench/bought_drives.py --models samsung-pm9a3-7t68 --drives 8

Drives do what the shipped sheet of their model publishes, times a share: all of them, or one. Guard, plan, members,
verdicts and the page are the product's; fio and the machine are simulated (``tests/support/simulator``), and an array
does what a queueing network of its drives does. So the table shows verdicts and causes, not how exact a prediction is:
``bench/attribution.py`` does. Ends with status 1 if a run is Fit that should not be, or the other way round.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_ssdqual.qual.spec import spec
from pytest_ssdqual.report.run_summary.run_view import RunView

ROOT = Path(__file__).parents[1]
#: SATA, PCIe Gen4 of two makers, Gen5 of two makers.
MODELS = (
    "kingston-dc600m-960gb",
    "samsung-pm9a3-7t68",
    "solidigm-d7-p5520-7t68",
    "kioxia-cd8p-r-7t68",
    "micron-9550-pro-15t36",
)
#: RAID 5 writes a second of md on servers: published ones are 463,000 to 523,000.
MD_IOPS = 463_000
#: QD 8 and the published maxima: three quarters of the suite's points.
TESTS = "published or health or (qd8 and (steady or scaling or p99))"


@dataclass(frozen=True, slots=True)
class Situation:
    """How a lot of drives differs from its sheet."""

    name: str
    #: Words that the run may end with.
    may_be: tuple[str, ...]
    #: Share of the sheet that all drives do, and the one that is slower.
    share: float = 1.0
    one: float = 1.0
    md_iops: float | None = None


SITUATIONS = (
    Situation("100 % of the sheet", ("fit",)),
    Situation("95 %", ("fit", "undecided"), share=0.95),
    Situation("85 %", ("not fit",), share=0.85),
    Situation("50 %", ("not fit",), share=0.5),
    Situation("4 %", ("not fit",), share=0.04),
    Situation("one drive at 80 %", ("not fit",), one=0.8),
    Situation(f"md at {MD_IOPS:,} IOPS", ("fit",), md_iops=MD_IOPS),
)


@dataclass(frozen=True, slots=True)
class Ending:
    """What a run ended with."""

    word: str
    headline: str
    sentence: str
    cause: str
    status: int


def model_of(sheet: spec.Spec) -> str:
    """Return a model string that the sheet fits."""
    pattern = next(iter(sheet.product.models), sheet.name)
    return pattern.replace("*", "").replace("?", "0")


def environment(key: str, situation: Situation, drives: int) -> dict[str, str]:
    """Return the variables that the simulator reads."""
    sheet = spec.load(key)
    serials = [f"SSDQ{number:04}" for number in range(1, drives + 1)]
    shares = dict.fromkeys(serials, situation.share)
    shares[serials[1]] *= situation.one
    variables = {
        "SIMULATED_DRIVES": str(drives),
        "SIMULATED_SHEET": key,
        "SIMULATED_MODEL": model_of(sheet),
        "SIMULATED_SLOW": ",".join(f"{serial}={share}" for serial, share in shares.items()),
        "SIMULATED_SIZES": ",".join(f"{serial}={sheet.product.capacity_bytes}" for serial in serials),
        "PYTHONPATH": str(ROOT / "tests"),
    }
    if situation.md_iops:
        variables["SIMULATED_MD"] = str(situation.md_iops)
    return variables


def run(key: str, situation: Situation, drives: int, folder: Path) -> Ending:
    """Run the suite in a process of its own."""
    argv = [
        sys.executable, "-m", "pytest", "-p", "support.simulator.simulated_rig", "-p", "no:cacheprovider", "-q",
        f"--rootdir={folder}", "-c", "/dev/null", "--import-mode=importlib", str(ROOT / "suites/raid5"), "-k", TESTS,
        "--ssd-devices=/dev/nvme*", f"--ssd-expect={drives}", f"--ssd-spec={key}", "--ssd-force-spec",
        "--ssd-protocol=acceptance", f"--ssd-run-dir={folder}",
    ]  # fmt: skip
    done = subprocess.run(
        argv, cwd=folder, env=os.environ | environment(key, situation, drives), check=False,
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    runs = sorted(folder.glob("*T*"))
    if not runs:
        sys.exit(f"{key}, {situation.name}: no run folder\n{done.stdout}{done.stderr}")
    view = RunView.read(runs[-1])
    causes = [group.headline for group in view.causes]
    verdict = view.verdict
    return Ending(verdict.fitness.value, verdict.headline, verdict.sentence, "; ".join(causes), done.returncode)


def table(models: Sequence[str], drives: int) -> Iterator[tuple[str, Situation, Ending]]:
    for key in models:
        for situation in SITUATIONS:
            with tempfile.TemporaryDirectory() as folder:
                yield key, situation, run(key, situation, drives, Path(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--drives", type=int, default=4)
    given = parser.parse_args()
    wrong = 0
    print("| model | drives do | verdict | status | cause |\n| --- | --- | --- | --- | --- |", flush=True)
    for key, situation, ending in table(given.models, given.drives):
        is_right = ending.word in situation.may_be and (ending.status == 0) is (ending.word == "fit")
        wrong += not is_right
        mark = "" if is_right else " (WRONG)"
        row = (key, situation.name, f"{ending.headline}: {ending.sentence}{mark}", str(ending.status), ending.cause)
        print(f"| {' | '.join(row)} |", flush=True)
    sys.exit(f"{wrong} wrong" if wrong else 0)


if __name__ == "__main__":
    main()
