from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import pytest
from support.builders import strategies

from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Exposure, Measured, Visited
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.workload.rounds import Rounds, RoundsResult, Tracked
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.result_cache import NEWEST, SILENCES, ResultCache
from pytest_ssdqual.rig.machine.machine import (
    CommandFailed,
    Completed,
    DriveSilent,
    InvalidMeasurement,
    MachineLost,
    RigError,
    Unforeseen,
    UnforeseenAgain,
)

WRITE = Workload("randwrite", "4k", 8)
LOOP = Rounds("one", (WRITE,), (Tracked(WRITE, "steady_iops"),), fill_bs="128k", fill_passes=1)
RUN = strategies.run([900, 1000, 1100], workload=WRITE)
VALUES: dict[str, object] = {
    "measured": Measured((RUN, RUN)),
    "side by side": Measured((strategies.side_by_side([[1000] * 5, [500] * 5]).condensed(),)),
    "saturation": Saturation(RUN, 1 << 29),
    "loop": RoundsResult(RUN.geometry, LOOP, ((RUN,), (RUN,))),
    "rebuild": Rebuild(Geometry.parse("raid5x3-1rebuilding"), 60.0, 1 << 28, Measured((RUN,)), 0),
    "visited": Measured(
        (RUN, RUN), Visited((1, 1), 4, 0.99, 0.01, 3.0, 0.02, 5.0, exposure=Exposure(60.0, 20.0, 6, (3.5,)))
    ),
}


def filled(folder: Path, newest: int = 0) -> ResultCache:
    cache = ResultCache(folder, newest)
    for key, value in VALUES.items():
        cache.put(key, value)
    return cache


def test_drive_that_does_not_answer_is_tried_again_a_few_times(tmp_path: Path) -> None:
    cache, tried = ResultCache(tmp_path), list[int]()

    def work() -> str:
        tried.append(1)
        if len(tried) == 2:
            return "answered"
        raise DriveSilent("/dev/sdb does not answer")

    with pytest.raises(DriveSilent):
        cache.unless_failed("array", work)
    assert cache.unless_failed("array", work) == "answered"
    for _ in range(SILENCES):
        with pytest.raises(DriveSilent):
            cache.unless_failed("array", work)
    assert len(tried) == 1 + SILENCES


@pytest.mark.parametrize("newest", [0, 1, NEWEST])
def test_whatever_was_put_in_comes_back_equal(tmp_path: Path, newest: int) -> None:
    cache = filled(tmp_path, newest)
    for _ in range(2):
        assert {key: cache[key] for key in VALUES} == VALUES
    assert "nothing" not in cache
    with pytest.raises(KeyError):
        cache["nothing"]


def test_only_the_newest_are_held(tmp_path: Path) -> None:
    cache = filled(tmp_path, 2)
    newest, before, oldest = [*VALUES][-1], [*VALUES][-2], next(iter(VALUES))
    assert cache[newest] is VALUES[newest]
    assert cache[before] is VALUES[before]
    again = cache[oldest]
    assert again is not VALUES[oldest]
    assert cache[oldest] is again
    assert cache[before] is VALUES[before]
    assert cache[newest] is not VALUES[newest]
    assert len(cache._held) == 2


def test_nothing_is_written_before_it_has_to_be_nor_left_behind(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path)
    for number in range(NEWEST):
        cache.put(number, RUN)
    assert cache._file is None
    cache.put("one more", RUN)
    assert cache._file is not None
    assert list(tmp_path.iterdir()) == []
    file = cache._file
    del cache
    gc.collect()
    assert file.closed


def test_what_comes_and_goes_is_written_once(tmp_path: Path) -> None:
    cache = filled(tmp_path)
    assert cache._file is not None
    size = cache._file.seek(0, 2)
    assert [cache[key] for key in VALUES] == [*VALUES.values()]
    assert cache._file.seek(0, 2) == size


def test_a_full_disk_costs_memory_and_no_measurement(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path / "unmounted", 1)
    for key, value in VALUES.items():
        cache.put(key, value)
    assert {key: cache[key] for key in VALUES} == VALUES
    (tmp_path / "unmounted").mkdir()
    cache.put("one more", RUN)
    assert len(cache._held) == 1
    assert {key: cache[key] for key in VALUES} == VALUES


def test_a_disk_that_fills_up_in_the_middle_of_a_measurement(tmp_path: Path) -> None:
    cache = filled(tmp_path, 1)

    class Full:
        def seek(self, offset: int, whence: int) -> int:
            return 0

        def write(self, data: bytes) -> int:
            return len(data) // 2

    real, cache._file = cache._file, Full()  # type: ignore[assignment]
    cache.put("unlucky", RUN)
    cache.put("next", RUN)
    cache._file = real
    assert cache["unlucky"] == cache["next"] == RUN
    assert {key: cache[key] for key in VALUES} == VALUES


@pytest.mark.parametrize(
    "error",
    [
        InvalidMeasurement("randread_4k_qd8 on raid5x3 is not steady"),
        CommandFailed("mdadm failed", Completed(("mdadm",), 1, b"", b"busy", "2026-01-01T00:00:00+00:00", 0.1)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_failure_is_raised_again_and_holds_no_frames(error: RigError) -> None:
    cache = ResultCache()

    with pytest.raises(RigError):
        raise error from OSError("the cause")
    cache.fail("key", error)
    assert "key" in cache
    for _ in range(2):
        with pytest.raises(type(error)) as told:
            cache["key"]
        assert str(told.value) == str(error)
        assert vars(told.value) == vars(error)
        assert told.value is not error
    (kept,) = cache._failures.values()
    assert (kept.__traceback__, kept.__cause__, kept.__context__) == (None, None, None)
    assert cache.failure("another") is None


def failing(error: Exception) -> Callable[[], object]:
    def work() -> object:
        raise error

    return work


def test_cache_remembers_unforeseen_errors(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path)
    with pytest.raises(Unforeseen, match=r"IndexError: .*\(test_result_cache.py:\d+\)") as caught:
        cache.unless_failed("one", failing(IndexError("no such round")))
    assert isinstance(caught.value.__cause__, IndexError)
    with pytest.raises(Unforeseen, match="no such round") as again:
        cache.unless_failed("one", lambda: pytest.fail("tried again"))
    assert again.value.__cause__ is None
    assert "one" in cache


def test_cache_gives_up_on_a_repeated_error(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path)
    cache.put("known", RUN)
    for key, error in (("one", IndexError("a")), ("two", KeyError("b"))):
        with pytest.raises(Unforeseen):
            cache.unless_failed(key, failing(error))
    with pytest.raises(UnforeseenAgain, match="KeyError"):
        cache.unless_failed("three", failing(KeyError("c")))
    for key in ("four", "one"):
        with pytest.raises(UnforeseenAgain):
            cache.unless_failed(key, lambda: pytest.fail("tried"))
    assert cache["known"] == RUN


@pytest.mark.parametrize("error", [RigError("a"), InvalidMeasurement("a")])
def test_cache_never_gives_up_on_rig_errors(tmp_path: Path, error: RigError) -> None:
    cache = ResultCache(tmp_path)
    for key in range(5):
        with pytest.raises(type(error)) as caught:
            cache.unless_failed(key, failing(error))
        assert caught.value is error
    assert cache.unless_failed("more", lambda: 7) == 7


@pytest.mark.parametrize("error", [KeyboardInterrupt, MachineLost])
def test_cache_forgets_what_ends_the_run(tmp_path: Path, error: type[BaseException]) -> None:
    cache = ResultCache(tmp_path)

    def work() -> object:
        raise error

    with pytest.raises(error):
        cache.unless_failed("one", work)
    assert cache.unless_failed("one", lambda: 7) == 7
