"""The pictures of the cookbook, and of suites in docs: a command on simulated drives, and what its page shows.

    python bench/cookbook.py                    # all jobs and their pictures, into docs: ten minutes, needs Chromium
    python bench/cookbook.py --jobs night ci --runs /tmp/runs --pictures /tmp/pictures

Prints the ending of each job. The drives are eight that do what the shipped sheet of their model publishes, or a share
of it; machine and fio are simulated (``tests/support/simulator``), guard, plan, verdicts and pages are the product's.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bought_drives import ROOT, Situation, environment, model_of
from PIL import Image

sys.path.insert(0, str(ROOT / "tests"))
from support.builders import inspected
from support.fakes.headless import Page, browser

from pytest_ssdqual.qual.spec import spec

SHEET, DRIVES = "samsung-pm9a3-7t68", 8
#: Arguments that take the simulator, and nothing of this checkout's configuration.
SIMULATED = (
    "-p", "support.simulator.simulated_rig", "-p", "no:cacheprovider", "--import-mode=importlib", "-c", "/dev/null",
    "--tb=no", "-q", "--ssd-run-dir=runs", "-o", "ssd_members=true",
)  # fmt: skip
DEVICES = "--ssd-devices=/dev/nvme*"
#: Pixels of a picture, and colours of its palette: text stays sharp, and a picture has less than 150 kB.
WIDTH, COLOURS, SCALE = 1100, 64, 1
MARGIN_PX = 8
RECTANGLE = ("x", "y", "width", "height")
ENDING = re.compile(r"^=+ storage qualification.*?(?=^=+ |\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Job:
    """A command, the drives that it finds, and its picture."""

    #: Words of ``python -m``.
    command: Sequence[str]
    #: Variables of the simulator beside those of drives as published.
    variables: Mapping[str, str] = field(default_factory=dict)
    #: CSS selector of the element in the picture.
    shown: str = "section.verdict"
    #: That of the element in it at whose end the picture ends.
    until: str = ""
    most_px: int = 900
    #: Shipped sheet of the drives' model.
    sheet: str = SHEET
    #: Makes another page than that of the run: the words of ``ssdqual`` for the runs so far, oldest first.
    page: Callable[[Sequence[str]], Sequence[str]] | None = None


def deviating() -> str:
    """Return what two of the drives report at the inspection."""
    found = {}
    for serial, log in {
        "SSDQ0003": {"power_on_hours": 9204, "percentage_used": 38, "data_units_written": 80_000_000},
        "SSDQ0006": {"available_spare": 91},
    }.items():
        smart = inspected.smart_of_nvme(serial, model_of(spec.load(SHEET)))
        smart["nvme_smart_health_information_log"].update(log)
        smart["power_on_time"] = {"hours": log.get("power_on_hours", 3)}
        found[serial] = {"smart": json.dumps(smart)}
    return json.dumps(found)


def of_all(share: float) -> Mapping[str, str]:
    return {"SIMULATED_SLOW": ",".join(f"SSDQ{number:04}={share}" for number in range(1, DRIVES + 1))}


def suite(name: str) -> str:
    return str(ROOT / "suites" / name)


FIGURE = "section[aria-labelledby=charts] figure"
SLOW = {"SIMULATED_SLOW": "SSDQ0006=0.6"}
RUN = ("pytest_ssdqual", "run")
NAMED = ("--devices=/dev/nvme*", f"--expect={DRIVES}")
JOBS = {
    "goods-in": Job(
        ("pytest", DEVICES, "--ssd-read-only", suite("inspection")),
        {"SIMULATED_INSPECTED": deviating()},
        until="section.verdict table",
    ),
    "hour": Job((*RUN, "burn_in", *NAMED), {"SIMULATED_WRONG": "SSDQ0005=damaged"}),
    "day": Job(
        (*RUN, *NAMED),
        shown="body",
        page=lambda runs: (
            "certificate",
            runs[-1],
            "-o",
            "page.html",
            "--order",
            "4711",
            "--lot",
            "A",
            "--operator",
            "C. Lovelace",
        ),
    ),
    "night": Job((*RUN, "raid5", *NAMED), shown=FIGURE),
    "sheet": Job((*RUN, "datasheet", *NAMED), shown=FIGURE),
    "ci": Job(
        ("pytest", DEVICES, suite("drive")),
        of_all(0.93),
        shown="figure",
        most_px=1300,
        page=lambda runs: ("compare", *runs[-2:], "--html", "page.html"),
    ),
    "rate": Job((*RUN, "latency_at_rate", *NAMED), {"SIMULATED_KNEE": "0.8"}, until="ul.drives"),
    "neighbour": Job((*RUN, "neighbour", *NAMED), {"SIMULATED_STARVED": "SSDQ0003=0.02"}, until="ul.drives"),
    "erase": Job((*RUN, "erase", *NAMED), {"SIMULATED_LEFT": "SSDQ0002=discard"}, until="ul.drives"),
    "hunt": Job(
        ("pytest", DEVICES, suite("raid5"), "-k", "raid5x8 and qd8 and steady"),
        SLOW,
        until="section.verdict figcaption",
    ),
    "publication": Job(
        ("pytest", DEVICES, suite("intel_s3500"), "--ssd-arrays=raid5", "-k", "growth and parity"),
        shown="section[aria-labelledby=charts]",
        most_px=570,
        sheet="intel-dc-s3500-800gb",
    ),
}


def execute(job: Job, folder: Path) -> str:
    """Run a job in its folder; return what it printed."""
    variables = environment(job.sheet, Situation("as published", ("fit",)), DRIVES)
    done = subprocess.run(
        [sys.executable, "-m", *job.command, *SIMULATED, f"--rootdir={folder}"],
        cwd=folder, env=os.environ | variables | dict(job.variables), capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.stdout + done.stderr


def page_of(job: Job, folder: Path) -> Path:
    """Return the page that the picture shows."""
    runs = sorted(path.parent for path in folder.glob("runs/*T*/report.html"))
    if not job.page:
        return runs[-1] / "report.html"
    words = job.page([str(run) for run in runs])
    subprocess.run([sys.executable, "-m", "pytest_ssdqual", *words], cwd=folder, capture_output=True, check=True)
    return folder / "page.html"


def picture(page: Page, path: Path, job: Job) -> bytes:
    """Return the part of a page as PNG with a small palette."""
    page.ask("Emulation.setDeviceMetricsOverride", width=WIDTH, height=800, deviceScaleFactor=SCALE, mobile=False)
    page.open(path.as_uri())
    element = f"document.querySelector({json.dumps(job.shown)})"
    page.until(f"document.readyState === 'complete' && !!{element}")
    page.value(f"for (let part = {element}; part; part = part.parentElement) if ('open' in part) part.open = true")
    x, y, width, height = (page.value(f"{element}.getBoundingClientRect().{name}") for name in RECTANGLE)
    if job.until:
        height = page.value(f"document.querySelector({json.dumps(job.until)}).getBoundingClientRect().bottom") - y
    left = max(0, x - MARGIN_PX)
    size = {"width": x + width + MARGIN_PX - left, "height": min(height + MARGIN_PX, job.most_px)}
    clip = {"x": left, "y": y, **size, "scale": 1}
    answer = page.ask("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
    drawn = Image.open(io.BytesIO(b64decode(answer["data"]))).convert("RGB")
    small = io.BytesIO()
    drawn.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    return small.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--runs", type=Path, help="folder of the runs; those that are there are not made again")
    parser.add_argument("--pictures", type=Path, default=ROOT / "docs")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        runs = given.runs or Path(name)
        for each in given.jobs:
            job, folder = JOBS[each], (runs / each).resolve()
            if not folder.exists():
                folder.mkdir(parents=True)
                if each == "ci":  # the baseline, of the same drives before
                    execute(Job(job.command), folder)
                printed = execute(job, folder)
                (folder / "printed.txt").write_text(printed)
            printed = (folder / "printed.txt").read_text()
            found = ENDING.search(printed)
            print(f"== {each}\n{found[0] if found else printed}")
            with browser(Path(name) / f"profile-{each}") as page:
                drawn = picture(page, page_of(job, folder), job)
            (given.pictures / f"cookbook-{each}.png").write_bytes(drawn)
            print(f"{len(drawn):,} bytes")


if __name__ == "__main__":
    main()
