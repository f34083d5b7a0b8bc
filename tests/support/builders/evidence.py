"""Evidence to report on."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from pytest_ssdqual.qual.measured.judgeable import Subject
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Claim, Limit
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.verdict.verdict import judge
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence.evidence import Evidence, Figures, of_verdict


def claimed(
    claim: Claim = Claim.P99_LATENCY,
    arrays: str = "raid5x4",
    workload: Workload | None = None,
    *,
    value: float = 812_000,
    low: float | None = None,
    high: float | None = None,
    bound: float = 500_000,
    figures: Figures = MappingProxyType({}),
    acceptance: bool = True,
) -> Evidence:
    geometries = tuple(map(Geometry.parse, arrays.split()))
    workload = workload or Workload("randread", "4k", 8)
    estimate = Estimate(value, value if low is None else low, value if high is None else high, 5, claim.unit)
    limit = Limit(claim.direction, bound, claim.unit, "acme.toml promise[3]")
    verdict = judge(claim, Subject(geometries, (workload,)), estimate, limit)
    protocol = "snia" if acceptance else "quick"
    raw = (f"fio/{arrays.split()[0]}-{workload}-run.json.gz",)
    return replace(of_verdict(verdict), protocol=protocol, acceptance=acceptance, figures=figures, raw=raw)
