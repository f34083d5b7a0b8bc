"""All bays of a run are opened, and must be apart; what is wrong with any of them refuses all."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin.session.start import Beginning
from pytest_ssdqual.report.fleet import folder as folders
from pytest_ssdqual.report.run_folder.journal import RECORDS, Journal, JournalError
from pytest_ssdqual.rig.guard import consent, refusals
from pytest_ssdqual.rig.machine.machine import RigError

if TYPE_CHECKING:
    from pytest_ssdqual.rig.drives.topology import Drive

#: Bays that are opened at once; most of the time a machine is waited for.
AT_ONCE = 16
ANOTHER = "another bay of the run was refused"


def open_all(beginnings: Sequence[Beginning], folder: Path) -> None:
    """Every bay, several at a time; ``pytest.UsageError`` with what is wrong with each.

    Threads that wait for a machine, or for drives that somebody else has, must not keep whoever presses Ctrl-C. Labs
    are booted by this one, one after the other: the kernel ends QEMU with the thread that started it (prctl(2)).
    """
    create = partial(_journal, folder)
    labs = [each for each in beginnings if each.settings.devices.lab is not None]
    others = [each for each in beginnings if each.settings.devices.lab is None]
    jobs: queue.SimpleQueue[Beginning] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[Beginning, BaseException | None]] = queue.SimpleQueue()
    for each in others:
        jobs.put(each)
    for number in range(min(AT_ONCE, len(others))):
        target = partial(_work, jobs, done, create)
        threading.Thread(target=target, name=f"ssdqual-open-{number}", daemon=True).start()
    wrong: dict[str, BaseException] = {}
    for each in labs:
        try:
            each.open(partial(create, each.name))
        except (pytest.UsageError, RigError) as error:
            wrong[each.name] = error
    for _ in others:
        each, failed = done.get()
        if failed:
            wrong[each.name] = failed
    for reason in wrong.values():
        if not isinstance(reason, (pytest.UsageError, RigError)):
            raise reason
    if wrong:
        _refuse_others(beginnings, wrong)
        order = [each.name for each in beginnings if each.name in wrong]
        raise pytest.UsageError("\n".join(f"{name}: {line}" for name in order for line in str(wrong[name]).split("\n")))


def _work(
    jobs: queue.SimpleQueue[Beginning],
    done: queue.SimpleQueue[tuple[Beginning, BaseException | None]],
    create: Callable[[str], Journal],
) -> None:
    while True:
        try:
            each = jobs.get_nowait()
        except queue.Empty:
            return
        try:
            each.open(partial(create, each.name))
        except BaseException as error:
            done.put((each, error))
        else:
            done.put((each, None))


def _journal(fleet: Path, name: str) -> Journal:
    """Of a bay that begins; it has a folder already if an earlier session was refused or killed before that."""
    folder = fleet / folders.folder_of(name)
    if not (folder / RECORDS).is_file():
        return Journal.create_at(folder)
    journal = Journal.open(folder)
    journal.unseal()
    return journal


def apart(beginnings: Sequence[Beginning]) -> tuple[str, ...]:
    """That no drive is in two bays, and what bays share beside that; ``pytest.UsageError`` where that must not be."""
    from pytest_ssdqual.rig.guard import shared_paths

    bays = {each.name: each.run.bay.drives for each in beginnings if each.run}
    wrong = list(shared_paths.same_drives(bays))
    everything = [drive for drives in bays.values() for drive in drives]
    useless = tuple(refusals.useless_consents(everything, beginnings[0].settings.wipe))
    wrong += [refusals.explain(useless)] if useless else []
    wrong += _consents_for_several(bays, beginnings[0].settings.wipe)
    first = beginnings[0]
    what = first.settings.on_shared_path(acceptance=first.protocol.acceptance)
    shared: tuple[str, ...] = ()
    if not wrong and what != "ignore":
        opened = [(each.name, each.channel, each.run) for each in beginnings if each.run and each.channel]
        shared = shared_paths.between({name: shared_paths.paths(at, run.bay.drives) for name, at, run in opened})
        if what == "error":
            wrong += [f"{each}; ssd_shared_path = warn lets it be" for each in shared]
    if wrong:
        _refuse_others(beginnings, {})
        raise pytest.UsageError("\n".join(wrong))
    return shared


def _consents_for_several(bays: Mapping[str, Sequence[Drive]], wipe: Collection[str]) -> Iterator[str]:
    """Whoever gives up one drive must not lose another one of the same serial number on another machine."""
    for name in sorted(wipe):
        where = [bay for bay, drives in bays.items() if any(name in (drive.serial, drive.wwn) for drive in drives)]
        if len(where) > 1:
            yield (
                f"{consent.option(name)}: drives of the bays {', '.join(where)} have that serial: give the WWN of the "
                "one that is meant, or run these bays one by one with --ssd-bay"
            )


def _refuse_others(beginnings: Sequence[Beginning], wrong: dict[str, BaseException]) -> None:
    for each in beginnings:
        if each.name not in wrong:
            with suppress(JournalError):  # what was wrong with the other one is what has to be told
                each.refuse(ANOTHER)
