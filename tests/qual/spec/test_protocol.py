from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.spec.protocol import ProtocolError
from pytest_ssdqual.qual.spec.protocol_rules import (
    ArraySettings,
    ExploreRule,
    IntegrityRule,
    InterleaveRule,
    SequentialRule,
    SteadyRule,
    VerdictRule,
)

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


def load(tmp_path: Path, text: str) -> protocol.Protocol:
    path = tmp_path / "ours.toml"
    path.write_text(text, encoding="utf-8")
    return protocol.load(path)


def require_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        load(tmp_path, text)
    assert any(sentence in error for error in caught.value.errors), caught.value.errors


def test_a_file_becomes_seconds(tmp_path: Path) -> None:
    ours = load(tmp_path, GOOD)
    assert ours == protocol.Protocol("ours", True, 2, "128k", 60, 1500, 5, 300, 3, 1)
    assert (ours.purge, ours.steady, ours.array) == ("format", SteadyRule(), ArraySettings())
    assert ours.round_s == 60


def test_array_and_rule_may_be_set(tmp_path: Path) -> None:
    more = (
        '[steady]\nwindow = 10\nrange_percent = 10\n[array]\nchunk = "256KiB"\nbitmap = "internal"\ngroup_threads = 4\n'
    )
    ours = load(tmp_path, 'purge = "discard"\n' + GOOD + more)
    assert ours.purge == "discard"
    assert ours.steady == SteadyRule(10, 10, 10)
    assert ours.array == ArraySettings("256k", "internal", 4096, 4)


def test_write_caches_stay_as_found_unless_the_protocol_demands_a_state(tmp_path: Path) -> None:
    assert load(tmp_path, GOOD).write_cache == "as found"
    assert load(tmp_path, 'write_cache = "off"\n' + GOOD).write_cache == "off"
    with pytest.raises(ProtocolError, match="write_cache: "):
        load(tmp_path, "write_cache = false\n" + GOOD)
    demanded = {name: protocol.load(name).write_cache for name in protocol.shipped()}
    assert {name for name, state in demanded.items() if state != "as found"} == {"stec", "snia"}
    assert {demanded["stec"], demanded["snia"]} == {"off"}, "the papers' states"


def test_all_errors_at_once_each_with_its_place(tmp_path: Path) -> None:
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
    with pytest.raises(ProtocolError) as caught:
        load(tmp_path, bad)
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
    assert by_place["measure.window"] == '"long" is not a duration; write e.g. "10 s", "12 min" or "2 h"'
    assert by_place["precondition"] == "the limit (60 s) is shorter than one step (300 s)"


def test_rounds_shorter_than_fios_reports_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ProtocolError, match=r"measure\.window \(4 s\) is cut into 5 rounds"):
        load(tmp_path, GOOD.replace('"5 min"', '"4 s"'))


def test_what_is_shipped() -> None:
    assert protocol.shipped() == (
        "intel", "intel910", "interleaved", "quick", "sequential", "snia", "stec", "toms_s3500",
    )  # fmt: skip
    quick, intel = protocol.load("quick"), protocol.load("intel")
    assert not quick.acceptance
    assert (quick.ramp_s, quick.window_s, quick.round_s, quick.repeats) == (1, 5, 1, 1)
    assert intel.acceptance
    # 12 minutes, the last 10 of which count, after two hours of writes, twice.
    assert (intel.ramp_s, intel.window_s, intel.precondition_s, intel.repeats) == (120, 600, 7200, 2)
    with pytest.raises(ProtocolError, match="there are: intel, intel910, interleaved, quick"):
        protocol.load("slow")


def test_the_test_specification_counts_minutes_and_the_stec_protocol_writes_past_the_raw_capacity() -> None:
    snia, stec = protocol.load("snia"), protocol.load("stec")
    assert snia.acceptance
    assert stec.acceptance
    assert (snia.fill_passes, snia.round_s, snia.loop.cell_s, snia.loop.max_rounds) == (2, 60, 60, 25)
    assert stec.precondition_capacities > 2
    assert stec.window_s == 600


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
def test_nonsense_in_the_newer_tables_is_named_with_its_place(tmp_path: Path, table: str, sentence: str) -> None:
    require_refused(tmp_path, GOOD + table, sentence)


SEQUENTIAL = GOOD.split("[measure]")[0] + '[measure]\nramp = "5 s"\n[sequential]\n'


def test_a_verdict_is_as_sure_as_asked_for(tmp_path: Path) -> None:
    assert load(tmp_path, GOOD).verdict == VerdictRule(0.95, 1.0, "none")
    table = '[verdict]\nconfidence = "99 %"\nindifference = "2.5 %"\nfamily = "bonferroni"\n'
    ours = load(tmp_path, GOOD + table)
    assert ours.verdict == VerdictRule(0.99, 2.5, "bonferroni")
    assert ours.sequential is None


def test_a_sequential_protocol_has_looks_instead_of_a_window(tmp_path: Path) -> None:
    assert load(tmp_path, SEQUENTIAL).sequential == SequentialRule()
    lab = 'first = "20 s"\ngrowth = 1.5\nlimit = "60 s"\nreport = "1 s"\nprecision = "2 %"\n'
    lab += 'slowest = "5 s"\nplateau = "3 s"\nobserve = "30 s"\npause = "0 s"\n'
    ours = load(tmp_path, SEQUENTIAL + lab)
    assert ours.sequential == SequentialRule(20, 1.5, 60, 1, 2, 5, 3, 30, 0)
    assert (ours.ramp_s, ours.window_s, ours.round_s, ours.repeats) == (5, 20, 4, 1)
    # As it is planned: where the tail or an extreme is judged it is observed for so long at least.
    assert ours.window_of(tail=True) == 30


def test_tails_may_have_a_window_of_their_own(tmp_path: Path) -> None:
    plain = load(tmp_path, GOOD)
    assert (plain.window_of(tail=False), plain.window_of(tail=True)) == (300, 300)
    ours = load(tmp_path, GOOD.replace('window = "5 min"', 'window = "5 min"\ntail_window = "1 h"'))
    assert (ours.window_of(tail=False), ours.window_of(tail=True)) == (300, 3600)
    with pytest.raises(ProtocolError, match=r"measure: tail_window \(60 s\) is shorter than window \(300 s\)"):
        load(tmp_path, GOOD.replace('window = "5 min"', 'window = "5 min"\ntail_window = "1 min"'))


@pytest.mark.parametrize("given", ['window = "5 min"', 'tail_window = "5 min"', "repeats = 1", "attempts = 2"])
def test_looks_exclude_a_fixed_length(tmp_path: Path, given: str) -> None:
    name = given.split()[0]
    with pytest.raises(ProtocolError, match=rf"measure\.{name}: is of measurements of a fixed length; .* leave it out"):
        load(tmp_path, SEQUENTIAL.replace('ramp = "5 s"', f'ramp = "5 s"\n{given}'))


@pytest.mark.parametrize("name", ["window", "repeats", "attempts"])
def test_a_fixed_length_has_to_be_said(tmp_path: Path, name: str) -> None:
    line = next(line for line in GOOD.splitlines() if line.startswith(name))
    with pytest.raises(ProtocolError, match=rf"measure\.{name}: is missing"):
        load(tmp_path, GOOD.replace(line, ""))


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ('first = "10 min"\nlimit = "5 min"', "sequential: the limit (300 s) is before the first look (600 s)"),
        ('report = "1.5 s"', "sequential.report: fio reports after whole seconds, not every 1.5 s"),
        ('report = "0 s"', "sequential.report: should be greater than or equal to 1"),
        ('first = "40 s"', "sequential: the first look (40 s) would see fewer than 10 reports, one comes every 5 s"),
        ('slowest = "0 s"', "sequential.slowest: should be greater than 0"),
        ("growth = 1", "sequential.growth: should be greater than or equal to 1.05"),
        ("precision = 1", "sequential.precision: 1 needs a unit, as text in quotes"),
        ('precision = "1"', 'sequential.precision: "1" is not a percentage above zero; write e.g. "5 %"'),
        ('first = "10 s"\nreport = "1 s"\n[steady]\nwindow = 11', "sequential.first (10 s) is cut into 11 rounds"),
        ('[verdict]\nconfidence = "100 %"', "verdict.confidence: should be less than 100"),
        ('[verdict]\nconfidence = "5 %"', "verdict.confidence: should be greater than or equal to 50"),
        ('[verdict]\nfamily = "holm"', "verdict.family: "),
    ],
)
def test_looks_that_cannot_be_are_refused(tmp_path: Path, table: str, sentence: str) -> None:
    require_refused(tmp_path, SEQUENTIAL + table, sentence)


def test_turns_are_sequential_with_rounds(tmp_path: Path) -> None:
    interleaved, sequential = protocol.load("interleaved"), protocol.load("sequential")
    assert interleaved.interleave == InterleaveRule()
    assert sequential.interleave is None
    looks = interleaved.sequential
    assert looks
    same = replace(interleaved, name="sequential", interleave=None, tail_window_s=sequential.tail_window_s)
    assert replace(same, sequential=replace(looks, observe_s=2100.0)) == sequential


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("[interleave]\nrounds = 5", "the first look is after 6 rounds, and there are at most 5"),
        ('[interleave]\ncell = "1 s"', "interleave.cell"),
        ('[interleave]\ncell = "10 s"', "interleave.cell (10 s) is 20 s at least for acceptance"),
        ("[interleave]\nworkloads = 1", "interleave.workloads"),
    ],
)
def test_turns_that_cannot_be_taken_are_refused(tmp_path: Path, table: str, sentence: str) -> None:
    require_refused(tmp_path, SEQUENTIAL + table, sentence)


def test_the_sequential_protocol_writes_before_it_trusts_a_plateau() -> None:
    ours = protocol.load("sequential")
    assert ours.acceptance
    assert ours.sequential == SequentialRule()
    assert (ours.fill_passes, ours.precondition_capacities) == (2, 1)
    assert ours.verdict.family == "bonferroni"


def test_a_search_has_a_budget(tmp_path: Path) -> None:
    assert load(tmp_path, GOOD).explore == ExploreRule()
    table = '[explore]\nbudget = "2 h"\nmeasurement = "30 s"\nworkloads = 50\nconfirmations = 1\n'
    assert load(tmp_path, GOOD + table).explore == ExploreRule(7200, 30, 50, 1)


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
def test_a_search_that_could_not_measure_anything_is_refused(tmp_path: Path, table: str, why: str) -> None:
    with pytest.raises(ProtocolError, match=why):
        load(tmp_path, f"{GOOD}[explore]\n{table}\n")


def test_a_sequential_search_has_one_look_at_least(tmp_path: Path) -> None:
    text = GOOD.replace('window = "5 min"\nrepeats = 3\nattempts = 1\n', "") + '[sequential]\nfirst = "5 min"\n'
    assert load(tmp_path, text + '[explore]\nmeasurement = "5 min"\n').explore.measurement_s == 300
    with pytest.raises(ProtocolError, match=r"explore\.measurement \(60 s\) is before the first look \(300 s\)"):
        load(tmp_path, text + '[explore]\nmeasurement = "1 min"\n')


def test_lives_of_an_array_are_searched_within_limits(tmp_path: Path) -> None:
    table = '[integrity]\nhistories = 3\nsteps = 9\nlimit = "5 min"\nregions = 8\nmember = "1g"\natomic = "physical"\n'
    found = load(tmp_path, GOOD + table + "write_hole = true\n").integrity
    assert found == IntegrityRule(3, 9, 300.0, 8, 1 << 30, "physical", write_hole=True)
    assert load(tmp_path, GOOD).integrity == IntegrityRule()
    assert protocol.load("quick").integrity.histories < protocol.load("sequential").integrity.histories


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
def test_lives_that_could_not_be_are_refused(tmp_path: Path, table: str, why: str) -> None:
    require_refused(tmp_path, f"{GOOD}[integrity]\n{table}\n", why)
