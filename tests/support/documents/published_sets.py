"""Everything that the methods define, flat."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_ssdqual.qual.methods import intel_910, intel_s3500, snia, stec, toms_s3500, toms_s3700
from pytest_ssdqual.qual.workload.rounds import Rounds
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.qual.workload.workload_set import INTEL_RAID, WorkloadSet

METHODS = (intel_910, intel_s3500, snia, stec, toms_s3500, toms_s3700)
Value = Workload | WorkloadSet | Rounds


def _within(value: object) -> Iterator[Value]:
    if isinstance(value, tuple | list):
        for each in value:
            yield from _within(each)
    elif isinstance(value, WorkloadSet | Rounds):
        yield value
        yield from _within(value.workloads)
    elif isinstance(value, Workload):
        yield value


#: Values of constants, and those inside of them; some more than once.
EVERYTHING = [
    each for module in METHODS for name, value in vars(module).items() if name.isupper() for each in _within(value)
]
WORKLOADS = {*INTEL_RAID, *(each for each in EVERYTHING if isinstance(each, Workload))}
