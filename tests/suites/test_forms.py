"""Every method on one drive, on drives side by side and on an array with parity, whatever it was published for."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pytest
from support.builders.sheet import lab_with_every_depth
from support.fakes import suite_session

pytestmark = pytest.mark.slow

#: Of each method, what is much of the same.
METHODS = {
    "intel_910": "not t1xqd2",
    "intel_s3500": "not block_sizes and not growth",
    "snia": "not snia-iops and not snia-cbw",
    "stec": "not _16k and not _32k",
    "toms_s3500": "not _8k and not _16k",
    "toms_s3700": "not growth and not fileserver",
}
FORMS = ("drivex1", "drivex3", "raid5x3")
#: A reason for which a run is not green: the sheet of the emulated drive lacks figures of some methods.
UNJUDGED = re.compile(r"^throughput: none of \d+ tests judged$")


@pytest.mark.nightly
@pytest.mark.parametrize("method", METHODS)
def test_every_test_of_a_method_runs_on_every_form(method: str, tmp_path: Path) -> None:
    require_every_form(tmp_path, "-k", METHODS[method], methods=[method])


def test_a_test_of_each_function_runs_on_every_form(tmp_path: Path) -> None:
    require_every_form(tmp_path, "-p", "support.fakes.first_of_each", methods=METHODS)


def require_every_form(tmp_path: Path, *options: str, methods: Collection[str]) -> None:
    done = suite_session.run(
        "--tb=line",
        "--ssd-devices=lab:3",
        lab_with_every_depth(tmp_path),
        f"--ssd-arrays={','.join(FORMS)}",
        f"--ssd-run-dir={tmp_path / 'runs'}",
        # Nothing here reads the page, whose charts are a quarter of the time.
        "-o",
        "ssd_page=false",
        f"--junitxml={tmp_path / 'junit.xml'}",
        *options,
        *(f"suites/{method}" for method in methods),
        SIMULATED_DRIVES="3",
    )
    cases = list(ET.parse(tmp_path / "junit.xml").getroot().iter("testcase"))  # noqa: S314 (our own)
    errors = [(str(case.get("name")), str(error.text)) for case in cases if (error := case.find("error")) is not None]
    assert all(name == "not green" and UNJUDGED.match(reason) for name, reason in errors), done.stdout[-3000:]
    # Beside the others, each claim has a test that is judged.
    alone = next(iter(methods)) if len(methods) == 1 else ""
    assert bool(errors) is (alone == "intel_s3500" or alone.startswith("toms")), done.stdout[-3000:]
    for method in methods:
        of_method = [case for case in cases if f"{method}." in str(case.get("classname"))]
        on = Counter(form for case in of_method for form in FORMS if f"[{form}-" in str(case.get("name")))
        assert len(set(on.values())) == 1
        assert min(on[form] for form in FORMS) > 1
    skipped = [str(case.find("skipped").get("message")) for case in cases if case.find("skipped") is not None]  # type: ignore[union-attr]
    by_form = [why for why in skipped if "needs --ssd-arrays=drive" in why]
    assert bool(by_form) is ("stec" in methods)
