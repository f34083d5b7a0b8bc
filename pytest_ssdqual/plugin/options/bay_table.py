"""One bay as an inventory writes it: the keys, and what their values may be."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, PlainValidator, model_validator

from pytest_ssdqual.plugin.options import device_address, smart_type
from pytest_ssdqual.plugin.options.device_address import Devices
from pytest_ssdqual.plugin.options.smart_type import SmartType
from pytest_ssdqual.plugin.options.values import MOST_DRIVES
from pytest_ssdqual.qual.spec.toml import Name, Strict

#: Labels are columns of tables: the key is the heading, the value a cell.
KEY, LONGEST_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}"), 200
MOST_LABELS, MOST_SLOTS, MOST_PATTERNS = 50, 1000, 1000


def bay_name(text: str) -> str:
    """Return the name; raise ``ValueError`` if it cannot be a folder and a part of a test's id."""
    if not device_address.NAME.fullmatch(text):
        raise ValueError(
            f"{text!r} is not a valid bay name: write up to {device_address.LONGEST_NAME} letters, digits, _, . and -, "
            "the first a letter or a digit"
        )
    return text


def which_devices(given: object) -> Devices:
    """Parse ``"lab:4"``, ``"/dev/sdb,/dev/sdc"`` or a list of patterns, without a host; else raise ``ValueError``."""
    if isinstance(given, str):
        found = device_address.devices(given)
        if found.host:
            raise ValueError(f"{given!r} names a host; write it as host")
        if found.lab is None and not found.patterns:
            raise ValueError("names no drives")
        return found
    patterns = given if isinstance(given, list) else None
    if not patterns or not all(isinstance(each, str) and each.startswith("/") for each in patterns):
        raise ValueError('write a list of patterns that begin with /dev/, or "lab:N"')
    if len(patterns) > MOST_PATTERNS:
        raise ValueError(f"has more than {MOST_PATTERNS} patterns")
    return Devices(patterns=tuple(patterns))


def which_types(given: object) -> tuple[SmartType, ...]:
    """Parse ``"megaraid,4"`` or a list of ``"PATTERN=TYPE"``, as ``--ssd-smart-type``; else raise ``ValueError``."""
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or len(texts) > MOST_SLOTS or not all(isinstance(each, str) for each in texts):
        raise ValueError('write a type of smartctl, such as "sat", or a list such as ["/dev/sdb=megaraid,4"]')
    return smart_type.parse(texts)


def _key(text: str) -> str:
    if not KEY.fullmatch(text):
        raise ValueError(f"{text!r} is not a valid label: write letters, digits, _, . and -, the first a letter")
    return text


def _label(text: str) -> str:
    if not text.strip() or len(text) > LONGEST_LABEL or not text.isprintable():
        raise ValueError(f"must be 1 to {LONGEST_LABEL} printable characters on one line")
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
    smart_type: Annotated[tuple[SmartType, ...], PlainValidator(which_types)] = ()

    @model_validator(mode="after")
    def _lab_is_here(self) -> Self:
        if self.devices.lab is not None and (self.host or self.ssh_config):
            raise ValueError("a lab is a VM of this computer: leave out host and ssh_config")
        if self.ssh_config and not self.host:
            raise ValueError("ssh_config without a host: drives of this computer need no ssh")
        return self
