"""Runs the readers of the program over a folder of real inputs, and prints what each file was read as.

    python bench/corpus.py DIR
    python bench/corpus.py DIR --names 'nvme0n1 nvme0 0000:01:00.0'   # devices whose kernel messages count

Read are answers of ``smartctl --json -x``, of ``nvme smart-log -o json``, of ``lsblk --json`` and of fio (its JSON),
/proc/mdstat, and kernel logs as dmesg prints them, all of them also compressed by gzip. A file that a reader refuses
has the reader's sentence. An exception that no reader may raise is marked BUG, and the exit status is then 1. Nothing
is sent anywhere: look at what was misread, and send us the smallest part of the input that shows it.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path

from pytest_ssdqual.qual.strict_json import read_json
from pytest_ssdqual.rig.drives import lsblk, survey_parse
from pytest_ssdqual.rig.fio import output
from pytest_ssdqual.rig.health import health, temperature
from pytest_ssdqual.rig.health.smart_answer import parsed
from pytest_ssdqual.rig.machine.machine import RigError
from pytest_ssdqual.rig.observe import kernel_log

#: Larger files are no answers of these tools.
MOST_BYTES = 64 << 20
#: Kernel messages of a file that are printed.
SHOWN = 5

Found = Mapping[str, object]


def of_smartctl(text: str, names: str) -> Found:
    warmth, link = temperature.parse(parsed(text))
    found = {**asdict(health.parse(text)), "warmth": warmth, "link": link}
    return {name: value for name, value in found.items() if value not in (None, {}, ())}


def of_nvme_cli(text: str, names: str) -> Found:
    warmth, _ = temperature.parse(parsed(text))
    return {each.name: value for each in fields(warmth) if (value := getattr(warmth, each.name)) is not None}


def of_lsblk(text: str, names: str) -> Found:
    nodes = lsblk.read(text).nodes.values()
    return {node.kname: f"{node.type}, {node.model}, {node.serial}, {node.wwn}, {node.size_bytes} B" for node in nodes}


def of_mdstat(text: str, names: str) -> Found:
    return {name: ", ".join(members) for name, members in survey_parse.md_members(text.split("\n"))}


def of_fio(text: str, names: str) -> Found:
    result = output.parse([text.encode()])
    ios = sum(each.ios for each in result.intervals)
    return {"seconds": result.seconds, "intervals": len(result.intervals), "I/Os": ios}


def of_dmesg(text: str, names: str) -> Found:
    environment = {**os.environ, "form": "t", "since": "t-1", "names": names, "array": "-", "LC_ALL": "C"}
    done = subprocess.run(
        ["awk", kernel_log.PICK], input=text, env=environment, capture_output=True, text=True, check=True
    )
    head, *lines = done.stdout.splitlines() or ["==kernel t0 0 0"]
    log = kernel_log.parse(head.removeprefix("==kernel "), lines).log
    shown = {f"message {number}": line.describe() for number, line in enumerate(log.lines[:SHOWN], 1)}
    return {"messages": len(log.lines), "left out": log.more, **shown}


def kind_of(text: str) -> tuple[str, Callable[[str, str], Found]] | None:
    """Return the kind of an input and its reader; None if there is no reader for it."""
    if text.lstrip().startswith("["):
        return "kernel log", of_dmesg
    if text.startswith("Personalities :"):
        return "mdstat", of_mdstat
    if '"fio version"' in text:
        return "fio", of_fio
    plain = read_json(text)
    if isinstance(plain, dict):
        for key, kind in KINDS.items():
            if key in plain:
                return kind
    return None


KINDS = {
    "smartctl": ("smartctl", of_smartctl),
    "blockdevices": ("lsblk", of_lsblk),
    "critical_warning": ("nvme", of_nvme_cli),
}


def files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield every regular file below the folder with its text."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= MOST_BYTES:
            data = path.read_bytes()
            yield path, (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8", "replace")


def read(text: str, names: str = "") -> tuple[str, str, Found]:
    """Return the kind, the outcome (``read``, ``refused``, ``no reader`` or ``BUG``), and what was read of an input."""
    kind = ""
    try:
        found = kind_of(text)
        if found is None:
            return "", "no reader", {}
        kind, reader = found
        return kind, "read", reader(text, names)
    except (ValueError, RigError) as error:
        return kind, "refused" if kind else "no reader", {"because": str(error)[:200]}
    except Exception as error:
        return kind, "BUG", {type(error).__name__: str(error)[:200]}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", type=Path)
    parser.add_argument("--names", default="", help="names of devices, as sysfs spells them, separated by spaces")
    given = parser.parse_args(argv)
    counts: Counter[str] = Counter()
    for path, text in files(given.folder):
        kind, outcome, found = read(text, given.names)
        counts[outcome] += 1
        print(f"{path.relative_to(given.folder)}: {' '.join(filter(None, (kind, outcome)))}")
        for name, value in found.items():
            print(f"    {name}: {value}")
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())) or "no files")
    return 1 if counts["BUG"] or not counts["read"] else 0


if __name__ == "__main__":
    sys.exit(main())
