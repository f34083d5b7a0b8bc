from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.kept_runs import READS, Kept, KeptMeasurement, append

from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.verdict.ratio import BUCKET, ChangeKind, paired
from pytest_ssdqual.report.compare.circumstances import Weight
from pytest_ssdqual.report.compare.compare import Comparison, NotComparable, compare
from pytest_ssdqual.report.compare.compared_run import ComparedRun

LATENCY = KeptMeasurement(900_000, Claim.P99_LATENCY)


def told(tmp_path: Path, *runs: Kept) -> list[ComparedRun]:
    return [ComparedRun.read(run.keep(tmp_path / f"run-{index}")) for index, run in enumerate(runs)]


def compared(tmp_path: Path, *runs: Kept, **more: float) -> Comparison:
    return compare(told(tmp_path, *runs), **more)  # type: ignore[arg-type]


def shown(found: Comparison) -> dict[str, ChangeKind]:
    return {pair.key.claim: pair.change.shown for other in found.others for pair in other.pairs}


def test_worse_is_told_by_the_direction_of_the_claim(tmp_path: Path) -> None:
    found = compared(
        tmp_path,
        Kept([KeptMeasurement(12_000), LATENCY]),
        Kept([KeptMeasurement(11_000), KeptMeasurement(800_000, Claim.P99_LATENCY)]),
    )
    assert shown(found) == {"steady_iops": ChangeKind.WORSE, "p99_latency": ChangeKind.BETTER}
    (other,) = found.others
    assert other.pairs[1].change.ratio.value == pytest.approx(11 / 12)
    assert other.count(ChangeKind.WORSE) == other.count(ChangeKind.BETTER) == 1
    assert found.judged == 2


def test_a_run_and_its_copy_do_not_differ(tmp_path: Path) -> None:
    run = Kept([KeptMeasurement(12_000), LATENCY])
    found = compared(tmp_path, run, run)
    assert set(shown(found).values()) == {ChangeKind.OPEN}
    assert found.differences == ()


def test_another_load_of_fio_is_a_difference(tmp_path: Path) -> None:
    runs = [
        replace(each, load=load) for each, load in zip(told(tmp_path, *[Kept([LATENCY])] * 2), ("a", "b"), strict=True)
    ]
    (difference,) = compare(runs).differences
    assert (difference.name, difference.values, difference.weight) == ("load of fio", ("a", "b"), Weight.LOUD)


def test_other_states_of_write_caches_are_a_loud_difference(tmp_path: Path) -> None:
    runs = [
        replace(each, write_caches=state)
        for each, state in zip(told(tmp_path, *[Kept([LATENCY])] * 2), ("off", "on"), strict=True)
    ]
    (difference,) = compare(runs).differences
    assert (difference.name, difference.values, difference.weight) == ("write caches", ("off", "on"), Weight.LOUD)


def test_facts_are_held_against_each_other(tmp_path: Path) -> None:
    facts = {"machine_id": "m2", "fio": "3.36", "kernel": "6.1", "boot_id": "new every time"}
    found = compared(
        tmp_path,
        Kept([LATENCY]),
        Kept([LATENCY], firmware="B2", model="ACME 10", serials=("S1", "S9"), facts=facts),
    )
    differences = {fact.name: fact for fact in found.differences}
    assert set(differences) == {"machine", "fio", "firmware", "model", "number of drives", "drives themselves"}
    assert differences["firmware"].values == ("A1", "B2")
    assert differences["drives themselves"].values[1] == "1 of the first run's, 1 others"
    assert differences["number of drives"].weight is differences["machine"].weight is Weight.LOUD
    assert "kernel" in {fact.name for fact in found.alike}


@pytest.mark.parametrize(
    ("one", "other", "values"),
    [
        ("16285432", "16285468", None),
        ("16285432", "32780428", ("15.5 GiB", "31.3 GiB")),
        ("16285432", "much", ("15.5 GiB", "much")),
    ],
)
def test_memory_differs_by_modules_not_by_pages(
    tmp_path: Path, one: str, other: str, values: tuple[str, str] | None
) -> None:
    kept = [Kept([LATENCY], facts={"machine_id": "m1", "memory_kib": kib}) for kib in (one, other)]
    found = {fact.name: fact.values for fact in compared(tmp_path, *kept).differences}
    assert found.get("memory_kib") == values


def test_another_protocol_is_refused(tmp_path: Path) -> None:
    runs = told(tmp_path, Kept([LATENCY]), Kept([LATENCY], protocol="fill = 2\n"))
    with pytest.raises(
        NotComparable, match=r"the protocol differs: quick \(\w{12}\) in run-0, quick \(\w{12}\) in run-1"
    ):
        compare(runs)
    found = compare(runs, anyway=True)
    assert found.differences[0].weight is Weight.FORBIDS
    with pytest.raises(ValueError, match="at least two runs"):
        compare(runs[:1])


def test_a_workload_that_is_defined_differently_is_left_out(tmp_path: Path) -> None:
    found = compared(tmp_path, Kept([LATENCY]), Kept([LATENCY], asked={"random_percent": 50}))
    assert found.others[0].pairs == ()
    assert found.others[0].left_out == {"the workload of this name is defined differently": 1}


def test_percentages_of_different_things_are_left_out(tmp_path: Path) -> None:
    one, other = (KeptMeasurement(90, relative_to=f"randwrite_4k_qd{depth}") for depth in (1, 8))
    found = compared(tmp_path / "a", Kept([one]), Kept([other]))
    assert (found.others[0].pairs, found.others[0].undecided) == ((), 1)
    (pair,) = compared(tmp_path / "b", Kept([one]), Kept([one])).others[0].pairs
    assert pair.change.ratio.value == 1


def test_a_latency_in_per_cent_of_another_is_a_whole_itself(tmp_path: Path) -> None:
    one, other = (KeptMeasurement(each, Claim.P99_LATENCY, relative_to="randwrite_4k_qd8") for each in (100, 200))
    (pair,) = compared(tmp_path, Kept([one]), Kept([other])).others[0].pairs
    assert pair.change.ratio.value == pytest.approx(2)


@given(st.permutations([2, 4, 8]), st.permutations([2, 4, 8]))
def test_each_number_of_drives_is_compared_with_itself(first: list[int], now: list[int]) -> None:
    def kept(widths: list[int], factor: float) -> Kept:
        drives = {width: {f"S{index}": 1000.0 * width for index in range(width)} for width in widths}
        return Kept([
            KeptMeasurement(1000.0 * width * factor, geometry=f"drivex{width}", drives=drives[width])
            for width in widths
        ])  # fmt: skip

    with TemporaryDirectory() as folder:
        found = compared(Path(folder) / "runs", kept(first, 1), kept(now, 1))
    (against,) = found.others
    assert len(against.pairs) == 3
    assert {pair.key.geometry for pair in against.pairs} == {"drive", "drivex2", "drivex4"}
    assert all(pair.change.ratio.value == pytest.approx(1) for pair in against.pairs)


def test_what_only_one_run_has_is_counted(tmp_path: Path) -> None:
    found = compared(
        tmp_path, Kept([LATENCY, KeptMeasurement(5)]), Kept([LATENCY, KeptMeasurement(5, geometry="raid5x5")])
    )
    assert (found.others[0].only_old, found.others[0].only_new) == (1, 1)
    assert len(found.others[0].pairs) == 1


def test_a_figure_of_nothing_is_not_compared(tmp_path: Path) -> None:
    found = compared(tmp_path, Kept([KeptMeasurement(0)]), Kept([KeptMeasurement(5)]))
    assert found.others[0].left_out == {"one of the figures is not positive": 1}


def lot(values: dict[str, float]) -> Kept:
    geometry = f"drivex{len(values)}"
    return Kept([KeptMeasurement(min(values.values()), geometry=geometry, drives=values)], serials=tuple(values))


def test_the_same_drives_are_compared_in_pairs(tmp_path: Path) -> None:
    """They differ by a factor of two among each other, and each has lost 5 %."""
    old = {f"S{index}": 1000.0 * (1 + index / 4) for index in range(5)}
    found = compared(tmp_path, lot(old), lot({name: 0.95 * value for name, value in old.items()}))
    (pair,) = found.others[0].pairs
    assert pair.paired == 5
    assert pair.change.shown is ChangeKind.WORSE
    assert pair.change.ratio.value == pytest.approx(0.95)
    others = {f"T{name}": 0.95 * value for name, value in old.items()}
    (pair,) = compared(tmp_path / "other", lot(old), lot(others)).others[0].pairs
    assert pair.paired == 0
    assert pair.change.shown is ChangeKind.OPEN


def test_readings_of_the_same_drives_stay_readings(tmp_path: Path) -> None:
    def run(*values: float) -> Kept:
        drives = {f"S{index}": value for index, value in enumerate(values)}
        figure = KeptMeasurement(
            values[0], Claim.MAX_LATENCY, "drivex3", is_reading=True, drives=drives, drives_percent=5.0
        )
        return Kept([figure])

    found = compared(tmp_path, run(3e7, 3.1e7, 2.9e7), run(4e7, 4.1e7, 3.9e7))
    assert shown(found) == {"max_latency": ChangeKind.WORSE_READ}
    assert found.judged == 0
    (other,) = found.others
    assert [pair.drive for pair in other.pairs] == [""]
    assert other.left_out == {}


def test_drives_that_moved_by_one_bucket_do_not_differ(tmp_path: Path) -> None:
    """All of them stood at its edge; their ratios agree to the last digit."""
    old, new = (dict.fromkeys(("S1", "S2", "S3"), value) for value in (1_044_480, 1_060_864))

    def run(drives: dict[str, int]) -> Kept:
        figure = KeptMeasurement(drives["S1"], Claim.P90_LATENCY, "drivex3", half_percent=0.78, n=10**6, drives=drives)
        return Kept([figure])

    assert shown(compared(tmp_path, run(old), run(new))) == {"p90_latency": ChangeKind.OPEN}


def test_one_worse_drive_of_many_does_not_hide_in_their_mean(tmp_path: Path) -> None:
    drives = {f"S{index}": 10_000.0 + 10 * index for index in range(8)}
    worse = {**drives, "S3": 3_300.0}

    def run(values: dict[str, float], percent: float | None) -> Kept:
        figure = KeptMeasurement(min(values.values()), geometry="drivex8", drives=values, drives_percent=percent)
        return Kept([figure], serials=tuple(values))

    (other,) = compared(tmp_path, run(drives, 2.0), run(worse, 2.0)).others
    whole, *each = other.pairs
    assert (whole.paired, whole.drive, whole.change.shown) == (8, "", ChangeKind.OPEN)
    assert {pair.drive: pair.change.shown for pair in each if pair.change.shown is not ChangeKind.OPEN} == {
        "S3": ChangeKind.WORSE
    }
    assert [pair.drive for pair in each] == list(drives)
    assert other.undecided == 0


def test_drives_without_intervals_are_compared_as_a_whole(tmp_path: Path) -> None:
    drives = {f"S{index}": 10_000.0 for index in range(4)}
    runs = [
        Kept([KeptMeasurement(10_000, geometry="drivex4", drives=drives, drives_percent=percent)])
        for percent in (None, 1.0)
    ]
    (other,) = compared(tmp_path, *runs).others
    assert [pair.drive for pair in other.pairs] == [""]


def test_a_drive_is_as_unsure_as_its_own_rounds(tmp_path: Path) -> None:
    """Alone at 95 % a change of 3 % of one drive with ±2 % is shown; among forty drives it is not."""
    drives = {f"S{index}": 10_000.0 for index in range(40)}
    runs = [
        Kept([KeptMeasurement(min(values.values()), geometry="drivex40", drives=values, drives_percent=2.0)])
        for values in (drives, {**drives, "S7": 9_600.0})
    ]
    (other,) = compared(tmp_path, *runs).others
    assert {pair.change.shown for pair in other.pairs if pair.drive == "S7"} == {ChangeKind.WORSE_ALONE}


def test_widths_of_buckets_are_added_to_the_scatter_of_drives(tmp_path: Path) -> None:
    old, times = {f"S{index}": 1e6 for index in range(4)}, (1.1, 1.2, 1.3, 1.4)
    new = {name: value * each for (name, value), each in zip(old.items(), times, strict=True)}
    runs = [Kept([KeptMeasurement(1e6, Claim.P90_LATENCY, "drivex4", drives=each)]) for each in (old, new)]
    ratio = compared(tmp_path, *runs).others[0].pairs[0].change.ratio
    alone = paired(new, old)
    assert math.log(ratio.high / alone.high) == pytest.approx(2 * BUCKET)


def test_a_latency_of_five_rounds_is_as_unsure_as_five_rounds(tmp_path: Path) -> None:
    """Without intervals for smaller shares, n does not say how many rounds there were."""
    workloads = [
        KeptMeasurement(1e6, Claim.P90_LATENCY, geometry=f"raid5x{n}", half_percent=3, n=10**7) for n in range(3, 9)
    ]
    slower = [replace(each, value=1.08e6) for each in workloads]
    found = compared(tmp_path, Kept(workloads), Kept(slower))
    assert set(shown(found).values()) == {ChangeKind.WORSE_ALONE}


def test_what_was_recorded_for_smaller_shares_is_what_counts(tmp_path: Path) -> None:
    folders = [
        Kept([KeptMeasurement(value)] * 1).keep(tmp_path / name) for name, value in (("a", 12_000), ("b", 11_000))
    ]
    assert shown(compare([ComparedRun.read(each) for each in folders])) == {"steady_iops": ChangeKind.WORSE}
    for folder in folders:
        path = folder / "records.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        lines[-1]["wider"] = [{"share": share, "low": None, "high": None} for share in (0.1, 0.01)]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    first, other = (ComparedRun.read(each) for each in folders)
    assert compare([first, other, other]).others[0].pairs[0].change.shown is ChangeKind.WORSE_ALONE


def test_lots_of_different_size_are_compared_by_typical_drives(tmp_path: Path) -> None:
    old = {f"S{index}": 1000.0 + index for index in range(8)}
    new = {f"T{index}": 900.0 + index for index in range(6)}
    (pair,) = compared(tmp_path, lot(old), lot(new)).others[0].pairs
    assert pair.key.geometry == "drive"
    assert pair.change.shown is ChangeKind.WORSE
    assert pair.change.ratio.value == pytest.approx(902.5 / 1003.5, rel=1e-4)


@pytest.mark.parametrize(
    ("claim", "more"),
    [
        ("conforming_drives", {"about": "lot", "group": "p99_latency"}),
        ("inspected_power_on_hours", {"direction": "at_most"}),
    ],
)
def test_a_number_of_drives_is_not_compared_by_their_figures(
    tmp_path: Path, claim: str, more: dict[str, object]
) -> None:
    """The latency of a lot's drives doubles: that is no better number of conforming drives."""
    runs = []
    for factor in (1, 2):
        drives = {f"S{number}": factor * (1e5 + number) for number in range(1, 5)}
        counted = KeptMeasurement(4, Claim.CONFORMING_DRIVES, "drivex4", is_reading=True, drives=drives)
        folder = Kept([]).keep(tmp_path / f"run-{factor}")
        append(folder, kind="observation", **{**counted.record(), "claim": claim, **more})
        runs.append(ComparedRun.read(folder))
    ((pair,),) = [other.pairs for other in compare(runs).others]
    assert (pair.old.estimate.value, pair.new.estimate.value) == (4, 4)
    assert pair.change.shown is ChangeKind.OPEN


def test_run_to_run_scatter_widens_every_interval(tmp_path: Path) -> None:
    runs = Kept([KeptMeasurement(12_000)]), Kept([KeptMeasurement(11_600)])
    assert shown(compared(tmp_path / "a", *runs)) == {"steady_iops": ChangeKind.WORSE}
    assert shown(compared(tmp_path / "b", *runs, run_to_run_percent=3.0)) == {"steady_iops": ChangeKind.OPEN}


def test_several_runs_are_one_family(tmp_path: Path) -> None:
    """What is shown of one run is not, if there are forty of them."""
    first, other = Kept([KeptMeasurement(12_000)]), Kept([KeptMeasurement(11_780)])
    runs = told(tmp_path, first, *[other] * 40)
    alone = compare(runs[:2])
    assert alone.others[0].pairs[0].change.shown is ChangeKind.WORSE
    found = compare(runs)
    assert found.judged == 40
    assert {shown for each in found.others for shown in (each.pairs[0].change.shown,)} == {ChangeKind.WORSE_ALONE}


def test_a_folder_with_damaged_records_is_read(tmp_path: Path) -> None:
    folder = Kept([LATENCY, KeptMeasurement(5)]).keep(tmp_path / "run")
    path = folder / "records.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[-1]["low"] = 7  # above its figure
    path.write_text("".join(map("{}\n".format, map(json.dumps, lines))) + "half a li")
    (folder / "manifest.json").write_text("[]")
    run = ComparedRun.read(folder)
    assert run.unreadable == 1
    assert {key.claim for key in run.figures} == {"p99_latency"}
    assert run.asked.keys() == {str(READS)}
    assert compare([run, run]).others[0].pairs


def test_percentages_near_zero_are_compared_as_distances(tmp_path: Path) -> None:
    found = compared(
        tmp_path,
        Kept([KeptMeasurement(0.006, Claim.SCALING_DEVIATION)]),
        Kept([KeptMeasurement(40.0, Claim.SCALING_DEVIATION)]),
        Kept([KeptMeasurement(0.0, Claim.SCALING_DEVIATION)]),
    )
    ratios = [pair.change.ratio.value for other in found.others for pair in other.pairs]
    assert ratios == pytest.approx([1.4, 1.0], rel=1e-3)
    assert found.others[0].pairs[0].change.shown is ChangeKind.WORSE
