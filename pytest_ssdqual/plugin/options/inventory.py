"""Which bays a run has: machines, each with a set of drives, from ``--ssd-devices`` or from an inventory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType

import pytest

from pytest_ssdqual.plugin.options.device_address import Devices, bay_names, parse_devices, pools
from pytest_ssdqual.qual import safe_text

#: Bays of one run: each is a connection, and a worker process of its own.
MOST_BAYS = 1000
#: Of the bays that there are, when one is asked for that is not.
NAMED = 20


@dataclass(frozen=True, slots=True)
class BayAsked:
    """A machine with a set of drives, as the user named it."""

    #: As ``places.NAME``; no two of a run are equal, also not if case is ignored.
    name: str
    devices: Devices
    #: What a site calls it by, e.g. rack and lot.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: A path of a drive or a pattern of such → what is written on the slot.
    slots: Mapping[str, str] = field(default_factory=dict)
    #: Instead of ``--ssd-ssh-config``.
    ssh_config: str | None = None
    #: How many drives there must be; None: not said here.
    expect: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", MappingProxyType(dict(self.labels)))
        object.__setattr__(self, "slots", MappingProxyType(dict(self.slots)))


def asked(config: pytest.Config) -> tuple[BayAsked, ...]:
    """The bays that the command line means; none if it names no drives. ``pytest.UsageError`` if it makes no sense."""
    given = config.getoption("ssd_devices")
    selected = config.getoption("ssd_bay")
    if given and config.getoption("ssd_bays") is not None:
        raise pytest.UsageError("--ssd-bays and --ssd-devices both say which drives: give one of them")
    if given:
        found = _of_machines([parse_devices(text) for text in given])
    elif file := _file(config):
        from pytest_ssdqual.plugin.options import inventory_file

        found = inventory_file.load(file)
    else:
        return ()
    return select(found, selected) if selected else found


def count(config: pytest.Config) -> int:
    """How many bays the command line means: 1 if it means none, or makes no sense. Never raises.

    For xdist, which asks before anything is configured; what is wrong is told when the run begins.
    """
    try:
        return len(asked(config)) or 1
    except Exception:  # whatever it is, it will be met again where it can be said
        return 1


def _file(config: pytest.Config) -> Path | None:
    """The inventory. That of a configuration file only where bays are selected of it.

    A plain ``pytest`` in the same folder must not connect to every machine of a site.
    """
    option = config.getoption("ssd_bays")
    if option == "":
        raise pytest.UsageError("--ssd-bays= names no file")
    if option:
        return Path(config.invocation_params.dir, Path(option).expanduser())
    if config.getoption("ssd_bay") and (ini := config.getini("ssd_bays")):
        return Path(config.rootpath, Path(ini).expanduser())
    return None


def _of_machines(given: Sequence[Devices]) -> tuple[BayAsked, ...]:
    found = pools(given)
    names = bay_names(each.machine for each in found)
    return tuple(BayAsked(name, devices) for name, devices in zip(names, found, strict=True))


def select(bays: Sequence[BayAsked], given: Sequence[str]) -> tuple[BayAsked, ...]:
    """Those that ``--ssd-bay`` names, in the order of ``bays``; ``pytest.UsageError`` for a name of none."""
    wanted = [part.strip() for text in given for part in text.split(",")]
    for each in wanted:
        if not any(_fits(bay, each) for bay in bays):
            raise pytest.UsageError(f"--ssd-bay={each}: there is no such bay; {_there_are(bays, each)}")
    return tuple(bay for bay in bays if any(_fits(bay, each) for each in wanted))


def _fits(bay: BayAsked, pattern: str) -> bool:
    return fnmatchcase(bay.name.casefold(), pattern.casefold())


def _there_are(bays: Sequence[BayAsked], missed: str) -> str:
    names = [bay.name for bay in bays]
    near = get_close_matches(missed, names, n=1)
    rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    guess = f"; did you mean {near[0]}?" if near and len(names) > 1 else ""
    return safe_text.line(f"there are {', '.join(names[:NAMED])}{rest}{guess}", 2000)
