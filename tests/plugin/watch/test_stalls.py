from __future__ import annotations

import pytest

from pytest_ssdqual.plugin.watch.notifier import stall
from pytest_ssdqual.qual.progress_events import Begun, Idle, LoadBegun, News, Now, RunProgress

LOAD = LoadBegun("measure", "raid5x4", "randread_4k_qd8", ("md100",))


def stalls(*events: tuple[float, News], until_s: float = 100_000) -> list[tuple[float, str]]:
    """The stalls of a run with a limit of 900 s, checked every 10 s, and when each was found."""
    progress, sentences = RunProgress(), []
    begun_s = None
    left = sorted(events, key=lambda each: each[0])
    for now_s in range(0, int(until_s), 10):
        while left and left[0][0] <= now_s:
            at_s, event = left.pop(0)
            progress.take(event, "", at_s)
        sentence = stall(progress.bays[""], 900, now_s)
        if sentence and begun_s != progress.bays[""].active_s:
            begun_s = progress.bays[""].active_s
            sentences.append((float(now_s), sentence))
    return sentences


def rates(begin: int, end: int, iops: float) -> list[tuple[float, News]]:
    return [(float(at), Now(at - begin, (iops,), 0)) for at in range(begin, end, 10)]


def test_a_load_that_works_is_no_stall_however_long_it_takes() -> None:
    assert not stalls((0, Begun("raid5x4: fill", 60)), (0, LOAD), *rates(10, 20_000, 500), until_s=20_000)


def test_a_load_without_io_is_one_stall_until_it_goes_on() -> None:
    events = [*rates(10, 1000, 500), *rates(1000, 9000, 0.0), *rates(9000, 9100, 500), *rates(9100, 20_000, 0.0)]
    found = stalls((0, Begun("raid5x4: fill", 60)), (0, LOAD), *events, until_s=20_000)
    assert [at for at, _ in found] == [990 + 900, 9090 + 900]
    assert found[0][1].startswith("raid5x4: fill ")
    assert found[0][1].endswith("15 min")


@pytest.mark.parametrize(("planned_s", "found_s"), [(60, 900), (3600, 7200), (0, 3600)])
def test_a_step_without_figures_has_twice_its_time(planned_s: float, found_s: float) -> None:
    ((at_s, _),) = stalls((0, Begun("raid5x4: purge", planned_s)))
    assert at_s == found_s


def test_a_run_between_its_steps_does_not_stall() -> None:
    assert not stalls((0, Begun("raid5x4: purge", 60)), (50, Idle()))


def test_bytes_that_are_written_are_progress() -> None:
    grown = [(float(at), Now(at, (0.0,), at)) for at in range(10, 5000, 10)]
    assert not stalls((0, Begun("raid5x4: fill", 60)), (0, LOAD), *grown, until_s=5000)
