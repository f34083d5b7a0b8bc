"""The next step after a run: what to do about its worst outcome, and a run by a protocol for acceptance; pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.spec import protocol as protocols
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.run_summary.fitness import INTERRUPTED, Fitness
from pytest_ssdqual.report.run_summary.run_view import RunView
from pytest_ssdqual.report.view import subject

#: Serial numbers that need no quotes in a pattern; udev writes other characters differently.
PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
#: Links to drives by serial number, which stay when a drive moves to another slot.
LINK = "/dev/disk/by-id/*"
LOCAL, LAB = "localhost", "lab"


@frozen
class Step:
    """A sentence, and the command or option at its end; empty if there is none."""

    text: str
    command: str = ""


def next_steps(
    run: RunView, failed: Sequence[str], slow: Sequence[str], deviating: Sequence[str] = ()
) -> tuple[Step, ...]:
    """Return what to do next, at least one step; the drives are serial numbers, ``deviating`` at the inspection."""
    steps = list(_mend(run, failed, slow))
    if deviating:
        text = f"Send {_placed(run, deviating)} back, or correct the table inspection of the spec if that is wrong."
        steps = [Step(text), *(steps if failed or slow else ())]
    noted = []
    if run.changed and not steps:
        drives = [run.manifest.serials.get(change.drive) or change.drive for change in run.changed]
        noted = [Step(f"Look at what was found about {_placed(run, drives)}, which the verdict does not count.")]
    if run.manifest.is_readable and not run.manifest.acceptance:
        steps.append(Step("Run it again with a protocol for acceptance:", f"--ssd-protocol={for_acceptance()}"))
    return (*noted, *(steps or [_conclude(run)]))


@cache
def for_acceptance() -> str:
    """Return the shipped protocol for acceptance that judges a run as one experiment, else the first one."""
    found = [each for each in map(protocols.load, protocols.shipped()) if each.acceptance]
    return min(found, key=lambda each: each.visits is None).name


def advice(run: RunView) -> str:
    """Return the remedy of the largest group of promises that a cause other than a drive limits; empty without one."""
    return next((each.advice for each in run.causes if each.advice), "")


def _mend(run: RunView, failed: Sequence[str], slow: Sequence[str]) -> Iterator[Step]:
    """Yield what removes the cause of the outcome; nothing if only the protocol or a good end is left to talk about."""
    counts = run.verdict.counts
    if failed:
        yield Step(
            f"Replace {_placed(run, failed)}, or judge {'it' if len(failed) == 1 else 'them'} alone in another slot:",
            _alone(run, failed),
        )
    if slow:
        yield Step(f"Judge {_placed(run, slow)} alone, then in another slot:", _alone(run, slow))
    if remedy := advice(run):
        yield Step(f"{remedy[0].upper()}{remedy[1:]}.{' Then run it again.' if run.verdict.acceptance else ''}")
    if run.left_out:
        yield Step(
            f"Remove what left {_placed(run, tuple(run.left_out))} out (of a slow link: check seat, slot and cable), "
            "and run it again."
        )
    if failed or slow or remedy:
        return
    resume = f"--ssd-resume={(_fleet(run) or run.folder).name}"
    if run.verdict.fitness is Fitness.NOT_FIT and not counts.failed:
        yield Step("Look at the health of the drives that got worse, below, and replace them.")
    elif run.verdict.fitness is Fitness.NOT_FIT:
        yield Step("Read the failed promises below, and measure them again: -k takes the names of their tests.")
    elif not run.manifest.ended or run.manifest.exit_status == INTERRUPTED:
        yield Step("Resume the run with the same options and", resume)
    elif run.budget and counts.errors and all("budget" in each.message for each in run.errors):
        yield Step(
            "Resume the run with the same options and a longer budget, which is for all of its sessions together:",
            f"{resume} --ssd-budget=…",
        )
    elif counts.errors:
        yield Step("Remove the cause of the first error below, and run these tests again.")
    elif counts.inconclusive and run.verdict.acceptance and not run.left_out:
        yield Step("Measure the inconclusive promises longer, in a protocol of your own; their sentences are below.")
    elif run.verdict.coverage.missing:
        yield Step(
            "Give these promises a limit in a spec, or their arrays enough drives; leave their tests out; or list the "
            "claims that must be judged:",
            "-o ssd_required_claims=…",
        )
    elif not counts.promises:
        yield Step("Run a suite that judges promises, by a spec that makes some.")


def _conclude(run: RunView) -> Step:
    """Return the step after a run that left nothing to mend."""
    if run.verdict.fitness is Fitness.FIT and run.verdict.acceptance:
        found = _fleet(run)
        name = f"{found.name}/{fleet.BAYS}/{run.folder.name}" if found else run.folder.name
        return Step(
            "Keep the run folder as a baseline, and write the certificate:",
            f"ssdqual certificate {name} -o certificate.pdf",
        )
    return Step("Read below what the run did not decide, and run those tests again.")


def _fleet(run: RunView) -> Path | None:
    """Return the folder of all bays if the run is one of several bays; commands find a run by that name."""
    return fleet.fleet_of(run.folder)


def _alone(run: RunView, serials: Sequence[str]) -> str:
    """Return the command that judges these drives one by one; the options of the run are to be added."""
    where = "…"
    for bay in run.manifest.bays:
        found, machine = {drive.serial for drive in bay.drives}, bay.machine
        if machine != LAB and found.issuperset(serials) and all(map(PLAIN.fullmatch, serials)):
            pattern = ",".join(f"{LINK}{serial}" for serial in serials[: subject.MOST_NAMED])
            where = shlex.quote(pattern if machine in ("", LOCAL) else f"{machine}:{pattern}")
    return f"ssdqual run drive --devices={where}"


def _placed(run: RunView, serials: Sequence[str]) -> str:
    """Return the drives as in a sentence, a single one with its device name."""
    path = next((drive.path for drive in run.manifest.drives if [drive.name] == list(serials)), "")
    return f"{subject.named_drives(serials)}{path and f' at {path}'}"
