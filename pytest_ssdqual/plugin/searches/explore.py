"""``explore``: searches the workloads around a plain one for one that breaks a promise, and makes it simple.

hypothesis draws the workloads, and shrinks the first that looks broken; each is measured shortly and once. A suspect
that is as simple as it gets is measured again, by the protocol itself, and only that is the verdict: see
``qual.explore.search``.

What the fixture ``ssd_explore`` does around a search: where it begins, what it leaves behind, what is judged.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin.judging.sla import Sla
from pytest_ssdqual.plugin.plan import needs
from pytest_ssdqual.plugin.plan.needs import Need
from pytest_ssdqual.plugin.plan.stopping import OF_ONE, Promises
from pytest_ssdqual.qual.explore import dimensions as spaces
from pytest_ssdqual.qual.explore import search as searches
from pytest_ssdqual.qual.explore.dimensions import Budget, Space
from pytest_ssdqual.qual.explore.search import Probed, ProbedFigures, Suspect, WorkloadSearch
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import spec as specs
from pytest_ssdqual.qual.spec.claims import Claim, Limit
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.stats.estimate import NotApplicable, TooFew
from pytest_ssdqual.qual.stats.stopping_rule import Decision
from pytest_ssdqual.qual.verdict.multiplicity import BONFERRONI, ErrorControl
from pytest_ssdqual.qual.verdict.verdict import Outcome, Verdict, judge_members, worst
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.fleet.folder import called
from pytest_ssdqual.report.resume.explore_memory import Remembered, SearchSubject, Store
from pytest_ssdqual.report.run_folder.journal import OtherSchema
from pytest_ssdqual.report.view.searches import of_confirmed, of_search
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.fio import jobs
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.guard.label import HEAD_BYTES
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, RigError
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.measure.probe import CONFIRMED, EXPLORED, EXPLORED_LONGER, Probe
from pytest_ssdqual.rig.measure.station import Station

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.session.state import Qualification


#: Many workloads are drawn twice, and where a spec promises something of a few only, nearly all in vain. Drawing one
#: takes about a millisecond; so many in a row without a new one are enough.
MOST_DRAWN, MOST_IN_VAIN = 1_000_000, 2_000


class SearchEnded(BaseException):
    """Nothing more is to be drawn. No ``Exception``: hypothesis takes those for findings, and would shrink them."""


@dataclass(frozen=True, slots=True)
class Promised:
    """What a spec itself promises of single workloads on one array of these drives.

    Not what ``specs/default.toml`` promises where a spec is silent: that is made for the workloads of the suites, and
    any 1 MiB write with a flush behind it would break it on the best of drives.
    """

    spec: Spec
    geometry: Geometry
    drives: tuple[Drive, ...]

    def limits(self, workload: Workload) -> Mapping[Claim, Limit]:
        """Nothing of a workload that these drives cannot do."""
        own = {each.claim for each in self.spec.promises if self.spec.key != specs.DEFAULT}
        claims = (claim for claim in Claim if claim in own and claim.scope in OF_ONE)
        found = {claim: self.spec.limit(claim, self.geometry, workload) for claim in claims}
        if not any(found.values()) or needs.objections(Need((self.geometry,), measured=(workload,)), self.drives):
            return {}
        return {claim: limit for claim, limit in found.items() if limit is not None}

    def judge(self, measured: Measured, rule: Protocol) -> tuple[tuple[Verdict, ...], tuple[str, ...]]:
        """Every promise about it, each alone; and what it says nothing of, a sentence each."""
        found: list[Verdict] = []
        trouble = []
        for claim, limit in self.limits(measured.workload).items():
            try:
                verdicts = judge_members(
                    claim, measured, limit, rule.verdict.confidence, rule.verdict.indifference_percent
                )
            except TooFew as error:
                trouble.append(f"{claim.label}: {error}")
            except NotApplicable:
                continue  # nothing that more time would tell: a claim about several drives, of one
            # Of rare events a search finds only that they are not rare.
            found += [each for each in verdicts if not each.is_unseen]
        return tuple(found), tuple(trouble)


@dataclass(slots=True)
class Explorer:
    """One search: what it has looked at, and what that has cost."""

    station: Station
    promised: Promised
    space: Space
    protocol: Protocol
    #: Of all claims of the run.
    family: ErrorControl
    #: Searches of the same seed draw the same workloads.
    seed: str
    log: dict[Workload, Probed] = field(default_factory=dict)
    spent_s: float = 0.0
    confirming_s: float = 0.0
    suspects: list[Suspect] = field(default_factory=list)
    is_cut: bool = False
    #: What ended it, if the rig did.
    _broke: Exception | None = None
    _windows_s: dict[Workload, float] = field(default_factory=dict)
    #: Draws since the last workload that was new.
    _in_vain: int = 0

    @property
    def budget(self) -> Budget:
        return Budget(self.protocol.explore.budget_s, self.protocol.explore.workloads)

    @property
    def probing(self) -> Protocol:
        return spaces.probing(self.protocol)

    def search(self, known: Mapping[Workload, bool]) -> WorkloadSearch:
        """``known`` from earlier runs come first, each with whether it is as simple as it gets.

        Raises ``RigError``, but not for a workload that cannot be measured.
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

    def look_at(self, workload: Workload) -> Probed | None:
        """Measure it shortly, unless that was done; None if nothing is promised of it or the budget has no room."""
        if workload in self.log or not self.promised.limits(workload):
            return self.log.get(workload)
        if not self.budget.allows(self.spent_s, len(self.log), spaces.shortest_s(self.probing)):
            self.is_cut = True
            return None
        found = self._probed(workload, EXPLORED, self.probing)
        if found.look is ProbedFigures.UNMEASURABLE:
            again = spaces.longer(self.probing)
            if self.budget.allows(self.spent_s + found.seconds, len(self.log), spaces.shortest_s(again)):
                second = self._probed(workload, EXPLORED_LONGER, again)
                found = replace(second, seconds=found.seconds + second.seconds)
            else:
                self.is_cut = True
        self.log[workload] = found
        self.spent_s += found.seconds
        return found

    def _probed(self, workload: Workload, kind: str, protocol: Protocol) -> Probed:
        spent: list[float] = []
        probe = Probe(kind, protocol, partial(self._enough, workload), spent.append)
        try:
            measured = self.station.probe(self.promised.geometry, workload, probe)
        except InvalidMeasurement as error:
            return Probed(workload, sum(spent), trouble=(str(error),))
        self._windows_s[workload] = protocol.window_s
        verdicts, trouble = self.promised.judge(measured, protocol)
        return Probed(workload, sum(spent) or _length_s(measured), verdicts, trouble)

    def simplify(self, workload: Workload) -> tuple[Workload, bool]:
        """The same with departures taken back as long as it looks broken, and whether all that is left is needed."""
        while True:
            is_simplest = True
            for each in self.space.simpler(workload):
                if self.look_at(each) is None and self.promised.limits(each):
                    is_simplest = False
                if self._looks_broken(each):
                    workload = each
                    break
            else:
                return workload, is_simplest

    def confirm(self, workload: Workload, *, is_simplest: bool) -> Suspect:
        """Measure it anew, as the protocol measures, and judge only what looked broken, of the drive it was seen at."""
        seen = worst(each for each in self.log[workload].verdicts if each.outcome is Outcome.FAIL)
        claim, drive = seen.claim, seen.subject.drive
        corrected = self.family.claims if self.family.is_corrected else 1
        family = ErrorControl(corrected * self.protocol.explore.confirmations, BONFERRONI)
        asked = {(self.promised.geometry, workload): frozenset([claim])}
        spent: list[float] = []
        # What needed a longer window to be seen at all needs it again.
        protocol = replace(self.protocol, window_s=max(self.protocol.window_s, self._windows_s[workload]))
        probe = Probe(CONFIRMED, protocol, Promises(self.promised.spec, protocol, asked, family), spent.append)
        try:
            measured = self.station.probe(self.promised.geometry, workload, probe)
            rule = protocol.verdict
            verdicts = judge_members(claim, measured, seen.limit, rule.confidence, rule.indifference_percent, family)
        except (InvalidMeasurement, ValueError) as error:
            return Suspect(workload, seen, is_simplest, trouble=str(error))
        finally:
            self.confirming_s += sum(spent)
        told = next(each for each in verdicts if each.subject.drive == drive)
        return Suspect(workload, seen, is_simplest, measured=measured, verdicts=verdicts, verdict=told)

    def _simplest(self) -> Workload | None:
        """Of all that look broken and are not cleared or open yet."""
        return min(filter(self._looks_broken, self.log), key=self.space.complexity, default=None)

    def _looks_broken(self, workload: Workload) -> bool:
        probed, tried = self.log.get(workload), (each.workload for each in self.suspects)
        return probed is not None and probed.look is ProbedFigures.BROKEN and workload not in tried

    def _is_broken(self, workload: Workload) -> bool:
        """For hypothesis; the same each time it asks. ``SearchEnded`` when there is nothing more to be looked at."""
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
        return probed.told.margin_percent if probed and probed.told is not None else None

    def _enough(self, workload: Workload, measured: Measured) -> Decision:
        """One broken promise is enough to suspect it; else all of them have to be certain."""
        verdicts, _ = self.promised.judge(measured, self.probing)
        broken = next((each for each in verdicts if each.outcome is Outcome.FAIL), None)
        if broken:
            return Decision(done=True, sentence=repr(broken))
        asked = {(self.promised.geometry, workload): frozenset(self.promised.limits(workload))}
        return Promises(self.promised.spec, self.probing, asked)(measured)

    def _ended(self) -> WorkloadSearch:
        return WorkloadSearch(
            self.space,
            self.promised.geometry,
            self.promised.spec.name,
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
    """Let hypothesis look for a workload that is broken, and for a simpler one as soon as there is one.

    Where nothing is broken yet it follows the least margin. ``is_broken`` must answer the same each time, or raise
    ``SearchEnded``.
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


def _length_s(measured: Measured) -> float:
    """Of one that was recalled: what its processes took."""
    return sum(run.intervals[-1].end_s for run in measured.runs if run.intervals)


#: Of the run folder.
FOLDER = "explore"


class Explore:
    """Searches around one plain workload on one array."""

    def __init__(self, run: Qualification, station: Station, geometry: Geometry, plain: Workload, sla: Sla) -> None:
        if run.journal is None:
            raise RigError("nothing can be searched while tests are only collected")
        self._run, self._station, self._sla, self._journal = run, station, sla, run.journal
        self._drives = run.bay.drives[: geometry.width]
        self._promised = Promised(run.spec, geometry, self._drives)
        try:
            self._space = Space.of(plain, max(drive.logical_block_bytes for drive in self._drives))
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error
        models, firmwares = (
            " + ".join(sorted({each or "" for each in of_drives}))
            for of_drives in ([drive.model for drive in self._drives], [drive.firmware for drive in self._drives])
        )
        self._subject = SearchSubject(models, firmwares, run.spec.key)
        self._store = Store(run.settings.explore_database)

    def judge(self) -> Verdict | WorkloadSearch:
        """True if nothing was found: the search, which says how far that goes. Else the verdict on what was found.

        Skips the test if the spec itself promises nothing that could be searched; raises ``Inconclusive`` if what was
        found could not be confirmed nor cleared, ``InvalidMeasurement`` if nothing could be decided.
        """
        known = {each.workload: each for each in self._recalled() if self._is_ours(each)}
        seed = self._run.settings.explore_seed or called(self._journal.path)
        explorer = Explorer(
            self._station,
            self._promised,
            self._space,
            self._run.protocol,
            self._run.family,
            f"{seed} {self._promised.geometry} {self._space.plain}",
        )
        found = explorer.search({workload: each.is_simplest for workload, each in known.items()})
        files = {each.workload: self._job_file(found, each) for each in found.suspects if not each.is_cleared}
        self._note(found, seed, files, tuple(known))
        self._require_something(found)
        count = "1 workload" if len(known) == 1 else f"{len(known)} workloads"
        remarks = [f"began with {count} that earlier runs had found"] if known else []
        remarks += self._remember(found, tuple(known))
        if found.confirmed:
            return self._tell_confirmed(found, found.confirmed, files[found.confirmed.workload], remarks)
        account = self._sla.account
        evidence = of_search(found, protocol=account.protocol, acceptance=account.acceptance, remarks=remarks)
        self._sla.tell(found, evidence)
        return found

    def _tell_confirmed(
        self, found: WorkloadSearch, suspect: Suspect, job_file: str, remarks: Sequence[str]
    ) -> Verdict:
        if suspect.verdict is None or suspect.measured is None:
            raise RigError("a workload was confirmed without a measurement")
        because = "; ".join(filter(None, (suspect.verdict.because, searches.because(found, suspect, job_file))))
        told = replace(suspect.verdict, because=because)
        evidence = self._sla.account.of_verdicts(suspect.measured, suspect.verdicts, told)
        self._sla.tell(told, of_confirmed(evidence, found, job_file, remarks))
        return told

    def _require_something(self, found: WorkloadSearch) -> None:
        spec, space = self._run.spec, self._space
        if not found.probed:
            pytest.skip(
                f"{spec.name} itself promises nothing of {found.kind} workloads on {found.geometry} that a search "
                'could break: write e.g. a promise with workload = "*" into a spec of your own'
            )
        if found.suspects or found.counts[ProbedFigures.KEPT]:
            return
        why = next((each.trouble[0] for each in found.probed if each.trouble), "every promise remained undecided")
        raise InvalidMeasurement(f"{found}: nothing around {space.plain} could be decided: {why}")

    def _recalled(self) -> tuple[Remembered, ...]:
        """Findings of earlier runs, which the search begins with."""
        try:
            return self._store.recall(self._subject)
        except OtherSchema as error:
            raise pytest.UsageError(f"{error}; name another folder with --ssd-explore-database") from error

    def _is_ours(self, known: Remembered) -> bool:
        """Whether this search could find it itself."""
        try:
            self._space.values(known.workload)
        except ValueError:
            return False
        return known.geometry == str(self._promised.geometry)

    def _job_file(self, found: WorkloadSearch, suspect: Suspect) -> str:
        """Written into the run folder; its name there."""
        targets, workload = self._targets(), suspect.workload
        protocol = spaces.probing(self._run.protocol)
        width, seconds = found.geometry.width, spaces.longest_s(protocol)
        job = jobs.measurement(workload, targets, width, seconds)
        name, paths = f"{found.geometry}-{workload}.fio", " ".join(target.path for target in targets)
        comments = (
            f"{workload} on {found.geometry}: {suspect.seen!r}",
            f"Found by run {called(self._journal.path)} of pytest-ssdqual.",
            f"By hand: fio {name}" + (f"; THIS DESTROYS ALL DATA ON {paths}" if workload.writes else ""),
            "Names of devices may change with every boot and every drive that is plugged in; they were:",
            *(drive.describe() for drive in self._drives),
        )
        return self._journal.keep(name, jobs.text(job, comments).encode(), FOLDER)

    def _targets(self) -> Sequence[JobTarget]:
        """What fio is pointed at; of an array that was not built in this session as it would be."""
        geometry, array = self._promised.geometry, self._station.searched
        if array is not None and array.geometry == geometry:
            return array.targets
        if geometry.is_side_by_side:
            return tuple(JobTarget(each.path, each.size_bytes - HEAD_BYTES, HEAD_BYTES) for each in self._drives)
        begin = mdadm.spared(geometry, self._run.protocol.array)
        size = min(drive.size_bytes for drive in self._drives) * geometry.data_drives
        return (JobTarget("/dev/md100", size - begin, begin),)

    def _note(self, found: WorkloadSearch, seed: str, files: dict[Workload, str], known: Sequence[Workload]) -> None:
        self._journal.note(
            "searched",
            geometry=str(found.geometry),
            plain=str(found.space.plain),
            space={each.name: list(each.values) for each in found.space.dimensions},
            seed=seed,
            began_with=[str(each) for each in known],
            seconds=found.seconds,
            budget_s=found.budget.seconds,
            confirming_s=found.confirming_s,
            probed=[
                {
                    "workload": str(each.workload),
                    "look": each.look.value,
                    "seconds": each.seconds,
                    "told": "" if each.told is None else repr(each.told),
                    "trouble": list(each.trouble),
                }
                for each in found.probed
            ],
            suspects=[
                {
                    "workload": str(each.workload),
                    "claim": each.seen.claim.value,
                    "drive": each.seen.subject.drive,
                    "is_simplest": each.is_simplest,
                    "confirmed": each.is_confirmed,
                    "cleared": each.is_cleared,
                    "told": each.trouble if each.verdict is None else repr(each.verdict),
                    "job_file": files.get(each.workload, ""),
                }
                for each in found.suspects
            ],
            sentence=found.sentence(),
        )

    def _remember(self, found: WorkloadSearch, known: Sequence[Workload]) -> list[str]:
        """For the next run; what cannot be kept is a remark."""
        looks = {each.workload: each.look for each in found.probed}
        try:
            for workload in known:
                if looks.get(workload) is ProbedFigures.KEPT:
                    self._store.forget(self._subject, workload)
            if (suspect := found.confirmed) is not None:
                claim, array, run = suspect.seen.claim.value, str(found.geometry), called(self._journal.path)
                self._store.keep(self._subject, Remembered(suspect.workload, claim, array, suspect.is_simplest, run))
        except OSError as error:
            return [f"the next search will not know what this one found: {error}"]
        return []
