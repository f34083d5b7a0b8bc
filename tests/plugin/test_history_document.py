"""``docs/history.md``: every query in it is run on run folders that this version wrote."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from support.builders.sheet import PRODUCT, promise

from pytest_ssdqual.report.run_folder.journal import SCHEMA
from pytest_ssdqual.report.run_folder.reader import read_records

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

DOCUMENT = Path(__file__).parents[2] / "docs" / "history.md"
TOML, *_ = re.findall(r"^```toml\n(.*?)^```", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)
QUERIES = re.findall(r"^```sql\n(.*?)^```", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)
SUITE = """
    import pytest
    from pytest_ssdqual import Workload

    @pytest.mark.ssd_array("raid5", widths=(3,))
    @pytest.mark.ssd_workload(Workload("randread", "4k", 8))
    @pytest.mark.ssd_promise("steady_iops", "p99_latency", "throughput")
    @pytest.mark.parametrize("claim", ["steady_iops", "p99_latency", "throughput"])
    def test_array(ssd_run, ssd_sla, claim):
        assert ssd_sla.judge(claim, ssd_run)

    @pytest.mark.ssd_promise("steady_iops")
    @pytest.mark.ssd_array("drive")
    @pytest.mark.ssd_workload(Workload("randread", "4k", 8))
    def test_drives(ssd_run, ssd_sla):
        assert ssd_sla.judge(ssd_run)
"""
SPEC = (
    PRODUCT
    + promise(claim="steady_iops", level="raid5", at_least="5000 IOPS")
    + promise(claim="steady_iops", at_least="100 IOPS")
    + promise(claim="p99_latency", at_most="90 ms")
    + promise(claim="throughput", level="raid6", at_least="1 MB/s")
)


def test_every_query_gives_rows_that_the_records_have(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    inner.pytester.makepyfile(SUITE)
    (inner.pytester.path / "acme.toml").write_text(SPEC)
    for _ in range(2):
        inner.run("--ssd-devices=/dev/nvme*", "--ssd-protocol=quick", "--ssd-spec=acme.toml")
    runs = sorted((inner.pytester.path / "ssdqual-runs").iterdir())
    with (runs[0] / "records.jsonl").open("a") as file:
        file.write(f'{{"schema":{SCHEMA},"kind":"verd')  # a crash
    monkeypatch.chdir(inner.pytester.path)
    assert len(QUERIES) >= 10
    with duckdb.connect() as database:
        answers = [(query, _rows(database, query)) for query in QUERIES]
        for query, rows in answers:
            assert rows or query.startswith("create"), query
        of = {re.sub(r"\s+", " ", query)[:40]: rows for query, rows in answers}
        judged = [r for run in runs for r in read_records(run, "verdict", "observation")]
        assert _rows(database, "select count(*) from judged") == [(len(judged),)]
        broken = [record.facts["sentence"] for record in judged if record.facts["outcome"] == "fail"]
        assert [row[1] for row in of["select run, sentence from judged where o"]] == broken
        assert len(broken) == 2
        assert _rows(database, "select count(*), count(distinct serial) from drives") == [(8, 4)]
        values = _rows(database, "select value, low, high from judged where claim = 'p99_latency' order by run")
        first = next(record for record in judged if record.facts["claim"] == "p99_latency")
        estimate = first.facts
        assert isinstance(estimate, dict)
        assert values[0] == (estimate["value"], estimate["low"], estimate["high"])
        drives = next(rows for query, rows in answers if "as member from judged" in query)
        assert len(drives) == 2 * 4


def test_its_promises_are_a_spec(tmp_path: Path) -> None:
    from pytest_ssdqual.qual.spec import spec

    path = tmp_path / "acme.toml"
    path.write_text(PRODUCT + TOML)
    limits = [each.relation for each in spec.load(path).promises]
    assert [limit.percent for limit in limits if limit] == [95, 110]


def _rows(database: duckdb.DuckDBPyConnection, query: str) -> list[tuple[object, ...]]:
    found = database.execute(query).fetchall()
    return [] if query.startswith("create") else found
