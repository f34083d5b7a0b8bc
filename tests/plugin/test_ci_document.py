"""The examples of docs/ci.md: they can be read, name nothing that does not exist, and do what they say."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import allure  # noqa: F401 (pytester forgets what is first imported inside)
import prometheus_client.parser
import pytest
import yaml
from support.builders.sheet import PRODUCT, promise

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

DOCUMENT = (Path(__file__).parents[2] / "docs/ci.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)
GITHUB, GITLAB = (yaml.safe_load(text) for kind, text in BLOCKS if kind == "yaml")
(JENKINS,) = (text for kind, text in BLOCKS if kind == "groovy")
#: What a run leaves for others to look at.
SHOWN = ("report.html", "summary.md", "manifest.json", "records.jsonl", "SHA256SUMS")


def strings(value: Any) -> Iterator[str]:  # noqa: ANN401 (whatever YAML gives)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from strings(each)
    else:
        yield str(value)


def lines() -> dict[str, list[str]]:
    """The shell's lines of each example."""
    texts = {
        "github": strings(GITHUB["jobs"]),
        "gitlab": strings(GITLAB),
        "jenkins": re.findall(r"'([^'\n]+)'", JENKINS),
    }
    texts["jenkins"] = iter([*texts["jenkins"], *JENKINS.splitlines()])
    return {name: [line.strip() for text in found for line in text.splitlines()] for name, found in texts.items()}


def only(name: str, beginning: str) -> str:
    (found,) = {line for line in lines()[name] if re.match(beginning, line)}
    return found


def command(name: str) -> str:
    return only(name, r"(exec )?venv/bin/pytest ")


def copy(name: str) -> str:
    return only(name, "rm -rf run && ")


EXAMPLES = pytest.mark.parametrize("name", ["github", "gitlab", "jenkins"])


def test_what_is_kept_is_what_the_commands_leave() -> None:
    steps = GITHUB["jobs"]["raid5"]["steps"]
    assert steps[-1]["with"]["path"].split() == ["junit.xml", "run/"]
    assert [step["if"] for step in steps[-2:]] == ["always()", "always()"]
    assert GITLAB["raid5"]["artifacts"] == {
        "when": "always",
        "paths": ["junit.xml", "run/"],
        "reports": {"junit": "junit.xml"},
    }
    assert re.findall(r"(?:junit testResults|artifacts): '([^']+)'", JENKINS) == ["junit.xml", "junit.xml, run/**"]
    assert [JENKINS.count(each) for each in "{("] == [JENKINS.count(each) for each in "})"]


@EXAMPLES
def test_two_jobs_never_run_on_one_machine(name: str) -> None:
    guarded = {
        "github": GITHUB["concurrency"] == {"group": "bench-1", "cancel-in-progress": False},
        "gitlab": GITLAB["raid5"]["resource_group"] == "bench-1",
        "jenkins": "disableConcurrentBuilds()" in JENKINS,
    }
    assert guarded[name]


def test_every_option_and_ini_value_exists(inner: Inner) -> None:
    text = inner.run("--help").stdout.str()
    named = set(re.findall(r"(?<![\w-])--(?:ssd|junit)[a-z-]*", DOCUMENT))
    assert {"--ssd-devices", "--ssd-run-dir", "--ssd-resume", "--ssd-openmetrics", "--junitxml"} <= named
    assert {each for each in named if f"{each}=" not in text.replace("--junit-xml=", "--junitxml=")} == set()
    assert {each for each in re.findall(r"\bssd_\w+", DOCUMENT) if f"{each} (" not in text} == set()


@EXAMPLES
def test_every_command_line_is_one(inner: Inner, name: str) -> None:
    resumed, anew = (words(name, resume) for resume in ("last", ""))
    assert [each for each in resumed if each not in anew] == ["--ssd-resume=last"]
    assert resumed[:2] == ["venv/bin/pytest", "suites/raid5"]
    config = inner.pytester.parseconfig(*[each for each in resumed[1:] if each != "suites/raid5"])
    assert config.option.ssd_devices == ["/dev/nvme[1-8]n1"]
    assert (config.option.ssd_resume, config.option.ssd_run_dir) == ("last", "/srv/ssdqual")
    assert config.option.xmlpath == "junit.xml"


def words(name: str, resume: str) -> list[str]:
    """What a shell makes of a command line."""
    line = command(name).removeprefix("exec ")
    done = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {line}"], env={"RESUME": resume}, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.fixture
def kept(inner: Inner, promises: str) -> tuple[str, ...]:
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + promise(claim="steady_iops", at_least="1 IOPS"))
    return "--ssd-devices=lab:3", promises, "-k", "test_iops and randread"


def test_the_artefacts_of_a_run_are_there(inner: Inner, kept: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "pytest_ssdqual.report.html.run_page.write", lambda folder: (folder / "report.html").write_text("a page")
    )
    root = inner.pytester.path / "srv"
    before = root / "20990101T000000Z-before"
    before.mkdir(parents=True)  # before, though not by its name: another may be resumed
    os.utime(before, (0, 0))
    (inner.pytester.path / "began").touch()
    os.utime(inner.pytester.path / "began", (1, 1))
    inner.run(*kept, f"--ssd-run-dir={root}", "--ssd-page=yes")
    assert (inner.pytester.path / "junit.xml").is_file()
    for name in ("github", "gitlab", "jenkins"):
        line = copy(name).replace("/srv/ssdqual", shlex.quote(str(root)))
        assert str(root) in line
        subprocess.run(["sh", "-ec", line], cwd=inner.pytester.path, env={"PATH": os.environ["PATH"]}, check=True)
        (run,) = (inner.pytester.path / "run").iterdir()
        assert [each for each in SHOWN if not (run / each).is_file()] == []


@EXAMPLES
def test_a_job_that_was_refused_has_no_artefacts_of_another_one(tmp_path: Path, name: str) -> None:
    before = tmp_path / "srv" / "20990101T000000Z-before"
    before.mkdir(parents=True)
    (before / "report.html").write_text("the page of another job")
    (tmp_path / "began").touch()
    line = copy(name).replace("/srv/ssdqual", shlex.quote(str(tmp_path / "srv")))
    subprocess.run(["sh", "-ec", line], cwd=tmp_path, env={"PATH": os.environ["PATH"]}, check=True)
    assert list((tmp_path / "run").iterdir()) == []


def test_a_cancelled_job_is_resumed(inner: Inner, kept: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_MEDIA", "media.json")
    monkeypatch.setenv("SIMULATED_INTERRUPTED_AT", "2")
    result = inner.pytester.runpytest_inprocess("-p", "support.simulator.simulated_rig", *kept, no_reraise_ctrlc=True)
    assert result.ret == 2
    (summary,) = inner.pytester.path.glob("ssdqual-runs/*/summary.md")
    assert "interrupted" in summary.read_text()
    monkeypatch.delenv("SIMULATED_INTERRUPTED_AT")
    result = inner.run(*kept, *[each for each in words("github", "last") if each.startswith("--ssd-resume")])
    assert result.ret == 0
    assert set(inner.outcomes().values()) == {"passed"}
    assert summary.read_text().startswith("## Passed for ")


def test_pytest_html_and_allure_get_what_the_table_says(inner: Inner, kept: tuple[str, ...]) -> None:
    section = DOCUMENT.split("## pytest-html and Allure", 1)[1].split("## ", 1)[0]
    (line,) = re.findall(r"^    venv/bin/pytest (.*)$", section, re.MULTILINE)
    own = ("suites/raid5", "--ssd-devices", "--ssd-run-dir", "--ssd-expect")
    inner.run(*kept, *[each for each in shlex.split(line) if not each.startswith(own)])
    assert ">Judged</th>" in (inner.pytester.path / "tests.html").read_text()
    (result,) = (inner.pytester.path / "allure-results").glob("*-result.json")
    found = json.loads(result.read_text())
    told = set(re.findall(r"`(ssd\.\w+)`", section))
    assert {each["name"] for each in found["parameters"] if each.get("excluded")} == told
    assert {each["name"] for each in found["labels"]} >= {"feature", "severity", "tag"}


def test_every_metric_is_explained(inner: Inner, kept: tuple[str, ...]) -> None:
    inner.run(*kept, "--ssd-openmetrics=x.prom")
    families = list(
        prometheus_client.parser.text_string_to_metric_families((inner.pytester.path / "x.prom").read_text())
    )
    assert len(families) > 15
    told = set(re.findall(r"`([a-z_]+)(?:…)?`", DOCUMENT))
    for family in families:
        short = re.sub(r"_(iops|seconds|ratio|bytes_per_second)$", "_", family.name)
        assert {family.name, short, family.name.removeprefix("ssdqual_drive")} & told, family.name
        labels = {label for sample in family.samples for label in sample.labels}
        assert labels <= told
