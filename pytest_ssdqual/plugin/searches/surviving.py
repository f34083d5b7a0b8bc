"""What the fixture ``integrity`` does around a search: the array's body, who cuts its power, what is written down."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin.searches.integrity import Search
from pytest_ssdqual.plugin.stash import QUALIFICATION
from pytest_ssdqual.qual.integrity import reference_model
from pytest_ssdqual.qual.integrity.result import Survival
from pytest_ssdqual.qual.integrity.steps import UNIT_BYTES
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.report.run_folder.journal import Journal
from pytest_ssdqual.report.view.integrity import of_survival
from pytest_ssdqual.rig.integrity.md_target import LiveBody
from pytest_ssdqual.rig.integrity.power_cut import Switch
from pytest_ssdqual.rig.integrity.runner import Lived
from pytest_ssdqual.rig.integrity.target import Body
from pytest_ssdqual.rig.machine.machine import RigError
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.measure.station import Station

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.session.state import Qualification
    from pytest_ssdqual.report.evidence.evidence import Evidence

#: Of the run folder.
FOLDER = "integrity"
#: Options that say nothing about how an array is built and treated.
NOT_REPEATED = ("--ssd-replay", "--ssd-resume", "--ssd-spec-schema")


def survive(request: pytest.FixtureRequest, station: Station, geometry: Geometry) -> tuple[Survival, Evidence]:
    """Search through the lives of an array, or live through the one that was asked for.

    ``RigError`` or a child of it where the rig is at fault. Skips the test if another array was asked for.
    """
    run = request.config.stash[QUALIFICATION]
    asked = run.settings.replay
    if asked and asked.geometry != geometry:
        pytest.skip(f"the history of --ssd-replay is one of {asked.geometry}")
    if run.journal is None:
        raise RigError("nothing can be tried while tests are only collected")
    book = _Book(run.journal, geometry)

    def lived() -> Survival:
        station.close()
        body = body_of(station.setup, _switch(request.config, run))
        try:
            search = _search(station.setup, body, geometry, book)
            found = search.replay(asked) if asked else search.run()
        except BaseException:
            with contextlib.suppress(RigError):  # the error on its way says more
                body.close()
            raise
        body.close()
        return found

    found = station.stock.unless_failed(("integrity", geometry), lived)
    found, raw = book.concluded(found, _options(request.config.invocation_params.args), request.node.nodeid)
    evidence = of_survival(found, protocol=run.protocol.name, acceptance=run.acceptance, raw=raw)
    return found, evidence


def body_of(setup: Setup, switch: Switch | None) -> LiveBody:
    """What histories are done to."""
    return LiveBody(setup, switch)


def _search(setup: Setup, body: Body, geometry: Geometry, book: _Book) -> Search:
    settings = setup.protocol.array
    each = reference_model.region_bytes(geometry, settings)
    stripe = reference_model.stripe_bytes(geometry, settings)
    wanted = (UNIT_BYTES, 4 * UNIT_BYTES, stripe // max(1, geometry.data_drives), stripe)
    return Search(
        body,
        geometry,
        len(setup.held.drives),
        setup.protocol.integrity,
        tuple(sorted({size for size in wanted if size <= each})),
        each,
        told=lambda what: setup.progress(f"{geometry}: {what}", 0),
        kept=book.keep,
    )


def _switch(config: pytest.Config, run: Qualification) -> Switch | None:
    """The lab's own, or the site's hook, or None."""
    if run.bay.switch:
        return run.bay.switch
    if not config.hook.pytest_ssdqual_power_cut.get_hookimpls():
        return None
    machine = run.bay.machine

    def cut() -> None:
        if not config.hook.pytest_ssdqual_power_cut(machine=machine):
            raise RigError(f"no hook pytest_ssdqual_power_cut has cut the power of {machine}")

    return cut


def _options(given: Sequence[object]) -> list[str]:
    """Ours, of all that pytest was given; those of the configuration file are there again anyway."""
    words, found = list(map(str, given)), []
    for word, after in zip(words, [*words[1:], ""], strict=True):
        name, _, value = word.partition("=")
        if name.startswith("--ssd-") and name not in NOT_REPEATED:
            found.append(word if value else f"{word}={after}")
    return found


class _Book:
    """What is kept in the run folder: every history as it was drawn, and the shortest one that fails."""

    def __init__(self, journal: Journal, geometry: Geometry) -> None:
        self._journal, self._geometry = journal, geometry

    def keep(self, number: int, lived: Lived) -> None:
        """A history that was lived through."""
        name = self._journal.keep(f"{self._geometry}-{number:03}.history", str(lived.history).encode(), FOLDER)
        self._journal.note(
            "history", geometry=str(self._geometry), number=number, script=name, steps_done=lived.done,
            compared=lived.compared, findings=len(lived.findings), remarks=lived.remarks,
        )  # fmt: skip

    def concluded(self, found: Survival, options: Sequence[str], test: str) -> tuple[Survival, tuple[str, ...]]:
        """With how to do it again, and the files that show it."""
        raw: tuple[str, ...] = ()
        if found.shortest:
            raw = (self._journal.keep(f"{self._geometry}.history", str(found.shortest).encode(), FOLDER),)
            argv = ["pytest", *options, f"--ssd-replay={self._journal.path / raw[0]}", test]
            found = replace(found, replay=shlex.join(argv))
        self._journal.note(
            "integrity",
            geometry=str(self._geometry),
            histories=found.histories,
            steps=found.steps,
            compared=found.compared,
            seconds=found.seconds,
            sentence=repr(found),
            shortest=list(raw),
            happened_again=found.happened_again,
            findings=[
                {
                    "kind": each.kind.value,
                    "offset_bytes": each.offset_bytes,
                    "found": each.found,
                    "expected": each.expected,
                }
                for each in found.findings[:100]
            ],
            remarks=list(found.remarks),
        )
        return found, raw
