from __future__ import annotations

import math
import shutil
from pathlib import Path

import parse_overhead
import pytest
from parse_overhead import CASES, Overhead, ParseCost, overhead, telling

from pytest_ssdqual.rig.fio import jobs


def test_at_one_document_a_second_the_options_are_those_of_a_measurement() -> None:
    whole, section = telling(1)
    assert whole == jobs.reporting(1)
    assert set(section) < set(jobs.engine())
    names = {each.split("=")[0].removeprefix("--") for each in section}
    assert names == {
        "group_reporting",
        "lat_percentiles",
        "clat_percentiles",
        "percentile_list",
    }


def test_more_documents_are_the_same_more_often_and_bare_fio_writes_none() -> None:
    assert "--status-interval=50ms" in telling(20)[0]
    assert set(telling(20)[0]) ^ set(telling(1)[0]) == {"--status-interval=50ms", "--status-interval=1"}
    assert telling(20)[1] == telling(1)[1]
    assert telling(0) == (("--output-format=json", "--eta=never"), ())


def test_the_interval_is_students_of_the_logarithms() -> None:
    # By hand: logarithms 0 and 0.01, so mean 0.005 and standard error 0.005; t(97.5 %, 1 degree) = 12.706.
    found = overhead([1.0, math.exp(0.01)])
    assert found.value == pytest.approx(math.exp(0.005) - 1)
    assert found.high == pytest.approx(math.exp(0.005 + 12.7062 * 0.005) - 1)
    assert found.low == pytest.approx(math.exp(0.005 - 12.7062 * 0.005) - 1)
    same = overhead([1.2, 1.2, 1.2])
    assert (same.low, same.value, same.high) == pytest.approx((0.2, 0.2, 0.2))
    with pytest.raises(ValueError, match="two pairs"):
        overhead([1.2])


def test_a_documents_share_is_told_in_per_cent() -> None:
    assert str(Overhead(0.05, -0.01, 0.1).per(20)) == "+0.25 % (-0.05…+0.50)"


@pytest.mark.parametrize("case", CASES)
def test_fio_takes_the_options_and_its_documents_are_counted(case: str, tmp_path: Path) -> None:
    if not shutil.which("fio"):
        pytest.skip("fio is not installed")
    # At more documents a second, lateness on a busy computer looks like a clock that was set.
    bare, reporting = (parse_overhead.run(case, tmp_path, 0.5, rate) for rate in (0, 4))
    assert bare.documents == 1 <= reporting.documents
    assert min(bare.ios, reporting.ios) > 0
    assert min(bare.cpu_s, reporting.cpu_s) > 0


@pytest.mark.parametrize(("documents", "told"), [(10, "| null | 20.0 |"), (5, "10.0 instead of 20: the computer is")])
def test_documents_are_told_as_they_were_written(
    documents: int, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def run(case: str, folder: Path, seconds: float, rate: int) -> ParseCost:
        return ParseCost(1.1 if rate else 1.0, 1000, documents if rate else 1)

    monkeypatch.setattr(parse_overhead, "run", run)
    sizes = ["--pairs=3", "--seconds=0.5", "--rates", "20", f"--folder={tmp_path}"]
    parse_overhead.main([*sizes, "--cases", "null"])
    shown = capsys.readouterr().out
    assert told in shown
    each = 10 * 0.5 / documents
    assert f"| +10.00 % (+10.00…+10.00) | +{each:.2f} % (+{each:.2f}…+{each:.2f}) |" in shown


def test_one_pair_has_no_interval(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_overhead.main(["--pairs=1"])
    assert "two pairs at least" in capsys.readouterr().err
