"""Addresses of drives, as in ``--ssd-devices``: patterns on a host, on this computer, or a lab; and names of bays."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import pytest

from pytest_ssdqual.qual.frozen import frozen

#: ``[[USER@]HOST:]PATTERN[,PATTERN…]``: a host never contains a slash, and a pattern always begins with one
#: (/dev/disk/by-path names contain colons).
HOST = r"(?:[^@/:]+@)?(?:\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]|[^@/:\[\]]+)"
#: Host names that neither ssh nor a shell can misread as an option or a command.
SAFE_HOST = re.compile(r"(?:[A-Za-z0-9_.%-]+@)?(?:\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9_.-]+)?\]|[A-Za-z0-9_.:%-]+)")
DEVICES = re.compile(rf"(?:(?P<host>{HOST}):)?(?P<patterns>/.*)", re.DOTALL)
#: The lab, unless a pattern follows: a host or a user may be called lab, too. ``lab:8@debian13,slow=6``: a guest of
#: that release, the sixth drive is slow.
LAB = re.compile(r"lab(?::(?P<count>(?!/)[^@,]*))?(?:@(?P<release>(?!.*:/)[^,]*))?(?:,(?P<rest>.*))?")
LAB_HINT = "write lab:N with a number of drives, e.g. lab:8, or lab:8,slow=6 with the sixth drive slow"
SLOW = re.compile(r"slow=([0-9]{1,3})")
#: Default number of drives of a lab.
LAB_DRIVES = 8
#: Name of a bay, which is also the name of its folder and a part of its tests' ids.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
LONGEST_NAME = 64


@frozen
class Devices:
    """Address of drives: ``lab`` with a count, or patterns on a host (None: this computer)."""

    lab: int | None = None
    #: Position of the lab's slow drive, counted from 1; 0: all drives are equal.
    slow: int = 0
    host: str | None = None
    patterns: tuple[str, ...] = ()
    #: Number of a lab's first drive; with several labs, serial numbers must not repeat.
    first: int = 1
    #: The Debian release of a lab; empty: that of this computer.
    release: str = ""

    @property
    def machine(self) -> str:
        """Name of the machine in messages."""
        return "lab" if self.lab is not None else self.host or "localhost"

    @property
    def computer(self) -> str:
        """The machine without a user name and in lower case, for comparison."""
        return self.machine.rpartition("@")[2].casefold()

    @property
    def is_here(self) -> bool:
        """True if measurements share the processors of this computer, as a lab's VM does."""
        return self.computer in ("localhost", "lab")


def parse_devices(text: str) -> Devices:
    """Parse one ``--ssd-devices`` value; raise ``pytest.UsageError`` with what to write instead."""
    try:
        return devices(text)
    except ValueError as error:
        hint = ""
        if not text:
            hint = "; the value is empty: is a shell variable in it not set?"
        elif os.path.exists(text):  # noqa: PTH110 (false, not an error, of a bad name)
            hint = "; a shell may remove an unquoted pattern that matches nothing: quote it"
        raise pytest.UsageError(f"--ssd-devices={text}: {error}{hint}") from None


def devices(text: str) -> Devices:
    """Parse ``lab[:N][@RELEASE][,slow=K]`` or ``[[USER@]HOST:]PATTERN[,PATTERN…]``.

    Raise ``ValueError`` with what to write instead.
    """
    if lab := LAB.fullmatch(text):
        count = _lab_count(lab["count"])
        return Devices(lab=count, slow=_lab_slow(lab["rest"], count), release=_lab_release(lab["release"]))
    match = DEVICES.fullmatch(text)
    patterns = tuple(pattern for pattern in match["patterns"].split(",") if pattern) if match else ()
    if not match or not all(pattern.startswith("/") for pattern in patterns):
        raise ValueError(
            "write [[USER@]HOST:]PATTERN[,PATTERN...] with patterns that begin with /dev/, or lab[:N][@RELEASE]"
        )
    return Devices(host=host(match["host"]) if match["host"] else None, patterns=patterns)


def host(text: str) -> str:
    """Return ``[USER@]HOST`` as an argument for ssh; raise ``ValueError`` if it is no host name or an option of ssh."""
    if re.search(r"(^|@)-", text) or not SAFE_HOST.fullmatch(text):
        raise ValueError(f"{text!r} is not a host name")
    # The brackets separate the colons of an IPv6 address from the colon before the pattern; ssh takes no brackets.
    return re.sub(r"[\[\]]", "", text)


def bay_names(machines: Iterable[str]) -> list[str]:
    """Return the names of the bays of these machines, in their order: the host, with a number if the name is taken.

    Characters that a bay name may not contain (the colons of an address) are replaced by ``_``.
    """
    names: list[str] = []
    for machine in machines:
        plain = re.sub(r"[^A-Za-z0-9_.-]", "_", machine.rpartition("@")[2]).lstrip("_.-")[:LONGEST_NAME] or "bay"
        name, number, taken = plain, 1, {each.casefold() for each in names}
        while name.casefold() in taken:
            number += 1
            name = f"{plain[: LONGEST_NAME - 6]}_{number}"
        names.append(name)
    return names


def pools(given: Iterable[Devices]) -> list[Devices]:
    """Merge the addresses of each machine into one.

    Raise ``pytest.UsageError`` for a machine with two addresses (two users), and for two labs.
    """
    found: dict[str, Devices] = {}
    for each in given:
        # A host that is called lab is another machine than the lab.
        key = f"{each.lab is not None} {each.computer}"
        known = found.setdefault(key, each)
        if known is each:
            continue
        if each.lab is not None:
            raise pytest.UsageError(
                "--ssd-devices=lab may be given only once: write the number of drives, e.g. lab:8; for several labs "
                "write an inventory, --ssd-bays=FILE"
            )
        if known.machine.casefold() != each.machine.casefold() or (known.host is None) != (each.host is None):
            raise pytest.UsageError(
                f"--ssd-devices has two addresses of one machine, {_way(known)} and {_way(each)}: write the same one "
                "both times to make it one bay"
            )
        found[key] = Devices(host=known.host, patterns=(*known.patterns, *each.patterns))
    return list(found.values())


def _way(devices: Devices) -> str:
    return devices.host or "this computer without ssh"


def _lab_count(text: str | None) -> int:
    from pytest_ssdqual.lab.drives import check_count

    if text is None:
        return LAB_DRIVES
    try:
        count = int(text)
    except ValueError:
        raise ValueError(LAB_HINT) from None
    check_count(count)
    return count


def _lab_slow(text: str | None, count: int) -> int:
    if text is None:
        return 0
    found = SLOW.fullmatch(text)
    if found is None:
        raise ValueError(LAB_HINT)
    if not 1 <= int(found[1]) <= count:
        raise ValueError(f"{text} is none of the drives 1 to {count}")
    return int(found[1])


def _lab_release(text: str | None) -> str:
    from pytest_ssdqual.lab.image.release import named

    return "" if text is None else named(text).name
