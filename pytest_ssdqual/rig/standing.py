"""What is built on a station now, and what was done to it since."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_ssdqual.qual.steady import SteadyState
from pytest_ssdqual.rig.assembly import Fill
from pytest_ssdqual.rig.md import Array
from pytest_ssdqual.rig.memory import Conditioned


@dataclass(slots=True)
class Standing:
    """What is built now, and the state it was brought into."""

    array: Array
    fill: Fill
    #: The class it is in the steady state of: True random, False sequential.
    conditioned: dict[bool, SteadyState | None] = field(default_factory=dict)
    #: What an earlier session conditioned it for; to be confirmed before anything is measured.
    inherited: Conditioned | None = None
    #: Something was done to it that no further measurement may build on.
    spent: bool = False
    #: That was a search, which may go on.
    searched: bool = False
