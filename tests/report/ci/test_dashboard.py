"""contrib/grafana/ssdqual.json: its queries are PromQL about metrics and labels that openmetrics.py writes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import promql_parser
import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.builders.evidence import claimed
from support.builders.report_page import WriteRun, judged, record

from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.validity.attribution import Cause, Culprit
from pytest_ssdqual.report.ci import openmetrics
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.view import subject

DASHBOARD = json.loads((Path(__file__).parents[3] / "contrib/grafana/ssdqual.json").read_text())
PANELS = DASHBOARD["panels"]
QUERIES = [target["expr"] for panel in PANELS for target in panel["targets"]]
NAME = re.compile(r"\bssdqual_\w+")


@pytest.fixture
def written(write_run: WriteRun) -> dict[str, set[str]]:
    """Names of all metrics with their labels: of a run with every unit, a cause, and a drive with all its health."""
    cause = Cause(Culprit.DRIVE, "slow", ("S1",), confidence=0.95)
    broken = replace(claimed(), outcome=Finding.FAIL, cause=cause)
    units = [replace(claimed(), claim=unit.name, unit=unit) for unit in Unit]
    tests = [judged(each, f"t{at}", at) for at, each in enumerate([broken, *units])]
    health = record(
        "health",
        drive="S1",
        when="after",
        **{name: 1 for name in subject.HEALTH if name != "passed"},
        passed=True,
    )
    families = text_string_to_metric_families(openmetrics.text(write_run(*tests, health)))
    return {
        sample.name: {label for each in family.samples for label in each.labels}
        for family in families
        for sample in family.samples
    }


@pytest.mark.parametrize("query", QUERIES)
def test_query_is_promql(query: str) -> None:
    promql_parser.parse(query)


def test_queries_name_metrics_and_labels_that_are_written(written: dict[str, set[str]]) -> None:
    variables = [each["definition"] for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
    assert set(NAME.findall(" ".join(QUERIES + variables))) <= set(written)
    for query in QUERIES:
        for name, matchers in re.findall(r"(ssdqual_\w+)\{([^}]*)\}", query):
            assert set(re.findall(r"(\w+)=", matchers)) <= written[name], query
        labels = {
            label for found in re.findall(r"(?:by|on|group_left) \(([^)]*)\)", query) for label in found.split(", ")
        }
        assert labels <= set().union(*(written[name] for name in NAME.findall(query))), query
    for panel in PANELS:
        for target in panel["targets"]:
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert shown <= set().union(*(written[name] for name in NAME.findall(target["expr"]))), panel["title"]


def test_panels_have_units_and_do_not_overlap() -> None:
    assert all(panel["fieldConfig"]["defaults"]["unit"] and panel["description"] for panel in PANELS)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in PANELS)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
