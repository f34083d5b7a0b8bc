"""The drives' write caches in a run: their states during the measurements, and what became of them afterwards; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.view import subject
from pytest_ssdqual.report.view.tables import TableRow
from pytest_ssdqual.rig.drives.cache_state import WriteCacheRecord

#: Kinds of records that this is about.
KINDS = ("write_cache", "write_cache_planned", "write_cache_restored", "write_cache_left")


def states(story: RunReader) -> str:
    """Return the states as a phrase: ``off``, or ``off (3 drives), on (1 drive: S4)``; empty if none is recorded."""
    return _grouped(story, {each.drive: each.now for each in _readings(story)})


def rows(story: RunReader) -> Iterator[TableRow]:
    """Yield rows of the test setup: how the states came about, and whether they were restored."""
    outcomes = {each.drive: each.outcome for each in _readings(story)}
    if outcome := _grouped(story, outcomes, is_always_counted=True):
        yield "write caches", outcome
    switched = {each.fact("change", str, "") for each in story.of("write_cache_planned")}
    last = story.last_of_caches()
    restored = sum(last[change].kind == "write_cache_restored" for change in switched & last.keys())
    if switched:
        rest = "; the next run with these drives restores the remaining ones" if switched - last.keys() else ""
        yield "write caches restored", f"{restored} of {len(switched)} that were switched{rest}"
    yield from (("write cache", sentence) for sentence in story.caches_left())


def _readings(story: RunReader) -> Iterator[WriteCacheRecord]:
    return story.contents(WriteCacheRecord, "write_cache")


def _grouped(story: RunReader, values: Mapping[str, str], *, is_always_counted: bool = False) -> str:
    """Return the values of all drives, each with its drives."""
    groups: dict[str, list[str]] = {}
    for drive, value in values.items():
        groups.setdefault(str(value), []).append(drive)
    if len(groups) == 1 and not is_always_counted:
        return next(iter(groups))
    serials = story.manifest.serials
    most = max(map(len, groups.values()), default=0)
    return ", ".join(f"{value} ({_drives(drives, serials, most)})" for value, drives in groups.items())


def _drives(drives: list[str], serials: Mapping[str, str], most: int) -> str:
    """Return the number of drives; of the less frequent states also their names, if they are few."""
    number = f"{len(drives)} {'drive' if len(drives) == 1 else 'drives'}"
    if len(drives) == most or len(drives) > subject.MOST_NAMED:
        return number
    return f"{number}: {', '.join(serials.get(drive, drive) for drive in drives)}"
