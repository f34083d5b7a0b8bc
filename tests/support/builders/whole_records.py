"""What records have beside what a test says of them."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.protocol_rules import SteadyRule

OF_PROTOCOL = {"protocol": "snia", "acceptance": True}
UNSAID: Mapping[str, Mapping[str, object]] = {
    "measured": {**OF_PROTOCOL, "visited": None},
    "saturation": {
        **OF_PROTOCOL, "rule": plain(SteadyRule()), "gate_capacities": 0.0, "workload": "randwrite_4k_qd32",
    },
    "loop": {**OF_PROTOCOL, "reached": True, "after": [], "recoveries": []},
    "rebuild": {
        **OF_PROTOCOL, "seconds": 60.0, "resolution_s": 1.0, "bytes_per_member": 1, "rate_bytes_per_s": 1.0,
        "mismatches": 0, "damage": "", "intact": True, "members": [], "limits": {}, "raw": "fio/rebuild.json.gz",
    },
    "health": {
        "raw": "health/x.json", "passed": None, "temperature_c": None, "percentage_used": None,
        "critical_warning": None, "media_counts": {}, "power_on_hours": None, "data_written_bytes": None,
        "counters": {}, "media_errors": None,
    },
    "write_cache": {"name": "ACME 1", "wanted": "off"},
    "drive_worsened": {"drive": "S1", "name": "ACME 1", "findings": [], "defects": []},
    "environment": {
        "geometry": "raid5x3", "workload": "", "fio": "run", "raw": "", "checks": {}, "unknown": [],
        "objections": [], "kernel": None,
    },
    "searched": {
        "space": {}, "seed": "1", "began_with": [], "seconds": 1.0, "budget_s": 1.0, "confirming_s": 0.0,
        "suspects": [], "sentence": "",
    },
    "tests_planned": {"left_out": [], "promised": []},
}  # fmt: skip


def whole(kind: str, facts: Mapping[str, object]) -> dict[str, object]:
    """The facts of a record of this kind."""
    return {**UNSAID.get(kind, {}), **facts}
