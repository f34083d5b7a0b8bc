"""Evidence that an array's data survived, or did not; pure."""

from __future__ import annotations

from pytest_ssdqual.qual.integrity.result import Survival
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Figure, Finding

CLAIM = "lost_blocks"
SOURCE = "what was acknowledged is what is read (docs/integrity.md)"
#: Of an array that was rebuilt under load.
REBUILT = "damage_after_rebuild"


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


def of_rebuild(found: Rebuild, *, protocol: str, acceptance: bool) -> Evidence:
    """The claim that a rebuild damages nothing; its figure is md's mismatches, and 1 for what read back wrong."""
    wrong = float(found.mismatches + bool(found.damage))
    return Evidence(
        claim=REBUILT,
        geometries=(str(found.geometry),),
        workloads=(str(found.foreground.workload),),
        value=wrong,
        low=wrong,
        high=wrong,
        n=1,
        unit=Unit.COUNT,
        limit=0.0,
        direction=Direction.AT_MOST,
        source="what was written before members failed is what is read after they were rebuilt",
        outcome=Finding.PASS if found.intact else Finding.FAIL,
        margin_percent=0.0 if found.intact else -100.0,
        sentence=repr(found.intact),
        protocol=protocol,
        acceptance=acceptance,
        figures=(Figure("rebuild_s", found.seconds), Figure("mismatches", found.mismatches)),
        raw=tuple(run.raw for run in found.foreground.runs),
        about=About.REBUILD,
        is_reading=True,
    )
