from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import parse
import parse_runs
import parse_ways
import pytest
from parse import Limits, Reading, Tools, Way
from parse_runs import Counts, Made

from pytest_ssdqual.qual.measured.histogram import bucket_of
from pytest_ssdqual.rig.fio.output import parse as parse_output

LIMITS = Limits(memory_gib=8, seconds=120)


@pytest.fixture(scope="module")
def hist(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return parse_runs.histograms(tmp_path_factory.mktemp("hist"), 5 / 3600, 2)


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return parse_runs.every_io(tmp_path_factory.mktemp("every"), 150_000)


def tools(folder: Path, python: str = sys.executable) -> Tools:
    return Tools(python, folder, folder)


def counted(*logs: str) -> Counts:
    rows = [np.loadtxt(log, delimiter=",", dtype=np.int64)[:, 3:] for log in logs]
    return np.asarray(np.concatenate(rows).sum(axis=0))


# -- what is read


def test_equal_sizes_give_equal_files(hist: Made, tmp_path: Path) -> None:
    again = parse_runs.histograms(tmp_path, 5 / 3600, 2)
    for one, other in zip(hist.paths, again.paths, strict=True):
        assert Path(one).read_bytes() == Path(other).read_bytes()
    assert parse_runs.read(tmp_path) == again
    assert parse_runs.read(tmp_path / "elsewhere") is None


def test_documents_and_histogram_logs_tell_of_the_same_ios(hist: Made) -> None:
    result = parse_output(Path(hist.documents).read_bytes())
    assert len(result.parts) == hist.jobs == 2
    assert [round(each.seconds) for each in result.intervals] == [1] * hist.seconds == [1] * 5
    names = parse_runs.printed_ns()
    for part, log in zip(result.parts, hist.logs, strict=True):
        counts = counted(log)
        found = dict.fromkeys(names.tolist(), 0)
        for each in part:
            for value_ns, count in each.read_latency.bins:
                found[value_ns] += count
        assert list(found.values()) == counts.tolist()
    assert result.read.max_ns == result.read.latency.max_ns
    assert result.read.mean_ns == pytest.approx(result.read.latency.mean_ns)
    assert result.read.ios == hist.ios == int(counted(*hist.logs).sum())


def test_documents_and_the_log_of_every_io_tell_of_the_same_ios(every: Made) -> None:
    result = parse_output(Path(every.documents).read_bytes())
    lines = np.loadtxt(every.logs[0], delimiter=",", dtype=np.int64)
    assert result.read.ios == len(lines) == every.ios == 150_000
    assert [each.read_ios for each in result.intervals] == np.bincount(lines[:, 0] // 1000).tolist()
    buckets = {bucket_of(value_ns): count for value_ns, count in result.read.latency.bins}
    for bucket, count in list(buckets.items())[::40]:
        assert np.count_nonzero((lines[:, 1] >= bucket.low_ns) & (lines[:, 1] < bucket.high_ns)) == count


def test_they_have_the_shape_of_a_captured_document(hist: Made) -> None:
    captured = json.JSONDecoder().raw_decode(parse_runs.TEMPLATE.read_text())[0]
    made = json.JSONDecoder().raw_decode(Path(hist.documents).read_text())[0]
    assert made.keys() == captured.keys()
    for job in made["jobs"]:
        assert job.keys() == captured["jobs"][0].keys()
        assert job["read"].keys() == captured["jobs"][0]["write"].keys()
        assert job["read"]["lat_ns"].keys() == captured["jobs"][0]["write"]["lat_ns"].keys()


def test_the_truth_is_that_of_what_was_drawn(hist: Made, every: Made) -> None:
    latencies = np.sort(np.loadtxt(every.logs[0], delimiter=",", dtype=np.int64)[:, 1])
    for q, true_ns in zip(parse_runs.QUANTILES, every.truth_ns, strict=True):
        assert np.mean(latencies <= true_ns) == pytest.approx(q, abs=2e-5)
        # Of the formula it is a sample of 150,000.
        chance = 4 * (q * (1 - q) / every.ios) ** 0.5
        assert np.mean(latencies <= parse_runs.quantile_ns(q, 1)) == pytest.approx(q, abs=chance)
    counts = counted(*hist.logs)
    for q, true_ns in zip(parse_runs.QUANTILES, hist.truth_ns, strict=True):
        below = int(counts[parse_runs.edges()[1:] <= true_ns].sum()) / hist.ios
        assert below == pytest.approx(q, abs=0.02)


# -- how it is read


def test_ours_finds_the_percentiles_that_were_made(hist: Made, every: Made) -> None:
    for made in (hist, every):
        found = parse_ways.ours([made.documents])
        # Half a bucket, and what a million I/Os leave to chance.
        assert found == pytest.approx(made.truth_ns, rel=0.03)
        assert found[:2] == pytest.approx(made.truth_ns[:2], rel=0.01)


def test_whatever_is_installed_agrees_with_the_truth(hist: Made, every: Made, tmp_path: Path) -> None:
    others = Tools(sys.executable, parse.SCRIPTS, tmp_path)
    read = {}
    for made, ways in ((hist, parse.of_histograms(hist, others)), (every, parse.of_every_io(every, others))):
        for way in ways:
            done = parse.reading(way, LIMITS)
            assert done.trouble == way.missing
            if done.found_ns:
                read[f"{way.name}: {way.files}"] = done.found_ns
                assert done.found_ns == pytest.approx(made.truth_ns, rel=0.05)
    assert "ours: documents" in read


def test_a_process_tells_what_it_took(every: Made) -> None:
    way = Way("x", "y", (sys.executable, "-c", "x = b'x' * (50 << 20); print([1.5])"))
    done = parse.reading(way, LIMITS)
    assert done.found_ns == (1.5,)
    assert done.cpu_s > 0
    # Its own memory, not that of the process that started it, which has numpy and pytest.
    assert 50 < done.peak_mib < 75


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("raise SystemExit('no such log')", "ended with status 1 within 8 GiB: no such log"),
        ("import time; time.sleep(60)", "not done after 0.5 s"),
        ("print('?')", "Expecting value"),
        ("x = bytes(9 << 30)", "ended with status 1 within 8 GiB: MemoryError"),
    ],
)
def test_what_did_not_work_is_told_and_has_no_figure(code: str, told: str, hist: Made) -> None:
    limits = Limits(8, 0.5 if "sleep" in code else 60)
    done = parse.reading(Way("odd", "logs", (sys.executable, "-c", code)), limits)
    assert told in done.trouble
    text = "\n".join(parse.table(hist, [done]))
    assert "| odd | logs | – |" in text
    assert f"odd: {done.trouble}" in text


FIOLOGPARSER = """end-time, samples, min, avg, median, 99%, 99.9%, max
1000, 15, 192, 1678.107, 100.0, 200.0, 300.0, 1888
2000, 43, 152, 1642.368, 110.0, 210.0, 310.0, 1888
3000, 43, 152, 1642.368, 190.0, 290.0, 390.0, 1888
"""
PCTILES = """fio version = 3
percentiles = 50.0,99.0,99.9
time (millisec), percentiles in increasing order with values in usec
msec-since-start, samples, median, 99.0, 99.9, \n       0,        0, , , , \n    1000,   800595, 1.5, 2.5, 3.5
"""


def test_tables_of_fios_scripts_are_read() -> None:
    assert parse_ways.of_table(FIOLOGPARSER, ["median", "99%", "99.9%"], 1) == [110, 210, 310]
    assert parse_ways.of_table(PCTILES, ["median", "99.0", "99.9"], 1000) == [1500, 2500, 3500]
    with pytest.raises(ValueError, match="no table with median, 95%"):
        parse_ways.of_table(FIOLOGPARSER, ["median", "95%"], 1)
    with pytest.raises(ValueError, match="empty"):
        parse_ways.of_table(FIOLOGPARSER[:60], ["median", "99%", "99.9%"], 1)


# -- what is told


def test_every_way_is_there_and_what_is_missing_is_told(hist: Made, every: Made, tmp_path: Path) -> None:
    lacking = tools(tmp_path, "false")
    ways = parse.of_histograms(hist, lacking) + parse.of_every_io(every, lacking)
    files = {"histogram logs", "log of every I/O", "documents", ""}
    assert {each.files for each in ways} == files
    missing = {each.name: each.missing for each in ways if each.missing}
    assert missing.keys() == {
        "fiologparser_hist.py", "fiologparser_hist.py --noweight", "fio-histo-log-pctiles.py", "pandas.read_csv",
        "fio-plot",
    }  # fmt: skip
    assert "install Debian's package fio" in missing["fiologparser_hist.py"]
    assert "pip install pandas fio-plot" in missing["fio-plot"]
    (tmp_path / "fiologparser_hist.py").write_text("")
    assert "needs numpy, which false does not have" in parse.of_histograms(hist, lacking)[4].missing
    done = parse.reading(parse.of_every_io(every, lacking)[-1], LIMITS)
    assert "pip install" in done.trouble
    assert "pip install" in "\n".join(parse.table(every, [done]))


def test_ratios_are_to_ours_and_to_the_bytes_of_the_same_files(hist: Made) -> None:
    script = Way("fiologparser_hist.py", "histogram logs", (), ("median",))
    readings = [
        Reading(Way("ours", "documents", ()), 2.0, 90, tuple(1.01 * each for each in hist.truth_ns)),
        Reading(Way("bytes only", "documents", ()), 0.5, 12),
        Reading(Way("bytes only", "histogram logs", ()), 0.25, 12),
        Reading(script, 24.0, 130, hist.truth_ns),
    ]
    lines = list(parse.table(hist, readings))
    hours = hist.job_hours
    assert f"| ours | documents | 2.00 | {2 / hours:.3g} | 1.00 | 4.00 | 90 | +1.00 % | +1.00 % | +1.00 % |" in lines
    assert f"| bytes only | documents | 0.50 | {0.5 / hours:.3g} | 0.25 | 1.00 | 12 | – | – | – |" in lines
    found = f"| histogram logs | 24.00 | {24 / hours:.3g} | 12.00 | 96.00 | 130 | +0.00 % | +0.00 % | +0.00 % |"
    assert f"| fiologparser_hist.py {found}" in lines
    told = ["met: 10 × fiologparser_hist.py: 12.0 ×", "MISSED: within 3 × of its bytes: 4 ×"]
    assert list(parse.goals(readings)) == told


def test_the_whole_of_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    sizes = ["--hours=0.001", "--jobs=2", "--lines=1000", f"--folder={tmp_path}", f"--fio-scripts={tmp_path}"]
    parse.main([*sizes, "--tools-python=false"])
    told = capsys.readouterr().out
    assert "2 jobs × 4 s" in told
    assert "1 jobs × 1 s, 1,000 I/Os" in told
    assert told.count("| ours | documents | ") == 2
    assert "fio-plot: fio-plot needs fio_plot" in told
