"""The decorator of values: frozen dataclasses with slots."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

ClassT = TypeVar("ClassT")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[ClassT]) -> type[ClassT]:
    """Make the class a dataclass that cannot be changed, and that has no attributes beside its fields."""
    return dataclass(frozen=True, slots=True)(cls)
