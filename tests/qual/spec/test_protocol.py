from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.spec.protocol_rules import (
    ArraySettings,
    ExploreRule,
    Fill,
    IntegrityRule,
    MeasureRule,
    PreconditionRule,
    SteadyRule,
    VerdictRule,
    VisitRule,
)
from pytest_ssdqual.qual.spec.toml import DocumentError

GOOD = """
acceptance = true
[fill]
passes = 2
bs = "128k"
[precondition]
step = "60 s"
limit = "25 min"
[measure]
ramp = "5 s"
window = "5 min"
repeats = 3
attempts = 1
"""


def load(text: str) -> protocol.Protocol:
    with TemporaryDirectory() as folder:
        path = Path(folder, "ours.toml")
        path.write_text(text, encoding="utf-8")
        return protocol.load(path)


def require_refused(text: str, sentence: str) -> None:
    with pytest.raises(DocumentError) as caught:
        load(text)
    assert any(sentence in error for error in caught.value.errors), caught.value.errors


def test_a_file_becomes_seconds() -> None:
    ours = load(GOOD)
    assert ours == protocol.Protocol(
        "ours",
        acceptance=True,
        fill=Fill(2, "128k"),
        precondition=PreconditionRule(60, 1500),
        measure=MeasureRule(5, 300, 3, 1),
    )
    assert (ours.purge, ours.steady, ours.array) == ("format", SteadyRule(), ArraySettings())
    assert ours.round_s == 60


def test_array_and_rule_may_be_set() -> None:
    more = (
        '[steady]\nwindow = 10\nrange_percent = 10\n[array]\nchunk = "256KiB"\nbitmap = "internal"\ngroup_threads = 4\n'
    )
    ours = load('purge = "discard"\n' + GOOD + more)
    assert ours.purge == "discard"
    assert ours.steady == SteadyRule(10, 10, 10)
    assert ours.array == ArraySettings("256k", "internal", 4096, 4)


def test_write_caches_stay_unless_a_protocol_demands_a_state() -> None:
    assert load(GOOD).write_cache == "as found"
    assert load('write_cache = "off"\n' + GOOD).write_cache == "off"
    with pytest.raises(DocumentError, match="write_cache: "):
        load("write_cache = false\n" + GOOD)
    demanded = {name: protocol.load(name).write_cache for name in protocol.shipped()}
    assert {name for name, state in demanded.items() if state != "as found"} == {"stec", "snia"}
    assert {demanded["stec"], demanded["snia"]} == {"off"}, "the papers' states"


def test_all_errors_at_once_each_with_its_place() -> None:
    bad = """
        acceptance = "yes"
        purge = "hammer"
        [fill]
        passes = -1
        bs = "128k\\nexec_prerun=reboot"
        [precondition]
        step = "5 min"
        limit = "1 min"
        [measure]
        ramp = 5
        window = "long"
        attempts = 0
        [array]
        chunk = "100k"
        bitmap = "/etc/passwd"
        stripe_cache_pages = 1
        spin = true
    """
    with pytest.raises(DocumentError) as caught:
        load(bad)
    lines = str(caught.value).splitlines()
    by_place = dict(line.removeprefix("ours.toml: ").split(": ", 1) for line in lines)
    assert set(by_place) == {
        "acceptance",
        "purge",
        "fill.passes",
        "fill.bs",
        "precondition",
        "measure.ramp",
        "measure.window",
        "measure.repeats",
        "measure.attempts",
        "array.chunk",
        "array.bitmap",
        "array.stripe_cache_pages",
        "array.spin",
    }
    assert "not a duration" in by_place["measure.window"]
    assert "limit (60 s)" in by_place["precondition"]


def test_rounds_shorter_than_fios_reports_are_refused() -> None:
    with pytest.raises(DocumentError, match=r"measure\.window \(4 s\)"):
        load(GOOD.replace('"5 min"', '"4 s"'))


def test_what_is_shipped() -> None:
    assert protocol.shipped() == (
        "acceptance", "intel", "intel910", "quick", "snia", "stec", "toms_s3500",
    )  # fmt: skip
    quick, intel = protocol.load("quick"), protocol.load("intel")
    assert not quick.acceptance
    assert (quick.measure.ramp_s, quick.measure.window_s, quick.round_s, quick.measure.repeats) == (1, 5, 1, 1)
    assert intel.acceptance
    # 12 minutes, the last 10 of which count, after two hours of writes, twice.
    assert (intel.measure.ramp_s, intel.measure.window_s, intel.precondition.step_s, intel.measure.repeats) == (
        120,
        600,
        7200,
        2,
    )
    with pytest.raises(DocumentError, match="acceptance, intel, intel910,"):
        protocol.load("slow")


def test_snia_counts_minutes_and_stec_writes_past_raw_capacity() -> None:
    snia, stec = protocol.load("snia"), protocol.load("stec")
    assert snia.acceptance
    assert stec.acceptance
    assert (snia.fill.passes, snia.round_s, snia.loop.cell_s, snia.loop.max_rounds) == (2, 60, 60, 25)
    assert stec.precondition.capacities > 2
    assert stec.measure.window_s == 600


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ('[loop]\ncell = "500 ms"', "loop.cell: should be greater than or equal to 1"),
        ("[loop]\nmax_rounds = 2", "loop.max_rounds: should be greater than or equal to 3"),
        ('[saturation]\nlimit = "-1 h"', "saturation.limit: "),
        ('[saturation]\nlimit = "1 min"\nsample = "10 s"', "saturation: the limit (60 s) has room for fewer than 10"),
        ('[rebuild]\nmin_rate = "20 MB/s"\nmax_rate = "10 MB/s"', "rebuild: max_rate (10000000 B/s) is below min_rate"),
        ('[array]\nraid10_layout = "n2 --force"', "array.raid10_layout: "),
        ('[array]\nexec_prerun = "rm"', "array.exec_prerun: unknown key"),
    ],
)
def test_nonsense_in_the_newer_tables_is_named_with_its_place(table: str, sentence: str) -> None:
    require_refused(GOOD + table, sentence)


VISITS = GOOD.split("[measure]")[0] + 'of = "drives"\n[measure]\nramp = "5 s"\n[visits]\n'


def test_a_verdict_is_as_sure_as_asked_for() -> None:
    assert load(GOOD).verdict == VerdictRule(0.95, 1.0, "none")
    table = '[verdict]\nconfidence = "99 %"\nindifference = "2.5 %"\nfamily = "bonferroni"\n'
    ours = load(GOOD + table)
    assert ours.verdict == VerdictRule(0.99, 2.5, "bonferroni")
    assert ours.visits is None


def test_a_protocol_has_visits_instead_of_a_window() -> None:
    assert load(VISITS).visits == VisitRule()
    ours = load(VISITS + 'cells = [3]\ncell = "20 s"\nramp = "2 s"\nrefresh = "0 s"\nrefresh_percent = 5\n')
    assert ours.visits == VisitRule((3,), 20, 2, 0, 5)
    assert (ours.measure.ramp_s, ours.measure.window_s, ours.measure.repeats) == (5, 20, 1)
    assert (VisitRule().before_first_look, VisitRule((3,)).before_first_look) == (2, 1)


def test_tails_may_have_a_window_of_their_own() -> None:
    plain = load(GOOD)
    assert (plain.window_of(tail=False), plain.window_of(tail=True)) == (300, 300)
    ours = load(GOOD.replace('window = "5 min"', 'window = "5 min"\ntail_window = "1 h"'))
    assert (ours.window_of(tail=False), ours.window_of(tail=True)) == (300, 3600)
    with pytest.raises(DocumentError, match=r"tail_window \(60 s\)"):
        load(GOOD.replace('window = "5 min"', 'window = "5 min"\ntail_window = "1 min"'))


@pytest.mark.parametrize("given", ['window = "5 min"', 'tail_window = "5 min"', "repeats = 1", "attempts = 2"])
def test_visits_exclude_a_fixed_length(given: str) -> None:
    name = given.split()[0]
    with pytest.raises(DocumentError, match=rf"measure\.{name}: is of measurements of a fixed length; .* leave it out"):
        load(VISITS.replace('ramp = "5 s"', f'ramp = "5 s"\n{given}'))


@pytest.mark.parametrize("name", ["window", "repeats", "attempts"])
def test_a_fixed_length_has_to_be_said(name: str) -> None:
    line = next(line for line in GOOD.splitlines() if line.startswith(name))
    with pytest.raises(DocumentError, match=rf"measure\.{name}: is missing"):
        load(GOOD.replace(line, ""))


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("cells = []", "visits.cells: "),
        ("cells = [2, 0]", "visits.cells[1]: should be greater than or equal to 1"),
        ('cell = "10 s"', "visits.cell (10 s) is 20 s at least for acceptance"),
        ("refresh_percent = 0", "visits.refresh_percent: should be greater than 0"),
        ("rounds = 3", "visits.rounds: unknown key"),
        ('[verdict]\nconfidence = "100 %"', "verdict.confidence: should be less than 100"),
        ('[verdict]\nconfidence = "5 %"', "verdict.confidence: should be greater than or equal to 50"),
        ('[verdict]\nfamily = "holm"', "verdict.family: "),
    ],
)
def test_visits_that_cannot_be_are_refused(table: str, sentence: str) -> None:
    require_refused(VISITS + table, sentence)


def test_acceptance_conditions_by_volume_and_judges_in_visits() -> None:
    ours = protocol.load("acceptance")
    assert ours.acceptance
    assert ours.visits
    assert ours.visits.cells[:3] == (3, 3, 3)
    assert sum(ours.visits.cells) * ours.visits.cell_s > 35 * 60, "a drive by itself shows no ten stalls an hour"
    assert (ours.fill.passes, ours.precondition.capacities, ours.precondition.limit_capacities) == (1, 1, 6)
    assert (ours.precondition.drift_percent, ours.conditions_drives) == (1, True)
    assert ours.verdict.family == "bonferroni"


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ("drift_percent = 1", "drift_percent compares two halves of a capacity, so capacities is 1 at least"),
        ("capacities = 2\nlimit_capacities = 1", "limit_capacities (1) is less than capacities (2)"),
    ],
)
def test_a_drift_needs_a_capacity_and_a_limit_beyond_it(keys: str, sentence: str) -> None:
    require_refused(GOOD.replace("[measure]", f"{keys}\n[measure]"), sentence)


def test_drives_are_conditioned_for_visits_only() -> None:
    """A drive that idled while a narrow array was measured has to be refreshed, as the table visits says."""
    table = 'of = "drives"\n[measure]'
    require_refused(GOOD.replace("[measure]", table), 'precondition.of = "drives" needs the table visits')


def test_a_search_has_a_budget() -> None:
    assert load(GOOD).explore == ExploreRule()
    table = '[explore]\nbudget = "2 h"\nmeasurement = "30 s"\nworkloads = 50\nconfirmations = 1\n'
    assert load(GOOD + table).explore == ExploreRule(7200, 30, 50, 1)


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ('budget = "1 min"', r"explore\.budget \(60 s\) is less than one measurement takes \(65 s\)"),
        ('measurement = "4 s"', r"explore\.measurement \(4 s\) is cut into 5 rounds"),
        ("budget = 60", "needs a unit"),
        ("workloads = 0", "greater than or equal to 1"),
        ("confirmations = 0", "greater than or equal to 1"),
        ('exec_prerun = "reboot"', "xtra inputs|not permitted|unknown"),
    ],
)
def test_a_search_that_could_not_measure_anything_is_refused(table: str, why: str) -> None:
    with pytest.raises(DocumentError, match=why):
        load(f"{GOOD}[explore]\n{table}\n")


def test_a_search_has_time_for_one_cell_at_least() -> None:
    assert load(VISITS + '[explore]\nbudget = "45 s"\n').explore.budget_s == 45
    with pytest.raises(DocumentError, match=r"explore\.budget \(44 s\)"):
        load(VISITS + '[explore]\nbudget = "44 s"\n')


def test_lives_of_an_array_are_searched_within_limits() -> None:
    table = '[integrity]\nhistories = 3\nsteps = 9\nlimit = "5 min"\nregions = 8\nmember = "1g"\natomic = "physical"\n'
    settings = load(GOOD + table + "write_hole = true\n").integrity
    assert settings == IntegrityRule(3, 9, 300.0, 8, 1 << 30, "physical", write_hole=True)
    assert load(GOOD).integrity == IntegrityRule()
    assert protocol.load("quick").integrity.histories < protocol.load("acceptance").integrity.histories


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ('member = "8m"', 'integrity.member: "8m" is not a whole number of MiB, at least 16m'),
        ('member = "20000k"', 'integrity.member: "20000k" is not a whole number of MiB, at least 16m'),
        ("regions = 65", "integrity.regions"),
        ("histories = 0", "integrity.histories"),
        ('atomic = "page"', "integrity.atomic"),
    ],
)
def test_lives_that_could_not_be_are_refused(table: str, why: str) -> None:
    require_refused(f"{GOOD}[integrity]\n{table}\n", why)


@pytest.mark.parametrize("line", ['name = "theirs"', "[fill.extra]", "[visit]"])
def test_keys_that_a_file_does_not_have_are_errors(line: str) -> None:
    key = re.sub(r"[\[\]]| =.*", "", line)
    for text in (GOOD, VISITS):
        written = f"{text}\n{line}\n" if line.startswith("[") else f"{line}\n{text}"
        require_refused(written, f"{key}: unknown key")


def test_errors_of_measure_beside_visits_come_with_all_others() -> None:
    bad = VISITS.replace('ramp = "5 s"', 'ramp = 5\nwindow = "5 min"') + "cells = []\n"
    with pytest.raises(DocumentError) as caught:
        load(bad)
    assert {error.split(": ")[0] for error in caught.value.errors} == {"measure.window", "measure.ramp", "visits.cells"}


def test_a_table_is_required_to_be_one() -> None:
    for text in ("measure = 3\nvisits = 4\nfill = []\n", "measure = 3\nfill = []\n"):
        with pytest.raises(DocumentError) as caught:
            load(text)
        places = {error.split(": ")[0] for error in caught.value.errors if "table" in error}
        assert places == {line.split(" ")[0] for line in text.splitlines()}
