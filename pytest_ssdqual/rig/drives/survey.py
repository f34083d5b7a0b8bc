"""Survey of the machine's block devices and their uses, and expansion of the user's patterns to devices.

A survey takes two commands, an expansion one (a command costs 0.15 s over OpenSSH in an emulated VM). What a user wrote
reaches the scripts as positional parameters only. An answer that cannot be parsed is an error, never an empty answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_ssdqual.rig.drives import answers, lsblk, survey_parse
from pytest_ssdqual.rig.drives.survey_parse import topology_of
from pytest_ssdqual.rig.drives.topology import Drive, Match, MdArray, Node, Topology, Use, UseKind
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Completed, DeadlineExceeded, DriveSilent, Machine, RigError

__all__ = [
    "Drive",
    "Match",
    "MdArray",
    "Node",
    "NotABlockDevice",
    "NothingMatches",
    "Topology",
    "UnusablePattern",
    "Use",
    "UseKind",
    "expand",
    "survey",
]


FACTS, PERL_PROBE, PYTHON_PROBE = map(scripts.text, ("survey.sh", "probe.pl", "probe.py"))
EXPAND = scripts.text("expand_patterns.sh")


#: Seconds in which a drive has to answer a read if a survey did not end.
SILENCE_S = 5.0


class UnusablePattern(ValueError):
    """A pattern that does not name drives; its text is one sentence for the user."""


class NothingMatches(UnusablePattern):
    """No path on the machine under test matches the pattern."""


class NotABlockDevice(UnusablePattern):
    """The pattern names something else: a file, a character device, a dangling link."""


def survey(machine: Machine, candidates: Iterable[str] = ()) -> Topology:
    """Survey all block devices of a machine and their current uses.

    ``candidates`` are kernel names of devices that may be destroyed: only these, and other paths to them, are opened
    (read-only, exclusively, for a moment) and probed for signatures. A candidate that is gone is not among those of the
    topology. Raises ``RigError`` if the answer cannot be parsed.
    """
    candidates = frozenset(candidates)
    listed = machine.run(lsblk.ARGV, repeatable=True)
    topology = _surveyed(machine, listed, candidates, candidates)
    twins = {twin.kname for kname in topology.candidates for twin in topology.twins(kname)} - candidates
    return _surveyed(machine, listed, candidates, candidates | twins) if twins else topology


def _surveyed(machine: Machine, listed: Completed, candidates: frozenset[str], opened: frozenset[str]) -> Topology:
    nodes = [f"/dev/{kname}" for kname in sorted(opened)]
    try:
        facts = scripts.answer(machine, FACTS, "facts", PERL_PROBE, PYTHON_PROBE, *nodes)
    except DeadlineExceeded:
        if silent := answers.unanswered(machine, nodes, SILENCE_S):
            raise DriveSilent("; ".join(f"{path} {clause}" for path, clause in silent.items())) from None
        raise
    try:
        # Names of drives may contain any bytes; escaped, they would no longer be valid JSON.
        listing, reported = (done.stdout.decode("utf-8", "surrogateescape") for done in (listed, facts))
        return topology_of(listing, reported, candidates)
    except ValueError as problem:
        raise RigError(f"The block devices of {machine.name} cannot be listed: {problem}") from problem


def expand(machine: Machine, patterns: Sequence[str]) -> tuple[Match, ...]:
    """Return the block devices that patterns match on the machine under test, in the order written.

    Several links to one device within one pattern are one match, and so are a disk and its partitions when one
    glob names both (``/dev/sd*``). A device that two patterns match is two matches, which ``guard.refusals`` refuses.
    Raises ``NothingMatches`` or ``NotABlockDevice``, both ``ValueError``.
    """
    for pattern in patterns:
        if not pattern.startswith("/") or "\0" in pattern:
            raise UnusablePattern(f"{pattern!r} is not an absolute path; write for example /dev/{pattern or 'sdb'}.")
    answer = scripts.answer(machine, EXPAND, "expand", *patterns)
    words = [word.partition(" ") for word in answer.text.split("\0")[:-1]]
    if not words or words[-1][0] != "end":
        raise RigError(
            f"{machine.name} does not report which devices {', '.join(patterns)} are: {answer.errors.strip()}"
        )
    matched: list[list[tuple[str, str, str]]] = []
    values = iter((kind, value) for kind, _, value in words)
    for kind, value in values:
        if kind == "pattern":
            matched.append([])
        elif kind == "path":
            matched[-1].append((value, next(values)[1], next(values)[1]))
    if len(matched) != len(patterns):
        raise RigError(f"{machine.name} answered for {len(matched)} of {len(patterns)} patterns.")
    return tuple(
        match for pattern, paths in zip(patterns, matched, strict=True) for match in _matches(machine, pattern, paths)
    )


def _matches(machine: Machine, pattern: str, paths: Sequence[tuple[str, str, str]]) -> Iterable[Match]:
    if not paths:
        raise NothingMatches(f"Nothing on {machine.name} matches {pattern!r}; `lsblk` there lists its drives.")
    yielded: set[str] = set()
    disks = {survey_parse.named(kname) for _, kname, _ in paths}
    for path, kname, disk in paths:
        if not kname:
            origin = "" if path == pattern else f", which {pattern!r} matches,"
            raise NotABlockDevice(f"{path!r}{origin} is not a block device of {machine.name}; name drives only.")
        match = Match(pattern, path, survey_parse.named(kname))
        if match.kname not in yielded and not (disk and survey_parse.named(disk) in disks):
            yield match
        yielded.add(match.kname)
