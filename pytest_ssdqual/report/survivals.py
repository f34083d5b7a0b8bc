"""Evidence that an array's data survived, or did not; pure."""

from __future__ import annotations

from pytest_ssdqual.qual.claim import Direction
from pytest_ssdqual.qual.survival import Survival
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.evidence import Evidence
from pytest_ssdqual.report.part import Figure, Finding

CLAIM = "lost_blocks"
SOURCE = "what was acknowledged is what is read (docs/integrity.md)"


def of_survival(found: Survival, *, protocol: str, acceptance: bool, raw: tuple[str, ...] = ()) -> Evidence:
    """The claim that no block is lost; its figure is how many are, after the shortest history that loses any."""
    wrong = float(max(found.wrong, len(found.findings)))
    return Evidence(
        claim=CLAIM,
        geometries=(str(found.geometry),),
        workloads=("histories",),
        value=wrong,
        low=wrong,
        high=wrong,
        n=found.histories,
        unit=Unit.COUNT,
        limit=0.0,
        direction=Direction.AT_MOST,
        source=SOURCE,
        outcome=Finding.FAIL if found.findings else Finding.PASS,
        margin_percent=0.0 if found else -100.0,
        sentence=repr(found),
        protocol=protocol,
        acceptance=acceptance,
        figures=(
            Figure("histories", found.histories),
            Figure("steps", found.steps),
            Figure("blocks_compared", found.compared),
            Figure("atomic_bytes", found.atom_bytes),
            Figure("duration_s", found.seconds),
            Figure("shortest_steps", len(found.shortest.steps) if found.shortest else None),
        ),
        raw=raw,
        remarks=tuple(f"{found.geometry}: {each}" for each in found.remarks),
        is_reading=True,
    )
