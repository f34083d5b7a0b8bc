"""Time from a clone, and from a wheel, to the first page of a run, on a computer without anything of this project.

    python bench/first_verdict.py           # both, about ten minutes of an idle computer
    python bench/first_verdict.py wheel     # an inspection of three emulated drives, from the installed wheel
    python bench/first_verdict.py clone     # script/demo in a fresh clone of the last commit

Environments, pip's cache, the lab's images and run folders are in a temporary folder, so all downloads count. Packages
of the system are not removed: on a new machine add the time of ``apt-get install`` that script/setup prints.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSPECTION = [
    "--pyargs",
    "pytest_ssdqual.suites.inspection",
    "--ssd-devices=lab:3",
    "-q",
    "-k",
    "not model and not spare",
]


def fresh(home: Path) -> dict[str, str]:
    """Return the environment of a user without caches."""
    left_out = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTEST_ADDOPTS")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return kept | {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}


def run(argv: list[str], folder: Path, env: dict[str, str], allowed: tuple[int, ...] = (0,)) -> None:
    done = subprocess.run(argv, cwd=folder, env=env, check=False, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    if done.returncode not in allowed:
        sys.exit(f"{' '.join(argv)}: exit status {done.returncode}")


def from_clone(place: Path, env: dict[str, str]) -> list[tuple[str, Callable[[], None]]]:
    clone = place / "clone"
    return [
        ("git clone", lambda: run(["git", "clone", "-q", str(ROOT), str(clone)], place, env)),
        ("script/demo", lambda: run(["script/demo"], clone, env)),
    ]


def from_wheel(place: Path, env: dict[str, str]) -> list[tuple[str, Callable[[], None]]]:
    wheels, python = place / "wheels", place / "venv/bin/python"
    run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(wheels), str(ROOT)], place, env)
    (wheel,) = wheels.glob("*.whl")
    return [
        ("python -m venv", lambda: run([sys.executable, "-m", "venv", "venv"], place, env)),
        ("pip install", lambda: run([str(python), "-m", "pip", "install", "-q", str(wheel)], place, env)),
        # 1: a drive that fails the inspection has a page, too.
        ("inspection", lambda: run([str(python), "-m", "pytest", *INSPECTION], place, env, allowed=(0, 1))),
    ]


def measured(steps: list[tuple[str, Callable[[], None]]]) -> list[tuple[str, float]]:
    times = []
    for name, step in steps:
        began = time.monotonic()
        step()
        times.append((name, time.monotonic() - began))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", nargs="*", help="clone, wheel, or both (the default)")
    ways = {"wheel": from_wheel, "clone": from_clone}
    which = parser.parse_args().which or list(ways)
    if unknown := set(which) - set(ways):
        parser.error(f"{', '.join(sorted(unknown))}: choose clone or wheel")
    for way in which:
        with tempfile.TemporaryDirectory(prefix="first-verdict-") as name:
            place = Path(name)
            times = measured(ways[way](place, fresh(place)))
            if not list(place.rglob("report.html")):
                sys.exit(f"{way}: the run left no page")
        for step, seconds in times:
            print(f"{way}  {step:16} {seconds:7.1f} s")
        print(f"{way}  {'first page after':16} {sum(seconds for _, seconds in times):7.1f} s")


if __name__ == "__main__":
    main()
