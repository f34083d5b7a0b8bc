"""Expected number of drives: a run that finds another number does not begin.

One match satisfies a pattern, so without a number a missing drive makes the arrays narrower and no test fails. The
sources of the number in order of precedence: ``--ssd-expect``, ``expect`` of the bay in an inventory, the ini value
``ssd_expect``, ``drives`` in the spec, ``--ssd-devices`` where it lists drives or a lab, and the baseline.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product

import pytest

from pytest_ssdqual.plugin.options.device_address import Devices
from pytest_ssdqual.plugin.session.qualification import Qualification
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.report.run_folder.manifest import ExpectedDrives
from pytest_ssdqual.rig.drives.survey import Drive

#: Number of names in a sentence, and of names that one pattern with brackets expands to.
MOST_NAMED, MOST_EXPANDED = 24, 512
#: A set of characters in a pattern, and a range in one.
SET, RANGE = re.compile(r"\[([^]!^][^]]*)\]"), re.compile(r"(.)-(.)")


def of(run: Qualification) -> ExpectedDrives | None:
    """Return the expectation with the highest precedence; None if no source has a number."""
    settings, (bay,) = run.settings, run.settings.bays
    found = (
        (settings.expect, "--ssd-expect"),
        (bay.expect, "the inventory"),
        (settings.expect_default, "ssd_expect"),
        (run.spec.product.drives, f"the spec {run.spec.key}"),
        (_listed(settings.devices), "--ssd-devices"),
        (run.baseline.drives if run.baseline else None, f"the baseline {run.baseline.name}" if run.baseline else ""),
    )
    return next((ExpectedDrives(drives, source) for drives, source in found if drives is not None), None)


def require(run: Qualification) -> ExpectedDrives | None:
    """Return the expected number of drives; raise ``pytest.UsageError`` if the bay has another one."""
    expected = of(run)
    if expected and expected.drives != len(run.bay.drives):
        raise pytest.UsageError("; ".join(_wrong(run, expected)))
    return expected


def _wrong(run: Qualification, expected: ExpectedDrives) -> Iterator[str]:
    drives = run.bay.drives
    found = f"{len(drives)} drive{'s' if len(drives) != 1 else ''} found on {run.bay.machine}"
    yield f"{found}, {expected}: {_named([f'{each.path} ({each.identity})' for each in drives])}"
    if run.baseline and run.baseline.drives == expected.drives:
        here = {each.identity for each in drives}
        if gone := [each for each in run.baseline.identities if each not in here]:
            yield f"of the baseline {_named(gone)} {'is' if len(gone) == 1 else 'are'} not among them"
    if len(drives) < expected.drives and (empty := not_there(run.settings.devices.patterns, drives)):
        yield f"no drive is at {_named(empty)}"
    yield f"if {len(drives)} {'is' if len(drives) == 1 else 'are'} meant, add --ssd-expect={len(drives)}"


def _listed(devices: Devices) -> int | None:
    """Return the number of drives that are listed one by one; None if there is a pattern."""
    if devices.lab is not None:
        return devices.lab
    return None if any(re.search(r"[*?[]", each) for each in devices.patterns) else len(set(devices.patterns))


def not_there(patterns: Sequence[str], drives: Sequence[Drive]) -> list[str]:
    """Return the paths in ``/dev`` that patterns with brackets expand to and that no drive has."""
    known = {drive.kname for drive in drives}
    names = [name for pattern in patterns for name in _expanded(pattern)]
    return [f"/dev/{name}" for name in dict.fromkeys(names) if name not in known]


def _expanded(pattern: str) -> list[str]:
    """Expand a pattern to names in ``/dev``; empty if the pattern has wildcards other than brackets."""
    plain = re.fullmatch(r"/dev/([^/]*)", pattern)
    if not plain or re.search(r"[*?\\]|\[[!^]", plain[1]):
        return []
    parts = [_characters(part) if at % 2 else [part] for at, part in enumerate(SET.split(plain[1]))]
    count = 1
    for part in parts:
        count *= len(part)
    return ["".join(each) for each in product(*parts)] if 1 < count <= MOST_EXPANDED else []


def _characters(inside: str) -> list[str]:
    """Expand the inside of brackets: ``b-d8`` is b, c, d and 8."""
    every = RANGE.sub(lambda found: "".join(map(chr, range(ord(found[1]), ord(found[2]) + 1))), inside)
    return list(dict.fromkeys(every))


def _named(names: Sequence[str]) -> str:
    return named([safe_text.line(each, 80) for each in names], MOST_NAMED)
