"""Workloads that simulated drives are bad at, so that a search has something to find.

``SIMULATED_WEAK`` is conditions that must hold together, on properties of the workload or on the number of fio's
process (``run``): ``largest_bytes>=65536 offset_bytes>0 sync>0``. Then the drives have a quarter of their speed, as a
number below one after ``=`` says otherwise: ``run==7 speed=0.5``.
"""

from __future__ import annotations

import operator
import os
import re
from dataclasses import dataclass

from pytest_ssdqual.qual.workload.workload import Workload

OPERATORS = {">=": operator.ge, "<=": operator.le, "==": operator.eq, ">": operator.gt, "<": operator.lt}
CONDITION = re.compile(r"(?P<name>[a-z_]+)(?P<operator>>=|<=|==|>|<)(?P<value>[\d.]+)")


@dataclass(frozen=True)
class Weakness:
    conditions: tuple[str, ...] = ()
    speed: float = 0.25

    @classmethod
    def of_environment(cls) -> Weakness:
        given = os.environ.get("SIMULATED_WEAK", "").split()
        speeds = [float(each.removeprefix("speed=")) for each in given if each.startswith("speed=")]
        conditions = tuple(each for each in given if not each.startswith("speed="))
        return cls(conditions, *speeds)

    def share(self, workload: Workload, run: int) -> float:
        """Of the drives' speed under this workload."""
        weak = self.conditions and all(_holds(each, workload, run) for each in self.conditions)
        return self.speed if weak else 1.0


def _holds(condition: str, workload: Workload, run: int) -> bool:
    found = CONDITION.fullmatch(condition)
    if found is None:
        raise ValueError(f"{condition!r} is no condition")
    value = run if found["name"] == "run" else float(getattr(workload, found["name"]))
    return bool(OPERATORS[found["operator"]](value, float(found["value"])))
