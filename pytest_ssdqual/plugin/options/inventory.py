"""Which bays a run has: machines, each with a set of drives, from ``--ssd-devices`` or from an inventory.

An inventory of bays: a file of TOML, or one of Ansible's, read as a whole, with everything that is wrong at once.

The shape of an inventory, for pydantic. Imported only when one is read: pydantic is slow to load.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Self

import pytest
from pydantic import AfterValidator, Field, PlainValidator, model_validator

from pytest_ssdqual.plugin.options import device_address
from pytest_ssdqual.plugin.options.device_address import Devices, bay_names, parse_devices, pools
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.spec import toml
from pytest_ssdqual.qual.spec.toml import Name, Strict

#: Of a label: it stands in tables, as a column's head and as what is in the column.
KEY, LONGEST_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}"), 200
MOST_LABELS, MOST_SLOTS, MOST_PATTERNS = 50, 1000, 1000
#: Expected of one bay.
MOST_DRIVES = 10_000


def bay_name(text: str) -> str:
    """``ValueError`` for what cannot be a folder and a part of a test's id."""
    if not device_address.NAME.fullmatch(text):
        raise ValueError(
            f"{text!r} is no name of a bay: write up to {device_address.LONGEST_NAME} letters, digits, _, . and -, "
            "the first a letter or a digit"
        )
    return text


def which_devices(given: object) -> Devices:
    """``"lab:4"``, ``"/dev/sdb,/dev/sdc"`` or a list of patterns, without a host; ``ValueError`` for anything else."""
    if isinstance(given, str):
        found = device_address.devices(given)
        if found.host:
            raise ValueError(f"{given!r} names a host, which is given by itself")
        if found.lab is None and not found.patterns:
            raise ValueError("names no drives")
        return found
    patterns = given if isinstance(given, list) else None
    if not patterns or not all(isinstance(each, str) and each.startswith("/") for each in patterns):
        raise ValueError('write a list of patterns that begin with /dev/, or "lab:N"')
    if len(patterns) > MOST_PATTERNS:
        raise ValueError(f"has more than {MOST_PATTERNS} patterns")
    return Devices(patterns=tuple(patterns))


def _key(text: str) -> str:
    if not KEY.fullmatch(text):
        raise ValueError(f"{text!r} is no name of a label: write letters, digits, _, . and -, the first a letter")
    return text


def _label(text: str) -> str:
    if not text.strip() or len(text) > LONGEST_LABEL or not text.isprintable():
        raise ValueError(f"must be 1 to {LONGEST_LABEL} characters that can be printed on one line")
    return text


def _path(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError(f"{text!r} does not begin with /dev/")
    return text


Label = Annotated[str, AfterValidator(_label)]


class BayTable(Strict):
    name: Annotated[str, AfterValidator(bay_name)]
    host: Annotated[str, AfterValidator(device_address.host)] | None = None
    devices: Annotated[Devices, PlainValidator(which_devices)]
    slots: dict[Annotated[str, AfterValidator(_path)], Label] = Field(default_factory=dict, max_length=MOST_SLOTS)
    labels: dict[Annotated[str, AfterValidator(_key)], Label] = Field(default_factory=dict, max_length=MOST_LABELS)
    ssh_config: Name | None = None
    expect: Annotated[int, Field(ge=1, le=MOST_DRIVES)] | None = None

    @model_validator(mode="after")
    def _lab_is_here(self) -> Self:
        if self.devices.lab is not None and (self.host or self.ssh_config):
            raise ValueError("a lab is a VM of this computer: leave out host and ssh_config")
        if self.ssh_config and not self.host:
            raise ValueError("ssh_config without a host: drives of this computer are reached without ssh")
        return self


class InventoryDocument(Strict):
    bay: Annotated[list[BayTable], Field(max_length=MOST_BAYS)]


#: What a file begins with whose name does not tell: a table of ours, or YAML. Anything else is Ansible's INI.
TOML, YAML = re.compile(r"\[\[ *bay *\]\]|bay *="), re.compile(r"---|[\w.-]+: *(#|$)|\{")


class InventoryError(toml.DocumentError):
    """An inventory that cannot be used."""


def load(path: Path) -> tuple[BayAsked, ...]:
    """The bays of a file; ``pytest.UsageError`` with every error."""
    try:
        return read(path)
    except toml.DocumentError as error:
        raise pytest.UsageError(f"--ssd-bays: {error}") from None


def read(path: Path) -> tuple[BayAsked, ...]:
    """The bays of a file; ``DocumentError`` with every error."""
    if path.exists() and not path.is_file():
        raise InventoryError(path.name, ["is not a file, and an inventory is read more than once"])
    written = toml.text(path, "")
    kind = kind_of(path.name, written)
    if kind == "toml":
        found = [(f"bay[{number}]", table) for number, table in enumerate(_tables(path.name, written))]
    else:
        from pytest_ssdqual.plugin.options import ansible

        found = ansible.tables(path, written, kind)
    bays = [(where, _asked(path, table)) for where, table in found]
    if errors := [*_too_many(len(bays)), *_no_files(bays), *_twice(bays)]:
        raise InventoryError(path.name, errors)
    return tuple(_numbered(bay for _, bay in bays))


def _numbered(bays: Iterable[BayAsked]) -> Iterator[BayAsked]:
    """Each lab with drives of other numbers than those before it, which it keeps when it is chosen alone."""
    first = 1
    for asked in bays:
        yield replace(asked, devices=replace(asked.devices, first=first))
        first += asked.devices.lab or 0


def kind_of(name: str, written: str) -> str:
    """``toml``, ``yaml`` or ``ini``: by the file's suffix, else by its first line that is no comment."""
    if name.endswith(".toml"):
        return "toml"
    if name.endswith((".yaml", ".yml")):
        return "yaml"
    first = next((line for line in written.splitlines() if line.strip() and line.lstrip()[0] not in "#;"), "")
    return "toml" if TOML.match(first) else "yaml" if YAML.match(first) else "ini"


def _tables(name: str, written: str) -> Sequence[BayTable]:
    try:
        content = toml.loads(name, written, InventoryError)
        return toml.checked(InventoryDocument, name, content, InventoryError).bay
    except InventoryError as error:
        keys = [*BayTable.model_fields, "bay"]
        raise InventoryError(name, [_with_guess(each, keys) for each in error.errors]) from None


def _with_guess(error: str, keys: Sequence[str]) -> str:
    unknown = re.fullmatch(r"(?:.*\.)?(\S+): unknown key", error)
    near = get_close_matches(unknown[1], keys, n=1) if unknown else ()
    return f"{error}; did you mean {near[0]}?" if near else error


def _asked(path: Path, table: BayTable) -> BayAsked:
    # As a link on a page: beside the file that says it. Of ``~`` ssh itself knows nothing.
    config = path.parent / Path(table.ssh_config).expanduser() if table.ssh_config else None
    devices = replace(table.devices, host=table.host)
    ssh_config = str(config.absolute()) if config else None
    return BayAsked(table.name, devices, table.labels, table.slots, ssh_config, table.expect)


def _too_many(count: int) -> Iterable[str]:
    if not count:
        yield "names no bay"
    if count > MOST_BAYS:
        yield f"names {count} bays, and a run has at most {MOST_BAYS}; write several inventories"


def _no_files(bays: Iterable[tuple[str, BayAsked]]) -> Iterable[str]:
    for where, bay in bays:
        if bay.ssh_config and not Path(bay.ssh_config).is_file():
            yield f"{where}: there is no ssh configuration {bay.ssh_config}"


def _twice(bays: Iterable[tuple[str, BayAsked]]) -> Iterable[str]:
    """What two bays both have and only one may: a name, and a pattern on the same machine.

    That two patterns mean the same drive is seen when they are looked up.
    """
    names: dict[str, str] = {}
    patterns: dict[tuple[str, str], str] = {}
    for where, bay in bays:
        if (first := names.setdefault(bay.name.casefold(), where)) != where:
            yield f"{where}: is called {bay.name} as {first} is; case makes no difference"
        for pattern in dict.fromkeys(bay.devices.patterns):
            if (first := patterns.setdefault((bay.devices.computer, pattern), where)) != where:
                yield f"{where}: {pattern} of {bay.devices.machine} is in {first} already, and a drive is in one bay"


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
        found = load(file)
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
