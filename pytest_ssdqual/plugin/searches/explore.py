"""The fixture ``ssd_explore``: searches the workloads near a plain one for one that breaks a promise.

hypothesis draws the workloads, and shrinks the first that looks broken; the rig measures each one shortly and once. The
simplest suspect is measured again by the protocol itself, and only that gives the verdict: see ``qual.explore.search``.
A search begins with the findings of earlier runs and stores its own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest

from pytest_ssdqual.plugin.judging.sla import Sla
from pytest_ssdqual.plugin.options.values import usage_error
from pytest_ssdqual.plugin.plan import needs
from pytest_ssdqual.plugin.plan.stopping import OF_ONE, Promises
from pytest_ssdqual.plugin.session.state import BayRun
from pytest_ssdqual.qual.explore import dimensions
from pytest_ssdqual.qual.explore import search as searches
from pytest_ssdqual.qual.explore.dimensions import Budget, Space
from pytest_ssdqual.qual.explore.search import (
    Probed,
    ProbedFigures,
    ProbeRecord,
    SearchRecord,
    Suspect,
    SuspectRecord,
    WorkloadSearch,
)
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import shallow
from pytest_ssdqual.qual.spec.claims import OF_COUNTERS, Claim, Limit
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import VerdictRule
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.stats.estimate import NotApplicable, TooFew
from pytest_ssdqual.qual.verdict.multiplicity import BONFERRONI, ErrorControl
from pytest_ssdqual.qual.verdict.verdict import Outcome, Verdict, judge_all, worst
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence.searches import of_confirmed, of_search
from pytest_ssdqual.report.fleet.folder import called
from pytest_ssdqual.report.resume.explore_memory import SearchSubject, Store, StoredFinding
from pytest_ssdqual.report.run_folder.journal import OtherSchema
from pytest_ssdqual.rig.campaign.campaign import Campaign
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignStep, StepKind
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.fio import jobs
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.guard.label import HEAD_BYTES
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, RigError
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.measure.probe import CONFIRMED, EXPLORED, EXPLORED_LONGER, Probe

#: hypothesis draws many workloads twice, and most in vain if the spec has few promises. A draw takes about a
#: millisecond; after ``MOST_IN_VAIN`` draws without a new workload the search ends.
MOST_DRAWN, MOST_IN_VAIN = 1_000_000, 2_000
#: Subfolder of the run folder.
FOLDER = "explore"


class SearchEnded(BaseException):
    """Ends the draws. Not an ``Exception``, which hypothesis would take for a finding and shrink."""


def searched(spec: Spec) -> tuple[Claim, ...]:
    """Return the claims of a spec that a search could break."""
    return tuple(claim for claim in Claim if claim in spec.own_claims - OF_COUNTERS and claim.scope in OF_ONE)


@dataclass(slots=True)
class Explorer:
    """One search on one array: its probes, and the drive time spent."""

    campaign: Campaign
    spec: Spec
    geometry: Geometry
    #: Those of the array.
    drives: tuple[Drive, ...]
    space: Space
    protocol: Protocol
    #: Error control of all claims of the run.
    family: ErrorControl
    #: Searches of the same seed draw the same workloads.
    seed: str
    log: dict[Workload, Probed] = field(default_factory=dict)
    spent_s: float = 0.0
    confirming_s: float = 0.0
    suspects: list[Suspect] = field(default_factory=list)
    is_cut: bool = False
    #: Exception of the rig that ended the search.
    _broke: Exception | None = None
    _windows_s: dict[Workload, float] = field(default_factory=dict)
    #: Draws since the last workload that was new.
    _in_vain: int = 0

    @property
    def budget(self) -> Budget:
        return Budget(self.protocol.explore.budget_s, self.protocol.explore.workloads)

    @property
    def probing(self) -> Protocol:
        return dimensions.probing(self.protocol)

    def search(self, known: Mapping[Workload, bool]) -> WorkloadSearch:
        """Search, beginning with ``known``, the findings of earlier runs; the values are True for the simplest form.

        Raises ``RigError``, except for a workload that cannot be measured.
        """
        for workload in known:
            self.look_at(workload)
        for number in range(self.protocol.explore.confirmations):
            if self._simplest() is None:
                self._in_vain = 0
                with suppress(SearchEnded):
                    draw(self.space, self._is_broken, self._margin, f"{self.seed} {number}")
                if self._broke:
                    raise self._broke
            found = self._simplest()
            if found is None:
                break
            simple, is_simplest = (found, True) if known.get(found) else self.simplify(found)
            suspect = self.confirm(simple, is_simplest=is_simplest)
            self.suspects.append(replace(suspect, is_known=simple in known))
            if self.suspects[-1].is_confirmed:
                break
        return self._ended()

    def limits(self, workload: Workload) -> Mapping[Claim, Limit]:
        """Return the limits of a workload; none for one that these drives cannot run.

        Promises of ``specs/default.toml`` do not count: they are made for the workloads of the suites, and the best
        drive would break them by a 1 MiB write with a flush.
        """
        limits = {claim: self.spec.limit(claim, self.geometry, workload) for claim in searched(self.spec)}
        step = CampaignStep(StepKind.MEASURED, self.geometry, workload)
        if not any(limits.values()) or needs.objections([step], self.drives):
            return {}
        return {claim: limit for claim, limit in limits.items() if limit is not None}

    def look_at(self, workload: Workload) -> Probed | None:
        """Probe a workload once; return None if it has no promise or the budget is used up."""
        if workload in self.log or not self.limits(workload):
            return self.log.get(workload)
        if not self.budget.allows(self.spent_s, len(self.log), dimensions.probe_s(self.probing)):
            self.is_cut = True
            return None
        found = self._probed(workload, EXPLORED, self.probing)
        if found.look is ProbedFigures.UNMEASURABLE:
            again = dimensions.longer(self.probing)
            if self.budget.allows(self.spent_s + found.seconds, len(self.log), dimensions.probe_s(again)):
                second = self._probed(workload, EXPLORED_LONGER, again)
                found = replace(second, seconds=found.seconds + second.seconds)
            else:
                self.is_cut = True
        self.log[workload] = found
        self.spent_s += found.seconds
        return found

    def _probed(self, workload: Workload, kind: str, protocol: Protocol) -> Probed:
        spent: list[float] = []
        probe = Probe(kind, protocol, spent.append)
        try:
            measured = self.campaign.probe(self.geometry, workload, probe)
        except InvalidMeasurement as error:
            return Probed(workload, sum(spent), trouble=(str(error),))
        self._windows_s[workload] = protocol.measure.window_s
        # A measurement of an earlier session took as long as its processes.
        spent_s = sum(spent) or sum(run.intervals[-1].end_s for run in measured.runs if run.intervals)
        return self._judged(measured, spent_s, protocol.verdict)

    def _judged(self, measured: Measured, spent_s: float, rule: VerdictRule) -> Probed:
        """Judge each promise by itself."""
        found: list[Verdict] = []
        trouble, unseen = list[str](), dict[str, None]()
        for claim, limit in self.limits(measured.workload).items():
            try:
                verdicts = judge_all(claim, measured, limit, rule.confidence, rule.indifference_percent)
            except TooFew as error:
                trouble.append(f"{claim.label}: {error}")
            except NotApplicable:
                continue  # more time would not help: the claim compares drives, and there is one
            # A probe is too short to pass promises about rare events; it can only break them. Without ``again``, which
            # holds the whole measurement: a search has hundreds.
            found += [replace(each, again=None) for each in verdicts if not each.is_unseen]
            if any(each.is_unseen for each in verdicts):
                unseen[claim.label] = None
        return Probed(measured.workload, spent_s, tuple(found), tuple(trouble), tuple(unseen))

    def simplify(self, workload: Workload) -> tuple[Workload, bool]:
        """Return the simplest workload that still looks broken, and True if every simpler one was probed."""
        while True:
            is_simplest = True
            for each in self.space.simpler(workload):
                if self.look_at(each) is None and self.limits(each):
                    is_simplest = False
                if self._looks_broken(each):
                    workload = each
                    break
            else:
                return workload, is_simplest

    def confirm(self, workload: Workload, *, is_simplest: bool) -> Suspect:
        """Measure a suspect by the protocol, and judge only the claim and the drive that looked broken."""
        seen = worst(each for each in self.log[workload].verdicts if each.outcome is Outcome.FAIL)
        claim, drive = seen.claim, seen.subject.drive
        corrected = self.family.claims if self.family.is_corrected else 1
        family = ErrorControl(corrected * self.protocol.explore.confirmations, BONFERRONI)
        asked = {(self.geometry, workload): frozenset([claim])}
        spent: list[float] = []
        protocol = self._confirming(workload)
        enough = Promises(self.spec, protocol, asked, family)
        probe = Probe(CONFIRMED, protocol, spent.append, enough)
        try:
            measured = self.campaign.probe(self.geometry, workload, probe)
            rule = protocol.verdict
            verdicts = judge_all(claim, measured, seen.limit, rule.confidence, rule.indifference_percent, family)
        except (InvalidMeasurement, ValueError) as error:
            return Suspect(workload, seen, is_simplest, trouble=str(error))
        finally:
            self.confirming_s += sum(spent)
        verdict = next(each for each in verdicts if each.subject.drive == drive)
        return Suspect(workload, seen, is_simplest, measured=measured, verdicts=verdicts, verdict=verdict)

    def _confirming(self, workload: Workload) -> Protocol:
        """Return the protocol of a second measurement: one that needed a longer window needs it again."""
        window_s = max(self.protocol.measure.window_s, self._windows_s[workload])
        rule = self.protocol.visits
        visits = rule and replace(rule, cell_s=max(rule.cell_s, window_s))
        return replace(self.protocol, measure=replace(self.protocol.measure, window_s=window_s), visits=visits)

    def _simplest(self) -> Workload | None:
        """Return the simplest workload that looks broken and has not been confirmed or cleared."""
        return min(filter(self._looks_broken, self.log), key=self.space.complexity, default=None)

    def _looks_broken(self, workload: Workload) -> bool:
        probed, tried = self.log.get(workload), (each.workload for each in self.suspects)
        return probed is not None and probed.look is ProbedFigures.BROKEN and workload not in tried

    def _is_broken(self, workload: Workload) -> bool:
        """Answer hypothesis, always the same for one workload; raise ``SearchEnded`` when the search is over."""
        known = len(self.log)
        try:
            self.look_at(workload)
        except Exception as error:  # hypothesis would take it for a finding, and shrink it
            self._broke = error
        self._in_vain = 0 if len(self.log) > known else self._in_vain + 1
        if self._broke or self.is_cut or self._in_vain > MOST_IN_VAIN:
            raise SearchEnded
        return self._looks_broken(workload)

    def _margin(self, workload: Workload) -> float | None:
        probed = self.log.get(workload)
        return probed.worst_verdict.margin_percent if probed and probed.worst_verdict is not None else None

    def _ended(self) -> WorkloadSearch:
        return WorkloadSearch(
            self.space,
            self.geometry,
            self.spec.name,
            self.budget,
            self.spent_s,
            self.confirming_s,
            tuple(self.log.values()),
            tuple(self.suspects),
            self.is_cut,
        )


def draw(
    space: Space,
    is_broken: Callable[[Workload], bool],
    margin: Callable[[Workload], float | None],
    seed: str,
) -> None:
    """Let hypothesis search for a broken workload, and shrink it.

    Until then it follows the least margin. ``is_broken`` must always answer the same, or raise ``SearchEnded``.
    """
    from hypothesis import Phase, Verbosity, find, settings, target
    from hypothesis import strategies as st
    from hypothesis.errors import NoSuchExample

    def condition(workload: Workload) -> bool:
        found, percent = is_broken(workload), margin(workload)
        if percent is not None:
            target(-percent)
        return found

    values = st.tuples(*(st.sampled_from(each.values) for each in space.dimensions))
    how = settings(
        max_examples=MOST_DRAWN,
        database=None,
        deadline=None,
        derandomize=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
        phases=(Phase.generate, Phase.target, Phase.shrink),
    )
    with suppress(NoSuchExample):
        find(values.map(space.at), condition, settings=how, random=random.Random(seed))  # noqa: S311


class Explore:
    """Searches near one plain workload on one array; the value of the fixture."""

    def __init__(self, run: BayRun, campaign: Campaign, geometry: Geometry, plain: Workload, sla: Sla) -> None:
        found = run.qualification
        self._sla, self._journal = sla, run.journal
        drives = found.bay.drives[: geometry.width]
        with usage_error(ValueError):
            space = Space.of(plain, max(drive.logical_block_bytes for drive in drives))
        #: Of this search and, with another array or workload, of others: by default the name of the run.
        self._seed = found.settings.explore_seed or called(run.journal.path)
        self._explorer = Explorer(
            campaign, found.spec, geometry, drives, space, found.protocol, run.family,
            f"{self._seed} {geometry} {plain}",
        )  # fmt: skip
        models, firmwares = (
            " + ".join(sorted({each or "" for each in of_drives}))
            for of_drives in ([drive.model for drive in drives], [drive.firmware for drive in drives])
        )
        self._subject = SearchSubject(models, firmwares, found.spec.key)
        self._store = Store(found.settings.explore_database)

    def judge(self) -> Verdict | WorkloadSearch:
        """Search; return the verdict on a confirmed workload, else the search, which is true.

        Skips the test if the spec has no promises about such workloads. Raises ``Inconclusive`` if a suspect was
        neither confirmed nor cleared, ``InvalidMeasurement`` if no probe could be judged.
        """
        known = {each.workload: each for each in self._stored_findings() if self._is_reachable(each)}
        found = self._explorer.search({workload: each.is_simplest for workload, each in known.items()})
        files = {each.workload: self._job_file(found, each) for each in found.suspects if not each.is_cleared}
        self._note(found, files, tuple(known))
        self._require_something(found)
        count = "1 workload" if len(known) == 1 else f"{len(known)} workloads"
        remarks = [f"began with {count} of earlier runs"] if known else []
        remarks += self._store_findings(found, tuple(known))
        if found.confirmed:
            return self._tell_confirmed(found, found.confirmed, files[found.confirmed.workload], remarks)
        self._sla.publish(found, of_search(found, remarks))
        return found

    def _tell_confirmed(
        self, found: WorkloadSearch, suspect: Suspect, job_file: str, remarks: Sequence[str]
    ) -> Verdict:
        if suspect.verdict is None or suspect.measured is None:
            raise RigError("a workload was confirmed without a measurement")
        because = "; ".join(filter(None, (suspect.verdict.because, searches.because(found, suspect, job_file))))
        verdict = replace(suspect.verdict, because=because)
        evidence = self._sla.builder.of_verdicts(suspect.measured, suspect.verdicts, verdict)
        self._sla.publish(verdict, of_confirmed(evidence, found, job_file, remarks))
        return verdict

    def _require_something(self, found: WorkloadSearch) -> None:
        if not found.probed:
            pytest.skip(
                f"{found.spec} itself has no promise about {found.kind} workloads on {found.geometry} that a search "
                'could break: write e.g. a promise with workload = "*" into a spec of your own'
            )
        if found.suspects or found.counts[ProbedFigures.KEPT]:
            return
        if found.is_blind:
            raise InvalidMeasurement(f"{found}")
        why = next((each.trouble[0] for each in found.probed if each.trouble), "every promise was inconclusive")
        raise InvalidMeasurement(f"{found}: no workload near {found.space.plain} could be judged: {why}")

    def _stored_findings(self) -> tuple[StoredFinding, ...]:
        """Return the stored findings of earlier runs."""
        try:
            return self._store.recall(self._subject)
        except OtherSchema as error:
            raise pytest.UsageError(f"{error}; name another folder with --ssd-explore-database") from error

    def _is_reachable(self, known: StoredFinding) -> bool:
        """Return True if this search could draw the workload."""
        try:
            self._explorer.space.values(known.workload)
        except ValueError:
            return False
        return known.geometry == str(self._explorer.geometry)

    def _job_file(self, found: WorkloadSearch, suspect: Suspect) -> str:
        """Write a fio job file into the run folder; return its name."""
        targets, workload, explorer = self._targets(), suspect.workload, self._explorer
        width, seconds = found.geometry.width, dimensions.probe_s(explorer.probing)
        drives = [each.identity for each in explorer.drives]
        load = explorer.campaign.setup.load.drives.of(drives, bare=found.geometry.is_side_by_side)
        job = jobs.measurement(workload, targets, width, seconds, load=load)
        name, paths = f"{found.geometry}-{workload}.fio", " ".join(target.path for target in targets)
        comments = (
            f"{workload} on {found.geometry}: {suspect.seen!r}",
            f"Found by run {called(self._journal.path)} of pytest-ssdqual.",
            f"By hand: fio {name}" + (f"; THIS DESTROYS ALL DATA ON {paths}" if workload.writes else ""),
            "Names of devices may change with every boot and every drive that is plugged in; they were:",
            *(drive.describe() for drive in explorer.drives),
        )
        return self._journal.keep(name, jobs.text(job, comments).encode(), FOLDER)

    def _targets(self) -> Sequence[JobTarget]:
        """Return fio's targets; for an array that this session has not built, those that it would have."""
        geometry, drives, array = self._explorer.geometry, self._explorer.drives, self._explorer.campaign.searched
        if array is not None and array.geometry == geometry:
            return array.targets
        if geometry.is_side_by_side:
            return tuple(JobTarget(each.path, each.size_bytes - HEAD_BYTES, HEAD_BYTES) for each in drives)
        begin = mdadm.spared(geometry, self._explorer.protocol.array.of(geometry))
        size = min(drive.size_bytes for drive in drives) * geometry.data_drives
        return (JobTarget("/dev/md100", size - begin, begin),)

    def _note(self, found: WorkloadSearch, files: dict[Workload, str], known: Sequence[Workload]) -> None:
        record = SearchRecord(
            geometry=found.geometry,
            plain=str(found.space.plain),
            space={each.name: tuple(each.values) for each in found.space.dimensions},
            seed=self._seed,
            began_with=tuple(map(str, known)),
            seconds=found.seconds,
            budget_s=found.budget.seconds,
            confirming_s=found.confirming_s,
            probed=tuple(map(_probe, found.probed)),
            suspects=tuple(_suspect(each, files.get(each.workload, "")) for each in found.suspects),
            sentence=found.sentence(),
        )
        self._journal.note("searched", **shallow(record))

    def _store_findings(self, found: WorkloadSearch, known: Sequence[Workload]) -> list[str]:
        """Store the findings for later runs; return a remark if that fails."""
        looks = {each.workload: each.look for each in found.probed}
        try:
            for workload in known:
                if looks.get(workload) is ProbedFigures.KEPT:
                    self._store.forget(self._subject, workload)
            if (suspect := found.confirmed) is not None:
                claim, array, run = suspect.seen.claim.value, str(found.geometry), called(self._journal.path)
                self._store.keep(self._subject, StoredFinding(suspect.workload, claim, array, suspect.is_simplest, run))
        except OSError as error:
            return [f"the findings could not be stored for the next search: {error}"]
        return []


def _probe(probed: Probed) -> ProbeRecord:
    verdict = "" if probed.worst_verdict is None else repr(probed.worst_verdict)
    return ProbeRecord(str(probed.workload), probed.look, probed.seconds, verdict, probed.trouble, probed.unseen)


def _suspect(suspect: Suspect, job_file: str) -> SuspectRecord:
    return SuspectRecord(
        workload=str(suspect.workload),
        claim=suspect.seen.claim.value,
        drive=suspect.seen.subject.drive,
        is_simplest=suspect.is_simplest,
        confirmed=suspect.is_confirmed,
        cleared=suspect.is_cleared,
        verdict=suspect.trouble if suspect.verdict is None else repr(suspect.verdict),
        job_file=job_file,
    )
