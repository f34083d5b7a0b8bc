"""What the fixture ``explore`` does around a search: where it begins, what it leaves behind, what is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin.judging.sla import Sla
from pytest_ssdqual.plugin.searches.explore import Explorer, Promised
from pytest_ssdqual.qual.explore import dimensions as spaces
from pytest_ssdqual.qual.explore import search as searches
from pytest_ssdqual.qual.explore.dimensions import Space
from pytest_ssdqual.qual.explore.search import Look, Search, Suspect
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.verdict.verdict import Verdict
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.fleet.folder import called
from pytest_ssdqual.report.resume.explore_memory import Remembered, Store, Subject
from pytest_ssdqual.report.view.searches import of_confirmed, of_search
from pytest_ssdqual.rig.fio import jobs, jobtext
from pytest_ssdqual.rig.fio.jobs import Target
from pytest_ssdqual.rig.guard.label import HEAD_BYTES
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, RigError
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.measure.station import Station

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.session.state import Qualification

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
        self._subject = Subject(models, firmwares, run.spec.key)
        self._store = Store(run.settings.explore_database)

    def judge(self) -> Verdict | Search:
        """True if nothing was found: the search, which says how far that goes. Else the verdict on what was found.

        Skips the test if the spec itself promises nothing that could be searched; raises ``Inconclusive`` if what was
        found could not be confirmed nor cleared, ``InvalidMeasurement`` if nothing could be decided.
        """
        known = {each.workload: each for each in self._store.recall(self._subject) if self._is_ours(each)}
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

    def _tell_confirmed(self, found: Search, suspect: Suspect, job_file: str, remarks: Sequence[str]) -> Verdict:
        if suspect.verdict is None or suspect.measured is None:
            raise RigError("a workload was confirmed without a measurement")
        because = "; ".join(filter(None, (suspect.verdict.because, searches.because(found, suspect, job_file))))
        told = replace(suspect.verdict, because=because)
        evidence = self._sla.account.of_verdicts(suspect.measured, suspect.verdicts, told)
        self._sla.tell(told, of_confirmed(evidence, found, job_file, remarks))
        return told

    def _require_something(self, found: Search) -> None:
        spec, space = self._run.spec, self._space
        if not found.probed:
            pytest.skip(
                f"{spec.name} itself promises nothing of {found.kind} workloads on {found.geometry} that a search "
                'could break: write e.g. a promise with workload = "*" into a spec of your own'
            )
        if found.suspects or found.counts[Look.KEPT]:
            return
        why = next((each.trouble[0] for each in found.probed if each.trouble), "every promise remained undecided")
        raise InvalidMeasurement(f"{found}: nothing around {space.plain} could be decided: {why}")

    def _is_ours(self, known: Remembered) -> bool:
        """Whether this search could find it itself."""
        try:
            self._space.values(known.workload)
        except ValueError:
            return False
        return known.geometry == str(self._promised.geometry)

    def _job_file(self, found: Search, suspect: Suspect) -> str:
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
        return self._journal.keep(name, jobtext.text(job, comments).encode(), FOLDER)

    def _targets(self) -> Sequence[Target]:
        """What fio is pointed at; of an array that was not built in this session as it would be."""
        geometry, array = self._promised.geometry, self._station.searched
        if array is not None and array.geometry == geometry:
            return array.targets
        if geometry.is_side_by_side:
            return tuple(Target(each.path, each.size_bytes - HEAD_BYTES, HEAD_BYTES) for each in self._drives)
        begin = mdadm.spared(geometry, self._run.protocol.array)
        size = min(drive.size_bytes for drive in self._drives) * geometry.data_drives
        return (Target("/dev/md100", size - begin, begin),)

    def _note(self, found: Search, seed: str, files: dict[Workload, str], known: Sequence[Workload]) -> None:
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

    def _remember(self, found: Search, known: Sequence[Workload]) -> list[str]:
        """For the next run; what cannot be kept is a remark."""
        looks = {each.workload: each.look for each in found.probed}
        try:
            for workload in known:
                if looks.get(workload) is Look.KEPT:
                    self._store.forget(self._subject, workload)
            if (suspect := found.confirmed) is not None:
                claim, array, run = suspect.seen.claim.value, str(found.geometry), called(self._journal.path)
                self._store.keep(self._subject, Remembered(suspect.workload, claim, array, suspect.is_simplest, run))
        except OSError as error:
            return [f"the next search will not know what this one found: {error}"]
        return []
