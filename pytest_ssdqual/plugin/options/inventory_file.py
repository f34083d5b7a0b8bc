"""An inventory of bays: a file of TOML, or one of Ansible's, read as a whole, with everything that is wrong at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin.options.inventory import MOST_BAYS, BayAsked
from pytest_ssdqual.qual.spec import toml

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.options.inventory_schema import BayTable

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
        from pytest_ssdqual.plugin.options import ansible_hosts

        found = ansible_hosts.tables(path.name, written, kind)
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
    from pytest_ssdqual.plugin.options.inventory_schema import BayTable, InventoryDocument

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
