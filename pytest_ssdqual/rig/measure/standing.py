"""What is built on a station now, and what was done to it since."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure.array_lifecycle import Fill
from pytest_ssdqual.rig.resume.checkpoint import Conditioned


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
