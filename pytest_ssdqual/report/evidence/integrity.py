"""Evidence of data: that integrity tests and rebuilds kept them, and that bare drives return them; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_ssdqual.qual.integrity import power_loss
from pytest_ssdqual.qual.integrity.power_loss import DriveLosses, LossKind
from pytest_ssdqual.qual.integrity.read_back import ReadBack
from pytest_ssdqual.qual.integrity.reference_model import Survival
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.report.evidence import health
from pytest_ssdqual.report.evidence.evidence import About, Evidence

CLAIM = "lost_blocks"
SOURCE = "what was acknowledged is what is read (docs/integrity.md)"
#: Claim about an array that was rebuilt under load, and about the data of bare drives.
REBUILT, READ_BACK = "damage_after_rebuild", "read_back"
#: Claim about bare drives whose power was cut.
POWER_CUTS = "power_cut_losses"


def of_survival(survival: Survival, raw: tuple[str, ...] = ()) -> Evidence:
    """Return the evidence that no block was lost; its figure is the number of findings."""
    evidence = health.none_allowed(
        CLAIM, str(survival.geometry), "histories", len(survival.findings), survival.histories,
        source=SOURCE, sentence=repr(survival),
    )  # fmt: skip
    return replace(
        evidence,
        figures={
            "histories": survival.histories,
            "steps": survival.steps,
            "blocks_compared": survival.compared,
            "atomic_bytes": survival.atom_bytes,
            "duration_s": survival.seconds,
            "shortest_steps": len(survival.shortest.steps) if survival.shortest else None,
        },
        raw=raw,
        remarks=tuple(f"{survival.geometry}: {each}" for each in survival.remarks),
    )


def of_read_back(comparison: ReadBack, remarks: Sequence[str]) -> Evidence:
    """Return the evidence that drives return what was written to them; its figure is the number of drives that do not.

    ``remarks`` are about drives that are not judged.
    """
    findings = {drive.serial: drive.findings for drive in comparison.drives if drive.findings or not drive.doubt}
    uncompared = [drive for drive in comparison.drives if drive.usual_bytes_per_s is None and not drive.wrong]
    count = f"{len(uncompared)} of {len(comparison.drives)} drives"
    unseen = (f"{count}: their parts were not compared for slow ones, fio's reports are too few",) if uncompared else ()
    return health.counted(
        READ_BACK,
        str(comparison.geometry),
        health.LOAD,
        findings,
        sentence=repr(comparison),
        remarks=(*health.remarks_of(findings), *unseen, *remarks),
        source="what was written to a drive is what it returns (docs/integrity.md)",
        raw=(comparison.raw,),
        blames_drives=True,
    )


def of_rebuild(rebuild: Rebuild) -> Evidence:
    """Return the evidence that a rebuild damaged nothing.

    Its figure is md's number of mismatches, plus 1 if data was read back wrong.
    """
    evidence = health.none_allowed(
        REBUILT, str(rebuild.geometry), str(rebuild.foreground.workload), rebuild.mismatches + bool(rebuild.damage), 1,
        source="what was written before members failed is what is read after they were rebuilt",
        sentence=repr(rebuild.intact),
    )  # fmt: skip
    return replace(
        evidence,
        figures={"rebuild_s": rebuild.seconds, "mismatches": rebuild.mismatches},
        raw=tuple(run.raw for run in rebuild.foreground.runs),
        about=About.REBUILD,
    )


def of_power_cuts(losses: Sequence[DriveLosses], cuts: int, sentence: str) -> Evidence:
    """Return the evidence that drives keep their data in power cuts, of which ``cuts`` were judged.

    Its figure is the number of wrong writes, and of drives that did not come back.
    """
    bad = [drive for drive in losses if drive.findings]
    evidence = health.counted(
        POWER_CUTS,
        str(Geometry(RaidLevel.DRIVE, len(losses))),
        health.LOAD,
        {drive.serial: drive.findings for drive in losses},
        sentence=sentence,
        remarks=tuple(
            f"{drive.serial}: {drive.unflushed:,} acknowledged writes of 4 KiB that were not flushed are lost; the "
            "drive may do that: it has a volatile cache, and its spec promises no power_loss_protection"
            for drive in losses
            if drive.unflushed
        ),
        source="what was acknowledged and flushed survives a power cut (docs/integrity.md)",
        raw=tuple(name for drive in losses for name in drive.raw),
        blames_drives=True,
    )
    value = float(sum(drive.wrong.total() or 1 for drive in bad))
    figures = {f"{kind}_writes": float(sum(drive.wrong[kind] for drive in losses)) for kind in LossKind}
    bound = {} if bad else {"bound_percent": power_loss.bound_percent(cuts)}
    return replace(evidence, value=value, low=value, high=value, n=cuts, figures={**figures, **bound})
