from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ssdqual.qual import protocol
from pytest_ssdqual.qual.protocol import ArraySettings, ProtocolError, SteadyRule

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
    assert protocol.shipped() == ("intel", "quick", "snia", "stec")
    quick, intel = protocol.load("quick"), protocol.load("intel")
    assert not quick.acceptance
    assert (quick.ramp_s, quick.window_s, quick.round_s, quick.repeats) == (1, 5, 1, 1)
    assert intel.acceptance
    # 12 minutes, the last 10 of which count, after two hours of writes, twice.
    assert (intel.ramp_s, intel.window_s, intel.precondition_s, intel.repeats) == (120, 600, 7200, 2)
    with pytest.raises(ProtocolError, match="there are: intel, quick"):
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
    with pytest.raises(ProtocolError) as caught:
        load(tmp_path, GOOD + table)
    assert any(sentence in error for error in caught.value.errors), caught.value.errors
