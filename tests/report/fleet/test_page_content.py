from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest
from support.builders.kept_fleets import KeptBay, KeptPromise, keep_fleet
from support.builders.report_page import Reader

from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.stats import throughput
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.fleet import folder as fleets
from pytest_ssdqual.report.fleet import page_content, view
from pytest_ssdqual.report.fleet.folder import FleetBay
from pytest_ssdqual.report.fleet.page_content import compose
from pytest_ssdqual.report.fleet.view import FleetView, together
from pytest_ssdqual.report.html import page as any_page
from pytest_ssdqual.report.run_folder.journal import SCHEMA
from pytest_ssdqual.report.run_summary.fitness import Fitness, PageVerdict
from pytest_ssdqual.report.view.tables import MeasuredCell

GOOD, BAD, OPEN = KeptPromise(12_000), KeptPromise(8_000), KeptPromise(10_000)
SLOW = KeptPromise(600_000, 500_000, Claim.P99_LATENCY)
NEVER = FleetBay("dut9", "bays/dut9", "root@dut9", {}, {}, "root@dut9 cannot be reached")


def told(*bays: KeptBay, root: Path, never: tuple[FleetBay, ...] = (), ended: bool = True) -> PageVerdict:
    return together(FleetView.read(keep_fleet(root, bays, *never, ended=ended)))


def bay(name: str, *promises: KeptPromise, **more: object) -> KeptBay:
    return KeptBay(name, promises, **more)  # type: ignore[arg-type]


def test_all_bays_keep_all(tmp_path: Path) -> None:
    found = told(bay("dut1", GOOD), bay("dut2", GOOD), root=tmp_path)
    assert (found.fitness, "2 bays" in found.sentence) == (Fitness.FIT, True)
    assert found.use.startswith("For acceptance: ")
    assert found.remarks == (throughput.repeatability(),)


def test_broken_bays_are_named_and_a_broken_rig_is_no_verdict(tmp_path: Path) -> None:
    bays = (bay("dut1", GOOD), bay("dut2", BAD), bay("dut3", GOOD, errors=["fio was lost"]), bay("dut4", OPEN))
    found = told(*bays, root=tmp_path, never=(NEVER,))
    assert found.word == "Not fit"
    assert found.sentence == "1 of 5 bays failed: dut2; 1 passed."
    (folder,) = tmp_path.iterdir()
    assert FleetView.read(folder).by_fitness == {
        Fitness.FIT: ("dut1",),
        Fitness.NOT_FIT: ("dut2",),
        Fitness.UNDECIDED: ("dut4",),
        Fitness.NO_VERDICT: ("dut3",),
        None: ("dut9",),
    }
    assert found.remarks == (
        "dut9 was not started: root@dut9 cannot be reached",
        "dut3: 1 test ended in an error, which says nothing about the drives.",
        "dut4: 1 promise is inconclusive: the measurement does not decide.",
        throughput.repeatability(),
    )


@pytest.mark.parametrize(
    ("bays", "never", "ended", "fitness"),
    [
        ((bay("dut1", GOOD), bay("dut2", GOOD, errors=["lost"])), (), True, Fitness.NO_VERDICT),
        ((bay("dut1", GOOD), bay("dut2", OPEN)), (), True, Fitness.UNDECIDED),
        ((bay("dut1", GOOD), bay("dut2", GOOD, ended=None)), (), True, Fitness.NO_VERDICT),
        ((bay("dut1", GOOD), bay("dut2")), (), True, Fitness.NO_VERDICT),
        ((bay("dut1", GOOD),), (NEVER,), True, Fitness.NO_VERDICT),
        ((bay("dut1", GOOD),), (), False, Fitness.NO_VERDICT),
        ((), (NEVER,), True, Fitness.NO_VERDICT),
        ((), (), True, Fitness.NO_VERDICT),
    ],
    ids=["error", "undecided", "killed", "nothing judged", "never begun", "not ended", "none begun", "no bay"],
)
def test_nothing_is_fit_of_which_something_is_not_known(
    tmp_path: Path, bays: tuple[KeptBay, ...], never: tuple[FleetBay, ...], ended: bool, fitness: Fitness
) -> None:
    found = told(*bays, root=tmp_path, never=never, ended=ended)
    assert found.fitness is fitness
    assert found.use.startswith("Not for acceptance")
    (folder,) = tmp_path.iterdir()
    assert not FleetView.read(folder).by_fitness[Fitness.NOT_FIT]


def test_one_rehearsal_among_the_bays_decides_nothing(tmp_path: Path) -> None:
    found = told(bay("dut1", GOOD), bay("dut2", GOOD, acceptance=False), root=tmp_path)
    assert not found.acceptance
    assert "dut2" in found.use


def next_steps(*bays: KeptBay, root: Path, never: tuple[FleetBay, ...] = ()) -> list[tuple[str, str]]:
    return [(each.text, each.command) for each in compose(FleetView.read(keep_fleet(root, bays, *never)))["steps"]]


def test_the_next_step_names_the_bays_that_it_is_about(tmp_path: Path) -> None:
    bays = (bay("dut1", GOOD), bay("dut2", BAD), bay("dut3", BAD), bay("dut4", GOOD, ended=None))
    found = next_steps(*bays, root=tmp_path, never=(NEVER,))
    folder = next(tmp_path.glob("*/fleet.json")).parent.name
    assert [text.partition(":")[0] for text, _ in found] == ["dut2, dut3", "dut4", "dut9"]
    # A bay is resumed by the name of the run of all bays.
    assert [command for _, command in found] == ["", f"--ssd-resume={folder}", f"--ssd-resume={folder}"]


def test_the_next_step_of_all_bays_names_none(tmp_path: Path) -> None:
    ((text, _),) = next_steps(bay("dut1", BAD), bay("dut2", BAD), root=tmp_path)
    assert "dut" not in text
    ((text, command),) = next_steps(bay("dut3", GOOD), bay("dut4", GOOD), root=tmp_path / "good")
    assert "baseline" in text
    assert command.endswith("/bays/dut3 -o certificate.pdf")


def test_a_damaged_fleet_json_leaves_the_bays_and_is_told(tmp_path: Path) -> None:
    folder = keep_fleet(tmp_path, [bay("dut1", GOOD)])
    (folder / "fleet.json").write_text("{")
    seen = FleetView.read(folder)
    found = together(seen)
    assert (found.word, seen.by_fitness[Fitness.FIT]) == ("No verdict", ("dut1",))
    assert "bays are unknown" in found.remarks[0]


def test_bays_are_columns_with_figure_interval_and_outcome(tmp_path: Path) -> None:
    folder = keep_fleet(tmp_path, [bay("dut1", GOOD, SLOW), bay("dut2", BAD)], NEVER)
    page = page_content.write(folder)
    read = Reader.of(page.read_text())
    assert read.headings[0] == (1, "✗ Not fit")
    (row,) = (row for row in compose(FleetView.read(folder))["promised"].rows if row[0] == "steady IOPS")
    assert row[:4] == ("steady IOPS", "raid5x4", "randread_4k_qd8", "≥ 10,000 IOPS")
    assert row[4] == MeasuredCell("12,000 IOPS", "11,880…12,120 IOPS", Finding.PASS)
    assert "7,920…8,080 IOPS ✗" in read.text
    assert [each["href"] for each in read.all("a") if "bays/" in each["href"]][:1] == []
    assert "dut9root@dut9" in read.text
    assert "script" not in {name for name, _ in read.elements}
    (policy,) = (each["content"] for each in read.all("meta") if each.get("http-equiv") == "Content-Security-Policy")
    assert policy == any_page.policy()
    modes = {stat.S_IMODE((folder / name).stat().st_mode) for name in ("report.html", "summary.md")}
    assert modes == {0o600}


def test_a_bay_leads_to_its_own_page(tmp_path: Path) -> None:
    folder = keep_fleet(tmp_path, [bay("dut1", GOOD), bay("dut2", GOOD)])
    (folder / "bays" / "dut1" / "report.html").touch()
    links = [each["href"] for each in Reader.of(page_content.write(folder).read_text()).all("a")]
    assert "bays/dut1/report.html" in links
    assert "bays/dut2/report.html" not in links


def test_many_bays_are_condensed_and_the_worst_is_named(tmp_path: Path) -> None:
    bays = [bay(f"dut{number:02}", KeptPromise(12_000 + number)) for number in range(11)]
    folder = keep_fleet(tmp_path, [*bays, bay("slow", BAD)])
    page = compose(FleetView.read(folder))
    ((*_, least, median, most, worst, broken, outcome),) = page["promised"].rows
    assert (least, median, most) == ("8,000 IOPS", "12,004 IOPS", "12,010 IOPS")
    assert (str(worst).split(":")[0], broken, outcome) == ("slow", "1 of 12", "fail")
    lot = page_content.render(page).partition('<section aria-labelledby="lot">')[2].partition("</section>")[0]
    _, _, n, mean, deviation, *_, stands_out, kept, share = re.findall("<td>([^<]*)</td>", lot)
    assert (n, mean, deviation) == ("12", "11,671 IOPS", "1,156 IOPS")
    assert str(stands_out).startswith("slow (-")
    # binom.test(11, 12) of R: 0.6152038 to 0.9978924.
    assert (kept, share) == ("11 of 12", "61.5…99.8 %")
    assert page["standing_out"][0].startswith("slow stands out")
    assert len(page["charts"]) == 1


def test_an_undecided_bay_widens_the_share_to_both_sides(tmp_path: Path) -> None:
    (row,) = view.rows(FleetView.read(keep_fleet(tmp_path, [bay("a", GOOD), bay("b", OPEN), bay("c", BAD)])))
    share = row.share()
    assert share
    assert share[:3] == (1, 1, 3)
    assert share[3] == pytest.approx(0.0084, abs=1e-4)
    assert share[4] == pytest.approx(0.9916, abs=1e-4)


def test_what_differs_is_told_with_the_bays(tmp_path: Path) -> None:
    facts = {"machine_id": "x", "fio": "3.36", "kernel": "6.1"}
    folder = keep_fleet(
        tmp_path, [bay("dut1", GOOD), bay("dut2", GOOD), bay("dut3", GOOD, protocol="other", facts=facts)]
    )
    told = page_content.differing(FleetView.read(folder))
    assert [each.split(":")[1].strip() for each in told] == ["protocol", "fio"]
    assert re.match(r"differs: fio: 3.33 .*dut1, dut2; 3.36 .*dut3", told[1])


def test_side_by_side_in_a_terminal(tmp_path: Path) -> None:
    folder = keep_fleet(tmp_path, [bay("dut1", GOOD), bay("dut2", BAD)], NEVER)
    lines = page_content.summary_lines(FleetView.read(folder), 100)
    assert lines[0].startswith("Not fit: ")
    assert "  steady IOPS raid5x4 randread_4k_qd8  ≥ 10,000 IOPS  12,000 IOPS  8,000 IOPS!" in lines
    assert max(map(len, lines)) <= 100
    for width in (1, 40, 80):
        assert page_content.summary_lines(FleetView.read(folder), width)


def test_nothing_that_others_wrote_is_markup_or_moves_a_terminal(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\x1b[2J|`"
    named = FleetBay("dut9", "bays/dut9", evil, {evil: evil}, {}, evil)
    folder = keep_fleet(tmp_path, [bay("dut1", BAD, errors=[evil], facts={"machine_id": "m", evil: evil})], named)
    text = page_content.write(folder).read_text()
    assert "<script" not in text
    assert "\x1b" not in text + (folder / "summary.md").read_text() + "".join(
        page_content.summary_lines(FleetView.read(folder), 80)
    )
    assert "<script" not in "".join(
        part for number, part in enumerate((folder / "summary.md").read_text().split("`")) if number % 2 == 0
    )


def test_hostile_records_and_manifests_cost_only_themselves(tmp_path: Path) -> None:
    folder = keep_fleet(tmp_path, [bay("dut1", GOOD), bay("dut2", GOOD)])
    bays = folder / "bays"
    record = plain(GOOD.evidence())
    line = f'{{"schema":{SCHEMA},"kind":"verdict","time":"t","test":"x",'
    wrong: list[dict[str, object]] = [{"geometries": []}, {"workloads": []}, {"estimate": 7}, {"group": "g" * 100_000}]
    with (bays / "dut1" / "records.jsonl").open("a") as file:
        for changed in wrong:
            file.write(line + json.dumps({**record, **changed})[1:] + "\n")
    (bays / "dut2" / "manifest.json").write_text('{"bays": 7, "sessions": {}, "versions": []}')
    (bays / "other one").mkdir()
    (bays / "other one" / "records.jsonl").symlink_to("/etc/passwd")
    text = page_content.write(folder).read_text()
    assert "root:" not in text
    assert "No verdict" in text
    assert len(text) < 1_000_000


def test_a_huge_fleet_json_is_no_huge_page(tmp_path: Path) -> None:
    labels = {f"{number} {'x' * 2_000}": "y" * 2_000 for number in range(20)}
    bays = [FleetBay(f"b{number}", f"bays/b{number}", "m" * 5_000, labels, {}, "r" * 5_000) for number in range(60)]
    bays += [FleetBay(f"c{number}", f"bays/c{number}", "m") for number in range(3_000)]
    made = fleets.create(tmp_path, "aaaa", bays)
    assert page_content.write(made.path).stat().st_size < 1_000_000
    assert (made.path / "summary.md").stat().st_size < 250_000
    lines = page_content.summary_lines(FleetView.read(made.path), 100)
    assert sum(map(len, lines)) < 50_000
    assert any(line.startswith("3,040 more rows") for line in lines)


def test_a_hundred_bays_of_forty_promises_are_a_small_page(tmp_path: Path) -> None:
    promises = [KeptPromise(12_000 + 10 * qd, geometry=f"raid5x{width}") for width in range(3, 13) for qd in (1, 2)]
    promises = [
        KeptPromise(each.value, geometry=each.geometry, claim=claim)
        for each in promises[::2]
        for claim in (Claim.STEADY_IOPS, Claim.P99_LATENCY, Claim.P50_LATENCY, Claim.MAX_LATENCY)
    ]
    assert len(promises) == 40
    first = bay("dut00", *promises).keep(tmp_path / "first")
    made = fleets.create(tmp_path, "aaaa", [])
    for number in range(100):
        to = made.path / "bays" / f"dut{number:02}"
        to.mkdir()
        for name in ("records.jsonl", "manifest.json"):
            (to / name).hardlink_to(first / name)
    page = page_content.write(made.path)
    assert page.stat().st_size < 3_000_000
    assert "100 bays" in page.read_text()


def test_margins_of_bays_are_side_by_side(tmp_path: Path) -> None:
    page = compose(FleetView.read(keep_fleet(tmp_path, [bay("dut1", GOOD, SLOW), bay("dut2", BAD)])))
    assert page["matrix"].columns == ("dut1", "dut2")
    html = page_content.render(page)
    shown = html[html.index('<table class="matrix"') :].partition("</table>")[0]
    assert shown.count("data-margin=") == 4
    assert "<details>" not in shown
    assert shown.count("-20.0 %") == 2
