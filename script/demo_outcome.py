"""Check that script/demo ended as expected, and explain it: demo_outcome.py JUNIT RUNS."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from pytest_ssdqual.report.html.page import REPORT
from pytest_ssdqual.report.run_folder.find import LAST, NoSuchRun, find

SLOW, WITH, WITHOUT = "cause: drive SSDQ0006", "raid5x8", ("raid5x3", "raid5x5")
UNEXPECTED = "not the expected outcome: a computer that is busy may be the reason"


def explain(junit: Path) -> list[str]:
    """Return the explanation of the expected outcome; empty if the outcome is another one."""
    cases = list(ET.parse(junit).getroot().iter("testcase"))  # noqa: S314 (written by pytest a moment ago)
    judged = {case.get("name", ""): {each.tag: each.get("message", "") for each in case} for case in cases}
    failed = {name: found["failure"] for name, found in judged.items() if "failure" in found}
    passed = [name for name, found in judged.items() if not found.keys() & {"failure", "error", "skipped"}]
    if len(failed) != 1 or any("error" in found for found in judged.values()):
        return []
    ((name, message),) = failed.items()
    if WITH not in name or SLOW not in message or not all(any(each in test for test in passed) for each in WITHOUT):
        return []
    return [
        "the failure is the point: the sixth of the eight drives is slow",
        "RAID 5 of 3 and of 5 drives does without it and passed; RAID 5 of 8 drives failed, with this verdict:",
        f"  {message}",
        "script/demo --full judges all widths and mixes, at queue depth 8 and 1",
    ]


def main(junit: str, runs: str) -> int:
    """Print the explanation and the place of the page; return the exit status of script/demo."""
    lines = explain(Path(junit))
    try:
        page = f"the page of this run, for a browser: {find(LAST, Path(runs)).resolve() / REPORT}"
    except NoSuchRun as error:
        page = str(error)
    for line in [*(lines or [UNEXPECTED]), page]:
        print(f"demo: {line}")
    return 0 if lines else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
