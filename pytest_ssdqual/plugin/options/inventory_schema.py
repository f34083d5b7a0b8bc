"""The shape of an inventory, for pydantic. Imported only when one is read: pydantic is slow to load."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, PlainValidator, model_validator

from pytest_ssdqual.plugin.options import device_address
from pytest_ssdqual.plugin.options.device_address import Devices
from pytest_ssdqual.plugin.options.inventory import MOST_BAYS
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
