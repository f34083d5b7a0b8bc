"""Each suite of a publication once, from beginning to end, in the lab: its minutes, and what its tests ended with.

    python bench/whole_suites.py FOLDER              # all; five hours of emulated drives by their plans
    python bench/whole_suites.py FOLDER snia stec    # some; two at once need two processors

FOLDER gets a run folder with its page, a JUnit file and a log for each. The protocol is ``whole_suites.toml``: it shows
that tests run, not what drives are worth. ``SUITES`` has the number of drives of each suite.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from lab_causes import BY_ID, IOPS, ssh_config

from pytest_ssdqual import lab

ROOT = Path(__file__).parents[1]
#: The largest transfer that a drive does at its full IOPS; larger ones are bound by its bandwidth. Without a bandwidth,
#: transfers of 1 MiB are bound by the emulated processor. With half of this one, 128 MiB outstanding on a drive take
#: 3.4 s; fio reports only after each of its jobs has had an I/O, and silence of more than 3 s is not valid.
LARGEST_AT_FULL_IOPS = 256 << 10
#: Drives of each suite: the arrays of toms_s3500 have six. Of 128 transfers of 256 KiB to each of four drives 57 % were
#: outstanding, because the emulated processor was the limit: Little's law refuses that. Two drives are in its reach.
SUITES = {"intel_s3500": 4, "toms_s3500": 6, "stec": 4, "toms_s3700": 4, "intel_910": 4, "snia": 2}
#: More arguments of pytest. Demand variation has 32 processes of fio for each drive, which report every 3.4 s on an
#: emulated machine instead of each second: its cells are not valid there. The recoveries are 37 hours in cells of a
#: minute, so also hours in cells of seconds.
MORE = {"snia": ("-k", "not demand and not recovery")}


def run(suite: str, folder: Path) -> tuple[float, Counter[str]]:
    """Run one suite; return its seconds and the numbers of its outcomes."""
    junit, begin = folder / f"{suite}.xml", time.monotonic()
    count, bytes_per_s = SUITES[suite], IOPS * LARGEST_AT_FULL_IOPS
    with (
        (folder / f"{suite}.log").open("w") as log,
        lab.start(count, say=partial(print, file=log, flush=True), iops=IOPS, bytes_per_s=bytes_per_s) as vm,
    ):
        argv = [
            sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"suites/{suite}", f"--junitxml={junit}",
            f"--ssd-devices=lab:{BY_ID}SSDQ000[1-{count}]", f"--ssd-ssh-config={ssh_config(vm, folder)}",
            "--ssd-spec=ssdqual-sm300", "--ssd-force-spec", f"--ssd-protocol={ROOT / 'bench/whole_suites.toml'}",
            f"--ssd-run-dir={folder / suite}", *MORE.get(suite, ()),
        ]  # fmt: skip
        subprocess.run(argv, cwd=ROOT, check=False, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    seconds = time.monotonic() - begin
    if not junit.exists():
        sys.exit(f"{suite} ended without a result: see {log.name}")
    cases = ElementTree.parse(junit).iter("testcase")  # noqa: S314 (pytest wrote it, a moment ago)
    return seconds, Counter(next((each.tag for each in case if each.tag in OUTCOMES), "passed") for case in cases)


OUTCOMES = ("failure", "error", "skipped")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("suites", nargs="*", choices=[[], *SUITES], metavar="SUITE")
    options = parser.parse_args()
    folder = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    columns = ("passed", *OUTCOMES)
    print(f"{'suite':<12} {'minutes':>8} {' '.join(f'{each:>8}' for each in columns)}", flush=True)
    total = 0.0
    for suite in options.suites or SUITES:
        seconds, found = run(suite, folder)
        total += seconds
        print(f"{suite:<12} {seconds / 60:8.1f} {' '.join(f'{found[each]:8d}' for each in columns)}", flush=True)
    print(f"{'in all':<12} {total / 60:8.1f}")


if __name__ == "__main__":
    main()
