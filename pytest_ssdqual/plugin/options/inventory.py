"""The bays of a run: machines, each with a set of drives, from ``--ssd-devices`` or from an inventory.

An inventory is a TOML file or one of Ansible's formats. A refusal lists all errors of the file at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field

from pytest_ssdqual.plugin.options import ansible
from pytest_ssdqual.plugin.options.bay_table import BayTable
from pytest_ssdqual.plugin.options.device_address import Devices, bay_names, parse_devices, pools
from pytest_ssdqual.plugin.options.smart_type import SmartType
from pytest_ssdqual.plugin.options.values import usage_error
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.qual.spec import toml
from pytest_ssdqual.qual.spec.toml import Strict

#: Bays of one run: each has a connection and a worker process.
MOST_BAYS = 1000
#: Number of bays in the error about an unknown bay.
NAMED = 20
#: First line of a file without a telling suffix: TOML or YAML. Anything else is Ansible's INI.
TOML, YAML = re.compile(r"\[\[ *bay *\]\]|bay *="), re.compile(r"---|[\w.-]+: *(#|$)|\{")


@frozen
class BayRequest:
    """A bay as requested on the command line or in an inventory: a machine with a set of drives."""

    #: Matches ``device_address.NAME``; unique in a run, compared without case.
    name: str
    devices: Devices
    #: Labels of the site, e.g. rack and lot.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Path of a drive, or a pattern of paths → label of the slot.
    slots: Mapping[str, str] = field(default_factory=dict)
    #: Replaces ``--ssd-ssh-config``.
    ssh_config: str | None = None
    #: Number of drives that the bay must have; None: no number in the inventory.
    expect: int | None = None
    #: Replace ``--ssd-smart-type``.
    smart_types: tuple[SmartType, ...] = ()


class InventoryDocument(Strict):
    bay: Annotated[list[BayTable], Field(max_length=MOST_BAYS)]


@usage_error(toml.DocumentError, of="--ssd-bays")
def load(path: Path) -> tuple[BayRequest, ...]:
    """Read the bays of a file; raise ``pytest.UsageError`` with all errors."""
    if path.exists() and not path.is_file():
        raise toml.DocumentError(path.name, ["is not a regular file; a run reads its inventory more than once"])
    written = toml.text(path, "")
    kind = kind_of(path.name, written)
    if kind == "toml":
        found = [(f"bay[{number}]", table) for number, table in enumerate(_tables(path.name, written))]
    else:
        found = ansible.tables(path, written, kind)
    bays = [(where, _asked(path, table)) for where, table in found]
    if errors := [*_too_many(len(bays)), *_no_files(bays), *_twice(bays)]:
        raise toml.DocumentError(path.name, errors)
    return tuple(_numbered(bay for _, bay in bays))


def _numbered(bays: Iterable[BayRequest]) -> Iterator[BayRequest]:
    """Give the drives of each lab numbers of their own, which do not depend on ``--ssd-bay``."""
    first = 1
    for asked in bays:
        yield replace(asked, devices=replace(asked.devices, first=first))
        first += asked.devices.lab or 0


def kind_of(name: str, written: str) -> str:
    """Return ``toml``, ``yaml`` or ``ini``, by the file's suffix, else by its first line that is not a comment."""
    if name.endswith(".toml"):
        return "toml"
    if name.endswith((".yaml", ".yml")):
        return "yaml"
    first = next((line for line in written.splitlines() if line.strip() and line.lstrip()[0] not in "#;"), "")
    if TOML.match(first):
        return "toml"
    return "yaml" if YAML.match(first) else "ini"


def _tables(name: str, written: str) -> Sequence[BayTable]:
    try:
        content = toml.loads(name, written)
        return toml.checked(InventoryDocument.model_validate, name, content).bay
    except toml.DocumentError as error:
        keys = [*BayTable.model_fields, "bay"]
        raise toml.DocumentError(name, [_with_guess(each, keys) for each in error.errors]) from None


def _with_guess(error: str, keys: Sequence[str]) -> str:
    unknown = re.fullmatch(r"(?:.*\.)?(\S+): unknown key", error)
    near = get_close_matches(unknown[1], keys, n=1) if unknown else ()
    return f"{error}; did you mean {near[0]}?" if near else error


def _asked(path: Path, table: BayTable) -> BayRequest:
    # Relative to the inventory. ssh itself does not expand ``~``.
    config = path.parent / Path(table.ssh_config).expanduser() if table.ssh_config else None
    devices = replace(table.devices, host=table.host)
    ssh_config = str(config.absolute()) if config else None
    return BayRequest(table.name, devices, table.labels, table.slots, ssh_config, table.expect, table.smart_type)


def _too_many(count: int) -> Iterable[str]:
    if not count:
        yield "names no bay"
    if count > MOST_BAYS:
        yield f"names {count} bays, and a run has at most {MOST_BAYS}; write several inventories"


def _no_files(bays: Iterable[tuple[str, BayRequest]]) -> Iterable[str]:
    for where, bay in bays:
        if bay.ssh_config and not Path(bay.ssh_config).is_file():
            yield f"{where}: there is no ssh configuration {bay.ssh_config}"


def _twice(bays: Iterable[tuple[str, BayRequest]]) -> Iterable[str]:
    """Yield an error for each name, and for each pattern on one machine, that two bays have.

    ``fleet.bays.apart`` detects different patterns that match the same drive.
    """
    names: dict[str, str] = {}
    patterns: dict[tuple[str, str], str] = {}
    for where, bay in bays:
        if (first := names.setdefault(bay.name.casefold(), where)) != where:
            yield f"{where}: has the name {bay.name}, as {first} has; names are compared without case"
        for pattern in dict.fromkeys(bay.devices.patterns):
            if (first := patterns.setdefault((bay.devices.computer, pattern), where)) != where:
                yield f"{where}: {pattern} of {bay.devices.machine} is already in {first}; a drive belongs to one bay"


def asked(config: pytest.Config) -> tuple[BayRequest, ...]:
    """Return the bays of the command line; none if it names no drives. Raises ``pytest.UsageError``."""
    given = config.getoption("ssd_devices")
    selected = config.getoption("ssd_bay")
    if given and config.getoption("ssd_bays") is not None:
        raise pytest.UsageError("--ssd-bays and --ssd-devices both name drives: give only one of them")
    if given:
        found = _of_machines([parse_devices(text) for text in given])
    elif file := _file(config):
        found = load(file)
    else:
        return ()
    return select(found, selected) if selected else found


def count(config: pytest.Config) -> int:
    """Return the number of bays of the command line: 1 if it names none or is wrong. Never raises.

    For xdist, which asks before pytest_configure; the start of the run reports errors.
    """
    try:
        return len(asked(config)) or 1
    except Exception:  # the start of the run raises it again, where pytest reports it
        return 1


def _file(config: pytest.Config) -> Path | None:
    """Return the inventory; the configuration file's only together with ``--ssd-bay``.

    A plain ``pytest`` in the same folder must not connect to every machine of a site.
    """
    option = config.getoption("ssd_bays")
    if option:
        return Path(config.invocation_params.dir, Path(option).expanduser())
    if config.getoption("ssd_bay") and (ini := config.getini("ssd_bays")):
        return Path(config.rootpath, Path(ini).expanduser())
    return None


def _of_machines(given: Sequence[Devices]) -> tuple[BayRequest, ...]:
    found = pools(given)
    names = bay_names(each.machine for each in found)
    return tuple(BayRequest(name, devices) for name, devices in zip(names, found, strict=True))


def select(bays: Sequence[BayRequest], given: Sequence[str]) -> tuple[BayRequest, ...]:
    """Return the bays that ``--ssd-bay`` names, in the order of ``bays``; ``pytest.UsageError`` for an unknown name."""
    wanted = [part.strip() for text in given for part in text.split(",")]
    for each in wanted:
        if not any(_fits(bay, each) for bay in bays):
            raise pytest.UsageError(f"--ssd-bay={each}: no bay has this name; {_there_are(bays, each)}")
    return tuple(bay for bay in bays if any(_fits(bay, each) for each in wanted))


def _fits(bay: BayRequest, pattern: str) -> bool:
    return fnmatchcase(bay.name.casefold(), pattern.casefold())


def _there_are(bays: Sequence[BayRequest], missed: str) -> str:
    names = [bay.name for bay in bays]
    near = get_close_matches(missed, names, n=1)
    guess = f"; did you mean {near[0]}?" if near and len(names) > 1 else ""
    return safe_text.line(f"there are {named(names, NAMED)}{guess}", 2000)
