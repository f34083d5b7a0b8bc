"""The wording of every surface, as golden files: see ``support.documents.golden``."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest
from support.builders import inspected
from support.builders.sheet import PRODUCT, promise
from support.builders.suite import suite
from support.documents import golden

from pytest_ssdqual import command

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

DEVICES = "--ssd-devices=root@dut1:/dev/nvme*"
QUICK = "--ssd-protocol=quick"
#: A test of each outcome: it passes, breaks its promise, is on the limit, has no limit, and finds the rig broken.
SUITE = """
    import pytest
    from pytest_ssdqual import Workload

    READS, WRITES = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
    pytestmark = [pytest.mark.ssd_array("raid5"), pytest.mark.ssd_workload(READS, WRITES)]

    @pytest.mark.ssd_promise("steady_iops")
    def test_iops(ssd_run, ssd_sla):
        verdict = ssd_sla.judge(ssd_run)
        assert verdict

    @pytest.mark.ssd_promise("p99_latency")
    def test_p99(ssd_run, ssd_sla):
        verdict = ssd_sla.judge(ssd_run)
        assert verdict

    @pytest.mark.ssd_promise("p50_latency")
    def test_observed(ssd_run, ssd_sla):
        verdict = ssd_sla.judge(ssd_run)
        assert verdict

    @pytest.mark.ssd_promise("scaling_slope")
    def test_scaling(ssd_sweep, ssd_sla):
        verdict = ssd_sla.judge(ssd_sweep)
        assert verdict

    @pytest.mark.ssd_array("raid6")
    @pytest.mark.ssd_promise("steady_iops")
    def test_broken(ssd_run, ssd_sla):
        verdict = ssd_sla.judge(ssd_run)
        assert verdict
"""
CAUSES = suite(
    '"raid5", widths=[4]',
    iops=("steady_iops", '"randread", "4k", 8'),
    p99=("p99_latency", '"randread", "4k", 8'),
    sequential=("steady_iops", '"read", "128k", 8'),
)
SPEC = (
    PRODUCT
    + promise(claim="steady_iops", workload="randread_*", at_least="1000 IOPS")
    + promise(claim="steady_iops", at_least="300 IOPS")
    + promise(claim="scaling_slope", at_least="0.9")
)
#: What is asked wrongly.
WRONG = (
    ("--ssd-devices=/dev/nvme*", "--ssd-devices=/dev/sd*"),
    ("--ssd-devices=lab:3", "--ssd-devices=/dev/sd*"),
    ("--ssd-devices=lab:none",),
    (DEVICES, "--ssd-protocol=quicker"),
    (DEVICES, "--ssd-spec=none.toml"),
    (DEVICES, "--ssd-spec=wrong.toml"),
    (DEVICES, "--ssd-arrays=raid7"),
    (DEVICES, "--ssd-wipe=SSDQ99"),
    (DEVICES, "--ssd-resume=last"),
    (DEVICES, "--ssd-baseline=none"),
    (DEVICES, "--ssd-bay=dut7"),
    (DEVICES, "--ssd-devices=root@dut2:/dev/nvme*"),
)


@pytest.fixture
def judged(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> tuple[Inner, pytest.RunResult]:
    """A run in which every outcome occurs."""
    monkeypatch.setenv("SIMULATED_BROKEN", "raid6x4")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(inner.pytester.path / "summary.md"))
    inner.pytester.makepyfile(test_acme=SUITE)
    (inner.pytester.path / "acme.toml").write_text(SPEC)
    result = inner.run(DEVICES, QUICK, "--ssd-spec=acme.toml", "-o", "ssd_page=true", "-ra", "--tb=short")
    return inner, result


def test_wording_of_a_run(judged: tuple[Inner, pytest.RunResult]) -> None:
    """In one test: the run is the expensive part."""
    inner, result = judged
    place = inner.pytester.path
    assert set(inner.outcomes().values()) == {"passed", "failure", "skipped", "error"}
    (folder,) = (place / "ssdqual-runs").iterdir()
    golden.check("terminal.txt", golden.steady(result.stdout.str(), place))
    golden.check("junit.xml", golden.steady(junit(inner), place))
    golden.check("markdown.md", golden.steady((place / "summary.md").read_text(), place))
    golden.check("page.txt", golden.steady(golden.page_text((folder / "report.html").read_text()), place))


def test_wording_of_the_plan(inner: Inner) -> None:
    inner.pytester.makepyfile(test_acme=SUITE)
    (inner.pytester.path / "acme.toml").write_text(SPEC)
    result = inner.run(DEVICES, QUICK, "--ssd-spec=acme.toml", "--collect-only", "-q")
    golden.check("plan.txt", golden.steady(result.stdout.str(), inner.pytester.path))


def test_wording_of_refusals(inner: Inner) -> None:
    inner.pytester.makepyfile(test_acme=SUITE)
    (inner.pytester.path / "acme.toml").write_text(SPEC)
    (inner.pytester.path / "wrong.toml").write_text(SPEC.replace("at_least", "at_last"))
    told = []
    for words in WRONG:
        sentences = "\n".join(f"    {line}" for line in inner.refused(*words).splitlines())
        told.append(f"pytest {' '.join(words)}\n{sentences}")
    golden.check("refusals.txt", golden.steady("\n\n".join(told), inner.pytester.path))


def test_wording_of_a_fleet(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bays, and the machine of one is lost."""
    monkeypatch.setenv("SIMULATED_ONLY", "root@dut2")
    monkeypatch.setenv("SIMULATED_LOST_AT", "2")
    inner.pytester.makepyfile(test_acme=SUITE)
    (inner.pytester.path / "acme.toml").write_text(SPEC)
    second = "--ssd-devices=root@dut2:/dev/nvme*"
    monkeypatch.setattr(sys, "argv", ["pytest"])  # is on the page
    few = ("-k", "scaling or observed and x3", "-o", "ssd_page=true")
    result = inner.run(DEVICES, second, QUICK, "--ssd-spec=acme.toml", "-n", "1", *few)
    folder = inner.folder()
    place = inner.pytester.path
    golden.check("fleet.txt", golden.steady(result.stdout.str().partition("= storage qualification of")[2], place))
    golden.check("fleet_page.txt", golden.steady(golden.page_text((folder / "report.html").read_text()), place))


def test_wording_of_causes(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bays, one of which has a slow drive; promises that are predicted, and one without a prediction."""
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ20002=0.7")
    inner.pytester.makepyfile(test_acme=CAUSES)
    (inner.pytester.path / "acme.toml").write_text(
        PRODUCT
        + promise(claim="steady_iops", at_least="1150 IOPS")
        + promise(claim="p99_latency", at_most="40 ms")
        + promise(claim="steady_iops", workload="read_128k_*", at_least="100000 IOPS")
    )
    second = "--ssd-devices=root@dut2:/dev/nvme*"
    inner.run(
        DEVICES, second, QUICK, "--ssd-spec=acme.toml", "-n", "1", "-o", "ssd_page=true", "-o", "ssd_members=true"
    )
    folder = inner.folder()
    place = inner.pytester.path
    why = golden.page_text((folder / "report.html").read_text()).rpartition("\nWhy\n")[2].partition("\nWhat differs")[0]
    golden.check("causes.txt", golden.steady(f"{(folder / 'summary.md').read_text()}\n{why}\n", place))


def test_wording_of_a_comparison(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same drives before and after one of them became slow."""
    inner.pytester.makepyfile(test_acme=SUITE)
    (inner.pytester.path / "acme.toml").write_text(SPEC)
    some = (DEVICES, QUICK, "--ssd-spec=acme.toml", "-k", "x4 and not broken")
    inner.run(*some, "--ssd-run-dir=before")
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ10002=0.8")
    inner.run(*some, "--ssd-run-dir=after")
    capsys.readouterr()
    runs = [str(next((inner.pytester.path / name).iterdir())) for name in ("before", "after")]
    assert command.main(["compare", *runs]) == 0
    golden.check("comparison.txt", golden.steady(capsys.readouterr().out, inner.pytester.path))


def worn() -> str:
    """Two of eight drives deviate at the inspection, see ``SIMULATED_INSPECTED``."""
    found = {}
    for serial, log in {
        "SSDQ0003": {"power_on_hours": 9204, "percentage_used": 38, "data_units_written": 80_000_000},
        "SSDQ0006": {"available_spare": 91},
    }.items():
        smart = inspected.smart_of_nvme(serial, "QEMU NVMe Ctrl")
        smart["nvme_smart_health_information_log"].update(log)
        smart["power_on_time"] = {"hours": log.get("power_on_hours", 3)}
        found[serial] = {"smart": json.dumps(smart)}
    return json.dumps(found)


READS = "steady and randread_4k_qd8"
#: What is wrong, the suite, and the tests.
SITUATIONS = {
    "slow": ({"SIMULATED_SLOW": "SSDQ0006=0.6"}, "raid5", READS),
    "dead": ({"SIMULATED_TROUBLE": "pulled:SSDQ0002"}, "raid5", "steady and raid5x3"),
    "md": ({"SIMULATED_MD": "600"}, "raid5", READS),
    "interrupted": ({"SIMULATED_INTERRUPTED_AT": "12"}, "raid5", READS),
    "inspection": ({"SIMULATED_INSPECTED": worn()}, "inspection", "not model"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SITUATIONS)
def test_wording_of_an_ending(inner: Inner, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Terminal and first screen of situations that a newcomer must understand within a minute."""
    variables, suite_name, tests = SITUATIONS[name]
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    options = ("-o", "ssd_members=true", "-o", "ssd_page=true", "--tb=no", "--import-mode=importlib", "-k", tests)
    rig = ("-p", "support.simulator.simulated_rig", "--ssd-devices=lab:8", QUICK)
    result = inner.pytester.runpytest_inprocess(*rig, *options, inner.suite(suite_name), no_reraise_ctrlc=True)
    ending = result.stdout.str().partition("= storage qualification =")[2].partition("\n")[2]
    ending = re.split(r"\n=+ |\n!+ ", ending)[0]
    assert len(ending.splitlines()) <= 40
    first = golden.page_text((inner.folder() / "report.html").read_text()).partition("\nWhy\n")[0]
    golden.check(f"ending-{name}.txt", golden.steady(f"{ending}\n\n---\n{first}\n", inner.pytester.path))


def junit(inner: Inner) -> str:
    """An element a line; properties of the first test only."""
    root = ET.parse(inner.pytester.path / "junit.xml").getroot()  # noqa: S314 (our own)
    for each in root.iter():
        for name in ("time", "timestamp", "hostname"):
            each.attrib.pop(name, None)
    first, *others = (case for case in root.iter("testcase") if case.find("properties") is not None)
    assert first.findall("properties/property")
    for case in others:
        case.remove(case.find("properties"))  # type: ignore[arg-type]
    ET.indent(root)
    return re.sub(r"\n{2,}", "\n", ET.tostring(root, encoding="unicode"))
