from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ssdqual.qual.integrity import steps
from pytest_ssdqual.qual.integrity.reference_model import Mismatch, MismatchKind, Survival
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.verdict.multiplicity import ErrorControl
from pytest_ssdqual.report.ci.junit import properties
from pytest_ssdqual.report.evidence import evidence as part
from pytest_ssdqual.report.evidence import multiplicity
from pytest_ssdqual.report.evidence.evidence import of_facts
from pytest_ssdqual.report.evidence.integrity import of_survival
from pytest_ssdqual.report.terminal.summary import table

KEPT = Survival(Geometry.parse("raid5x3"), histories=20, steps=800, compared=10_000, atom_bytes=512, seconds=60.0)
LOST = replace(
    KEPT,
    findings=(Mismatch(MismatchKind.STALE, 0, "generation 3", "generation 7"),) * 3,
    shortest=steps.parse("array raid5x3 bitmap none\nfail 2\nwrite 3 64k\n"),
    remarks=("8 sectors do not agree",),
)
DISAGREE = replace(LOST, findings=(Mismatch(MismatchKind.DISAGREE, None, "8 sectors"),))


@pytest.mark.parametrize("found", [KEPT, LOST, DISAGREE])
def test_evidence_is_kept_and_read_back(found: Survival) -> None:
    evidence = of_survival(found, ("integrity/raid5x3.history",))
    record = plain(evidence)
    again = of_facts(record)
    assert plain(again) == record
    assert again.sentence == repr(found)
    assert (again.outcome is part.Finding.PASS) == bool(found)


def test_the_figure_is_how_many_blocks_are_lost() -> None:
    assert of_survival(KEPT).value == 0
    assert of_survival(LOST).value == 3
    assert of_survival(DISAGREE).value == 1


def test_it_is_in_the_tables_of_a_run() -> None:
    both = [of_survival(each) for each in (KEPT, LOST)]
    for verbosity in (-1, 0, 1):
        text = "\n".join(line.text for line in table(both, 100, verbosity))
        assert "lost blocks" in text
        assert "passed: 1 of 2 promises" in text
    assert "raid5x3: 8 sectors do not agree" in "\n".join(line.text for line in table(both, 100))


def test_it_is_no_statistical_claim() -> None:
    evidence = of_survival(LOST)
    found = multiplicity.tally([("test", evidence)], ErrorControl(1, "none"), 0.95)
    assert found is not None
    assert (found.claims_judged, found.readings, found.failures) == (0, 1, ())


def test_it_has_properties() -> None:
    written = dict(properties([of_survival(LOST)]))
    assert written["ssd.claim"] == "lost_blocks"
    assert written["ssd.outcome"] == "fail"
