from __future__ import annotations

from dataclasses import replace

from support.builders import strategies
from support.documents import golden

from pytest_ssdqual.qual.explore import search as searching
from pytest_ssdqual.qual.explore.dimensions import Budget, Space
from pytest_ssdqual.qual.explore.search import Probed, ProbedFigures, Suspect, WorkloadSearch
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.verdict import Outcome, Verdict, judge_all
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence import evidence
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.evidence.searches import of_confirmed, of_search
from pytest_ssdqual.report.terminal.summary import table
from pytest_ssdqual.report.view.sections import conclusions

SPACE = Space.of(Workload("randread", "4k", 1))
LIMIT = Limit(Direction.AT_LEAST, 800.0, Unit.IOPS, "acme.toml promise[0]")
PLAIN, DEEP, SYNC = SPACE.plain, Workload("randread", "4k", 8), Workload("randwrite", "64k", 1, offset="512", sync=True)


def verdicts(workload: Workload, *iops: int) -> tuple[Verdict, ...]:
    measured = Measured((strategies.side_by_side([[each] * 5 for each in iops], workload=workload),))
    return judge_all(Claim.STEADY_IOPS, measured, LIMIT)


def probed(workload: Workload, *iops: int) -> Probed:
    return Probed(workload, 6.0, verdicts(workload, *iops))


def search(*found: Probed, suspects: tuple[Suspect, ...] = (), is_cut: bool = False) -> WorkloadSearch:
    geometry = Geometry.parse("drivex2")
    return WorkloadSearch(
        SPACE, geometry, "ACME 9", Budget(600, 100), 6.0 * len(found), 0.0, found, suspects=suspects, is_cut=is_cut
    )


def suspect(workload: Workload, first: int, second: int | None) -> Suspect:
    seen = verdicts(workload, first)[0]
    verdict = None if second is None else verdicts(workload, second)[0]
    return Suspect(workload, seen, is_simplest=True, verdict=verdict, trouble="" if verdict else "not steady")


SOUND = (probed(PLAIN, 1000, 900), probed(DEEP, 1000, 1200))


def test_a_look_is_broken_if_any_promise_of_any_drive_is() -> None:
    assert probed(PLAIN, 1000, 500).look is ProbedFigures.BROKEN
    assert SOUND[0].look is ProbedFigures.KEPT
    assert Probed(PLAIN, 1.0, trouble=("not steady",)).look is ProbedFigures.UNMEASURABLE
    assert replace(SOUND[0], trouble=("too few I/Os",)).look is ProbedFigures.UNDECIDED


def test_what_was_searched_and_kept_passes_with_its_share() -> None:
    found = search(*SOUND, is_cut=True)
    assert (bool(found), found.outcome) == (True, Outcome.PASS)
    golden.same("searches.txt", [repr(found)])
    kept = of_search(found)
    assert (kept.outcome, kept.value, kept.limit, kept.n) == (Finding.PASS, 2, 2, 2)
    assert [(each.name, each.outcome) for each in kept.points] == [
        (str(PLAIN), Finding.PASS),
        (str(DEEP), Finding.PASS),
    ]
    assert kept.margin_percent == 12.5
    assert evidence.of_facts(plain(kept)) == kept


def test_what_could_not_be_measured_is_told() -> None:
    trouble = Probed(SYNC, 6.0, trouble=(f"{SYNC} on drivex2 is not steady",))
    found = search(*SOUND, trouble)
    assert found
    golden.same("searches.txt", [found.sentence(), *found.remarks()])


def test_a_search_of_mostly_too_short_probes_is_not_green() -> None:
    unseen = [Probed(DEEP.at(depth), 6.0, unseen=("max latency",)) for depth in (1, 2, 4)]
    assert {each.look for each in unseen} == {ProbedFigures.TOO_SHORT}
    # A longer probe may decide the promise that had too few I/Os.
    assert replace(unseen[0], trouble=("too few I/Os",)).look is ProbedFigures.UNMEASURABLE
    judged = [replace(each, unseen=("max latency",)) for each in SOUND]
    assert {each.look for each in judged} == {ProbedFigures.KEPT}
    assert search(*judged, *unseen[:2])
    blind = search(*judged, *unseen)
    assert (bool(blind), blind.outcome) == (False, Outcome.INCONCLUSIVE)
    golden.same("searches.txt", [blind.sentence()])
    found = of_search(blind)
    assert found.outcome is Finding.INCONCLUSIVE
    assert found.figures["workloads_too_short"] == 3
    assert [each.outcome for each in found.points[2:]] == [Finding.INCONCLUSIVE] * 3


def test_a_cleared_suspect_is_no_failure_and_counts_as_kept() -> None:
    found = search(*SOUND, probed(SYNC, 500, 500), suspects=(suspect(SYNC, 500, 1000),))
    assert found
    assert found.counts[ProbedFigures.KEPT] == 3
    golden.same("searches.txt", found.remarks())


def test_a_suspect_neither_confirmed_nor_cleared_is_not_green() -> None:
    found = search(*SOUND, probed(SYNC, 500, 500), suspects=(suspect(SYNC, 500, None),))
    assert (bool(found), found.outcome) == (False, Outcome.INCONCLUSIVE)
    assert of_search(found).outcome is Finding.INCONCLUSIVE
    golden.same("searches.txt", [found.sentence()])


def test_a_suspect_that_may_not_be_measured_anew_is_not_green() -> None:
    found = search(*SOUND, probed(SYNC, 500), probed(DEEP.at(16), 500), suspects=(suspect(SYNC, 500, 1000),))
    assert (bool(found), found.outcome, found.untried) == (False, Outcome.INCONCLUSIVE, 1)
    golden.same("searches.txt", [found.sentence()])


def test_a_confirmed_one_is_told_with_its_search() -> None:
    one = suspect(SYNC, 500, 400)
    found = search(*SOUND, probed(SYNC, 500, 500), suspects=(one,))
    assert (bool(found), found.outcome) == (False, Outcome.FAIL)
    because = searching.because(found, one, "explore/found.fio")
    assert one.verdict is not None
    told = replace(one.verdict, because=because)
    whole = of_confirmed(evidence.of_verdict(told), found, "explore/found.fio")
    assert whole.raw == ("explore/found.fio",)
    golden.same("searches.txt", [because, *whole.remarks, *(line.text for line in table([whole], 100))])


def test_the_section_is_within_its_width() -> None:
    found = of_search(search(*SOUND))
    lines = list(conclusions([found], 40))
    assert max(len(line.text) for line in lines) <= 40
    assert lines[0].markup == ("green", "bold")


def test_its_margin_is_not_the_least_of_what_passed() -> None:
    found = of_search(search(*SOUND))
    assert not [line.text for line in table([found], 100) if line.text.startswith("least margin")]


def test_what_looked_broken_is_kept_with_its_margin() -> None:
    """A verdict is true only if it passed."""
    kept = of_search(search(*SOUND, probed(SYNC, 500, 500)))
    assert [each.figures.get("margin_percent") for each in kept.points] == [12.5, 25.0, -37.5]


def test_an_undecided_second_measurement_has_its_figure() -> None:
    seen = suspect(SYNC, 500, None)
    undecided = replace(seen, trouble="", verdict=replace(seen.seen, outcome=Outcome.INCONCLUSIVE))
    golden.same("searches.txt", search(*SOUND, probed(SYNC, 500, 500), suspects=(undecided,)).remarks())
