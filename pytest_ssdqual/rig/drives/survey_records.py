"""The format of the survey's answer: records of fields, each ended by NUL; pure.

No value that the survey prints can contain a NUL, and each kind has a fixed number of fields, so no value can end a
record or begin one. Every deviation is an error: an answer that is partly parsed could miss a use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice


@dataclass(frozen=True, slots=True)
class RecordKind:
    """What a record of one kind consists of."""

    fields: int
    #: How many of its first fields tell it from others of its kind: 0 if there is only one. None: there may be equals.
    key: int | None = None
    required: bool = False


KINDS = {
    # of a device, by its name in sysfs
    **dict.fromkeys(("dev", "size", "ro", "model", "depth", "mduuid", "zoned", "loop", "disk"), RecordKind(2, 1)),
    **dict.fromkeys(("wwid", "serial", "firmware"), RecordKind(2)),
    **dict.fromkeys(("holder", "slave", "controller", "btrfs", "bcachefs"), RecordKind(2, 2)),
    "bcache": RecordKind(1, 1),
    "over": RecordKind(3),
    # by a path or a number
    "generic": RecordKind(2, 2),
    "export": RecordKind(2),
    "exported": RecordKind(3),
    "passthru": RecordKind(2),
    # whole files
    **dict.fromkeys(("mounts", "swaps", "mdstat"), RecordKind(1, 0, required=True)),
    "zfs": RecordKind(1, 0),
    # open files: process, descriptor, access, device, name of the process
    "opened": RecordKind(5, 2),
    "pidns": RecordKind(1, 0),
    "scanned": RecordKind(0, 0, required=True),
    # of candidates, by path
    "number": RecordKind(3, 1),
    "probe": RecordKind(2, 1),
    "multiport": RecordKind(1, 1),
    "reserved": RecordKind(3, 1),
    "signature": RecordKind(2),
    "unprobed": RecordKind(1, 0),
    "unchecked": RecordKind(1),
    "end": RecordKind(0, 0, required=True),
}


@dataclass(frozen=True, slots=True)
class Records:
    """An answer."""

    by_kind: dict[str, list[tuple[str, ...]]]

    def __getitem__(self, kind: str) -> Sequence[tuple[str, ...]]:
        """All records of a kind, without the kind."""
        if kind not in KINDS:
            raise ValueError(f"{kind} is no kind of record")
        return self.by_kind.get(kind, ())

    def text(self, kind: str) -> str:
        """The only field of the only record of a kind; empty if there is none."""
        return "".join(fields[0] for fields in self[kind])


def parse(answer: str) -> Records:
    """``ValueError`` for anything but whole records of known kinds, each once if it may be there only once."""
    if not answer.endswith("\0"):
        raise ValueError("the survey was cut short")
    words = iter(answer[:-1].split("\0"))
    by_kind: dict[str, list[tuple[str, ...]]] = {}
    for name in words:
        if name not in KINDS or "end" in by_kind:
            raise ValueError(f"{name[:40]!r} is not a record of the survey")
        fields = tuple(islice(words, KINDS[name].fields))
        if len(fields) < KINDS[name].fields:
            raise ValueError(f"the survey was cut short, within {name}")
        by_kind.setdefault(name, []).append(fields)
    missing = [name for name, kind in KINDS.items() if kind.required and name not in by_kind]
    if missing:
        raise ValueError(f"the survey was cut short, {', '.join(missing)} missing")
    _require_single(by_kind)
    return Records(by_kind)


def _require_single(by_kind: dict[str, list[tuple[str, ...]]]) -> None:
    for name, records in by_kind.items():
        keys = [fields[: KINDS[name].key] for fields in records]
        if KINDS[name].key is not None and len(set(keys)) < len(keys):
            raise ValueError(f"the survey reports {name} more than once")
