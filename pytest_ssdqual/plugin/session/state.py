"""The state of one bay's run: its plan, its machine and its manifest, from configuration to the last record."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import NoReturn

import pytest

from pytest_ssdqual.plugin.bay.bay import connected
from pytest_ssdqual.plugin.judging.attributor import Attributor
from pytest_ssdqual.plugin.judging.chain import Chain
from pytest_ssdqual.plugin.judging.siblings import Siblings
from pytest_ssdqual.plugin.plan import budget, forecast, order, stopping, unpromised
from pytest_ssdqual.plugin.plan.budget import KeptBudget
from pytest_ssdqual.plugin.plan.order import Steps
from pytest_ssdqual.plugin.plan.step_prices import Prices
from pytest_ssdqual.plugin.plan.stopping import ClaimsByMeasurement, Promises
from pytest_ssdqual.plugin.plan.unpromised import Unpromised
from pytest_ssdqual.plugin.session.qualification import Qualification
from pytest_ssdqual.plugin.session.stop import unless_lost
from pytest_ssdqual.qual.measured.environment import SharedLinks
from pytest_ssdqual.qual.progress_events import Begun, Looked, News
from pytest_ssdqual.qual.records import shallow
from pytest_ssdqual.qual.spec import protocol as protocols
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.qual.verdict.multiplicity import ErrorControl
from pytest_ssdqual.report.fleet.folder import called
from pytest_ssdqual.report.run_folder.journal import Journal, JournalError
from pytest_ssdqual.report.run_folder.manifest import Manifest, WorsenedDrive, keep_health
from pytest_ssdqual.report.terminal.plan import PrintedPlan
from pytest_ssdqual.report.terminal.progress import PLAIN_PERIOD_S
from pytest_ssdqual.rig.campaign.campaign import Campaign
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignPlan
from pytest_ssdqual.rig.campaign.result_cache import ResultCache
from pytest_ssdqual.rig.drives.failed import DriveFailures
from pytest_ssdqual.rig.guard import shared_paths
from pytest_ssdqual.rig.guard.cache_changes import WriteCaches
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.guard.lease import Note, Terms
from pytest_ssdqual.rig.health import health
from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.machine import RigError
from pytest_ssdqual.rig.md import driver
from pytest_ssdqual.rig.measure.session import LoadChoice, Progress, Setup, unlimited
from pytest_ssdqual.rig.observe.live_stats import Live


@dataclass
class BayRun:
    """State of one bay's run; see the module."""

    qualification: Qualification
    #: What the run opened.
    stack: ExitStack
    #: Connection to the machine; None on a worker, which opens its own for the campaign.
    channel: Channel | None = None
    #: Period of live statistics, by the fastest observer.
    glance_s: float = PLAIN_PERIOD_S
    manifest: Manifest | None = None
    #: The plan of the tests that will run.
    steps: Steps = ()
    #: What takes time that the plan has not.
    unplanned: tuple[str, ...] = ()
    #: The plan of the same tests by another protocol.
    steps_by: Callable[[Protocol], Steps] = lambda protocol: ()
    #: The tests without a limit.
    unpromised: Unpromised = field(default_factory=Unpromised)
    #: Claims that all tests declare for each measurement, and those of them that the run measures for.
    declared: ClaimsByMeasurement = field(default_factory=dict)
    asked: ClaimsByMeasurement = field(default_factory=dict)
    #: The budget that the run keeps to; None without one.
    budget: KeptBudget | None = None
    #: Number of claims that the run planned when it began.
    claims: int = 1
    _campaign: Campaign | None = None
    #: Why this bay of several cannot measure or record any more; empty if it can.
    lost: str = ""
    #: Drives that failed, also in earlier sessions, and the health of all when the campaign began.
    failures: DriveFailures = field(default_factory=DriveFailures)
    #: Ids of the tests in which drives failed, also in earlier sessions, by serial number.
    failed_in: dict[str, str] = field(default_factory=dict)
    #: Serial numbers of the drives whose failure a test of this session has reported.
    reported: set[str] = field(default_factory=set)

    @property
    def family(self) -> ErrorControl:
        """Error control of the claims that are judged together."""
        return ErrorControl(self.claims, self.qualification.protocol.verdict.family)

    @property
    def journal(self) -> Journal:
        """The journal of a run that measures."""
        if self.qualification.journal is None:
            raise RigError("a run with --collect-only measures nothing")
        return self.qualification.journal

    def is_unreported(self, serial: str, test: str) -> bool:
        """Return True if it is up to this test to report that the drive failed.

        In a resumed run that is the test that reported it before.
        """
        return serial not in self.reported and self.failed_in.get(serial, test) == test

    def leave_out_unpromised(self, items: Sequence[pytest.Item]) -> None:
        """Find the tests without a limit, and skip those that nothing is measured for."""
        found = self.qualification
        self.declared = stopping.asked(items)
        self.unpromised = unpromised.find(
            items, found.spec, has_baseline=found.baseline is not None,
            measures_all=found.settings.measure_unpromised, has_members=self._has_members,
        )  # fmt: skip
        for item, why in self.unpromised.left_out.items():
            item.add_marker(pytest.mark.skip(reason=why))

    def plan(self, items: Sequence[pytest.Item]) -> None:
        """Plan the measurements of the tests that will run."""
        found = self.qualification
        limits = [drive.queue_limit for drive in found.bay.drives if drive.queue_limit is not None]
        deepest, members = min(limits, default=None), found.settings.members
        self.steps_by = lambda protocol: order.plan(items, found.spec, protocol, deepest, members=members)
        self.steps = self.steps_by(found.protocol)
        self.asked = stopping.asked(items, self.unpromised.wanted)
        self.unplanned = order.unplanned(items)
        past = found.resumed.past if found.resumed else None
        if found.budget_s is not None:
            self._keep_to(found.budget_s, past.spent_s if past else 0.0)

    def _keep_to(self, budget_s: float, spent_s: float) -> None:
        """Fit the plan into what is left of the budget; the time of earlier sessions is spent."""
        found = self.qualification
        missing = order.missing(self.steps, found.memory)
        prices = Prices(found.protocol, found.spec, self._drive_bytes, stopping.tails(self.asked, found.spec))
        fitted = budget.fit(max(0.0, budget_s - spent_s), missing, prices)
        is_worker = self.channel is None and found.journal is not None
        if not (fitted.measured or found.resumed or is_worker) and fitted.left_out:
            self._refuse_budget(budget_s, missing, prices)
        fitted = replace(fitted, seconds=budget_s)
        left_out = set(fitted.left_out)
        self.steps = tuple(each for each in self.steps if each not in left_out)
        over_s = time.monotonic() + budget_s - spent_s
        of_budget = found.resumed.past.story.of(budget.SPENT) if found.resumed else ()
        ended = {str(each.facts.get("step")) for each in of_budget}
        note = found.journal.note if found.journal else budget.note_nothing
        self.budget = KeptBudget(fitted, prices, time.monotonic, over_s, ended, note)
        note("budget", spent_s=spent_s, **fitted.to_record())

    def _refuse_budget(self, budget_s: float, missing: Steps, prices: Prices) -> NoReturn:
        least_s = budget.least_of(missing, prices)
        unit_s = 60 if least_s < 3600 else 360  # a time that its text does not round down
        least = format_duration(unit_s * math.ceil(least_s / unit_s))
        raise pytest.UsageError(
            f"--ssd-budget={format_duration(budget_s)} suffices for none of {len(missing)} measurements: the shortest "
            f"one needs {least}, with what has to be done before it"
        )

    @cached_property
    def forecast(self) -> PrintedPlan | None:
        """The plan with its costs; None if there is nothing to measure."""
        found, kept = self.qualification, self.budget
        wanted = order.missing(self.steps, found.memory)
        if not wanted and not (kept and kept.fitted.left_out):
            return None
        printed = self._predict(wanted, found.protocol)
        return replace(
            printed,
            assumptions=(*printed.assumptions, *self.unplanned),
            is_expected=found.expected is not None,
            unused=stopping.unused(self.declared, found.spec, found.sources),
            without_limit=self.unpromised.sentence,
            budget=tuple(kept.fitted.lines()) if kept else (),
        )

    def comparison(self) -> tuple[PrintedPlan, ...]:
        """Return the plans of the same tests by each shipped protocol for acceptance, and by the run's own."""
        found = self.qualification
        shipped = (protocols.load(name) for name in protocols.shipped())
        of_acceptance = {each.name: each for each in shipped if each.acceptance} | {found.protocol.name: found.protocol}
        return tuple(self._predict(self.steps_by(each), each) for each in of_acceptance.values())

    def _predict(self, steps: Steps, protocol: Protocol) -> PrintedPlan:
        found = self.qualification
        tails = stopping.tails(self.asked, found.spec)
        return forecast.predict(steps, protocol, found.spec, len(found.bay.drives), self._drive_bytes, tails)

    @property
    def _drive_bytes(self) -> int:
        return min(drive.size_bytes for drive in self.qualification.bay.drives)

    @property
    def _has_members(self) -> bool:
        """Whether the bare drives are measured before arrays."""
        found = self.qualification
        return found.settings.members and found.protocol.members.window_s > 0

    def begun_campaign(self) -> Campaign:
        """Return the campaign, which has begun before anything is judged."""
        if self._campaign is None:
            raise RigError("nothing was measured")
        return self._campaign

    @cached_property
    def attributor(self) -> Attributor | None:
        """What names the causes of shortfalls; None if the bare drives are not measured."""
        if not self.qualification.settings.members:
            return None
        return Attributor(self.begun_campaign, self.qualification.protocol.striping)

    @cached_property
    def chain(self) -> Chain | None:
        """The limits of arrays by their members; None if the bare drives are not measured before arrays."""
        if self.attributor is None or not self._has_members:
            return None
        return Chain(self.qualification.spec, self.attributor, Siblings(self.begun_campaign), self.family)

    def connected(self, stack: ExitStack) -> Channel:
        """Return the connection to the machine; a worker opens its own, which ``stack`` closes."""
        if self.channel:
            return self.channel
        bay = self.qualification.bay
        return connected(bay.target, stack, self.journal.transcribe(bay.machine))

    @contextmanager
    def campaign(self, take: Callable[[News], None]) -> Iterator[Campaign]:
        """Lease the drives and read their health; release them when the block is left. ``take`` gets all progress."""
        if self.qualification.settings.read_only:
            raise RigError("a run with --ssd-read-only measures nothing, and takes no lease")
        found = self.qualification
        with ExitStack() as stack:
            channel = self.connected(stack)
            driver.require(channel, {step.geometry.level for step in self.steps})
            live = Live(take, getattr(channel, "line_process", None), self.glance_s)
            stack.callback(live.close)
            setup = self._setup(channel, stack, live, take)
            self._campaign = campaign = Campaign(
                setup,
                CampaignPlan.of(self.steps, found.protocol),
                ResultCache(self.journal.path, earlier=found.memory),
                tails=stopping.tails(self.asked, found.spec),
            )
            campaign.enough = self._promises()
            if self.budget:
                campaign.allowed = self.budget.require
                campaign.enough = self.budget.until_spent(campaign.enough)
            self._note_shared_links(channel)
            stack.callback(self._health_after, channel, setup)
            stack.callback(unless_lost, campaign.close)
            stack.callback(self._note_unfinished, channel)
            yield campaign

    def _note_shared_links(self, channel: Channel) -> None:
        """Record the links that drives share; without them the report cannot say how much of these was used."""
        try:
            links = shared_paths.links(shared_paths.paths(channel, self.qualification.bay.drives))
        except RigError as error:
            if error.ends_run:
                raise
            return
        self.journal.note("shared_links", **shallow(SharedLinks(links)))

    def _promises(self) -> Promises:
        """Return what decides whether a point of the campaign needs another visit."""
        found = self.qualification
        # Of a resumed run a prediction might have to measure a bare drive again, while something else is measured.
        attributor = None if found.resumed else self.attributor
        chain = None if found.resumed else self.chain
        predicted = attributor.expected if attributor else stopping.as_measured
        limit = chain.of_spec if chain else found.spec.limit
        return Promises(found.spec, found.protocol, self.asked, self.family, predicted, limit)

    def _setup(self, channel: Channel, stack: ExitStack, live: Live, take: Callable[[News], None]) -> Setup:
        """Lease the drives, and return what all measurements need; ``stack`` gives the drives back as they were."""
        found = self.qualification

        def progress(what: str, seconds: float) -> None:
            take(Begun(what, seconds))

        terms, unchecked = self._terms(progress), found.settings.unchecked
        held = HeldDrives(channel, found.bay.drives, found.bay.contents, terms, unchecked)
        stack.callback(unless_lost, held.release)
        self.failures = self._failures(channel)
        caches = self._write_caches(channel, held)
        stack.callback(unless_lost, partial(_restore, caches, channel))
        return Setup(
            machine=channel,
            held=held,
            protocol=found.protocol,
            logbook=self.journal,
            machine_id=found.bay.facts.get("machine_id", ""),
            progress=progress,
            looked=lambda sentence: take(Looked(sentence)),
            live=live,
            failures=self.failures,
            caches=caches,
            load=LoadChoice(found.resumed.load if found.resumed else None),
            unit_bytes=found.spec.unit_bytes,
            promises_heat=found.spec.promises_heat,
            trace=found.settings.trace,
            counts_media=partial(found.spec.is_promised, Claim.WRITE_AMPLIFICATION),
            left_s=self.budget.left_s if self.budget else unlimited,
        )

    def _write_caches(self, channel: Channel, held: HeldDrives) -> WriteCaches:
        found = self.qualification
        return WriteCaches(
            channel, held, found.protocol.write_cache, self.journal.note, found.bay.facts.get("machine_id", ""),
            found.resumed.write_caches if found.resumed else {},
        )  # fmt: skip

    def _terms(self, progress: Progress) -> Terms:
        """Return the terms of the lease."""
        note = Note.of_this_process(called(self.journal.path), self.forecast.seconds if self.forecast else None)
        wait_s = self.qualification.settings.wait_s
        return Terms(note, wait_s, waiting=lambda reason, left_s: progress(f"waiting: {reason}", left_s))

    def _failures(self, channel: Channel) -> DriveFailures:
        """Return the failed drives of earlier sessions, with the health that all drives have now."""
        found = self.qualification
        earlier = dict(found.resumed.past.failed_drives) if found.resumed else {}
        self.failed_in |= found.resumed.past.failed_in if found.resumed else {}
        before = self._health(channel, "before")
        return DriveFailures(before, earlier, limits=lambda serial: found.spec.of(serial).health)

    def _health(self, channel: Channel, when: str) -> Mapping[str, health.DriveHealth]:
        drives = self.qualification.bay.drives
        read = health.read(channel, drives)
        for drive in drives:
            if drive.path in read:
                keep_health(self.journal, drive, read[drive.path], when)
        return read

    def _note_unfinished(self, channel: Channel) -> None:
        """Record processes that continue on the machine after this session."""
        for sentence in channel.unfinished():
            self.journal.note("still_running", sentence=sentence)

    def _health_after(self, channel: Channel, setup: Setup) -> None:
        """Record the drives' health, and each drive that failed or whose health got worse."""
        # A drive that erases itself answers no command until it is done.
        if channel.unfinished():
            return
        failures, paths = setup.failures, [drive.path for drive in setup.held.drives]
        for drive in setup.held.drives:  # by the names that they have now
            failed, before = failures.failed.get(drive.name), failures.before.get(drive.path)
            if failed and paths.count(drive.path) > 1:
                before = None  # it did not come back after a power cut, and another drive has its name
            repaired = failures.repairs(drive.name)
            defects = [failed.sentence] if failed else []
            findings = [*defects, *(sentence for sentence, _ in repaired)]
            defects += [sentence for sentence, is_defect in repaired if is_defect]
            try:
                if before is not None:
                    after = health.read(channel, [drive])[drive.path]
                    keep_health(self.journal, drive, after, "after")
                    changes = list(failures.changes(drive, before, after))
                    findings += [change for change, _ in changes]
                    defects += [change for change, is_defect in changes if is_defect]
            except JournalError:
                raise  # evidence is missing
            except RigError as error:
                if error.ends_run:
                    return  # a lost machine answers nothing; its error is raised already
                findings.append(str(error))
            if findings:
                worsened = WorsenedDrive(drive.identity, drive.describe(), tuple(findings), tuple(defects))
                self.journal.note("drive_worsened", **shallow(worsened))


def _restore(caches: WriteCaches, channel: Channel) -> None:
    """Restore the write caches; a drive that erases itself answers no command until it is done."""
    caches.restore("; ".join(channel.unfinished()))
