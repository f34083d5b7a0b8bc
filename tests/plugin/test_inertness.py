"""Without --ssd-devices the plugin must not be noticed: it is loaded in every pytest run of its environment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin import fixtures
from pytest_ssdqual.plugin.options import declare

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

#: Another project's suite: words that a plugin of storage could have taken for itself.
FOREIGN = """
    import pytest

    @pytest.fixture(params=["mine", "too"])
    def array(request):
        return request.param

    @pytest.fixture
    def run():
        return 7

    @pytest.fixture
    def loop(run):
        return [run]

    @pytest.fixture
    def workload(request):
        return request.node.get_closest_marker("workload").args

    @pytest.mark.array("numpy")
    @pytest.mark.workload("heavy")
    @pytest.mark.series("first", of=3)
    @pytest.mark.loop
    @pytest.mark.promise(True)
    @pytest.mark.published("2026-01-01")
    @pytest.mark.lab
    def test_foreign(array, run, loop, workload):
        assert array in ("mine", "too") and loop == [run] == [7] and workload == ("heavy",)
"""
#: The marks are that project's own: pytest is strict about marks that are not declared.
INI = """
    [pytest]
    addopts = --strict-markers
    markers =
        array
        workload
        series
        loop
        promise
        published
        lab
"""
HEAVY = """
    import sys

    def test_imports():
        ours = {name for name in sys.modules if name.startswith("pytest_ssdqual")}
        assert ours <= {"pytest_ssdqual", "pytest_ssdqual.plugin"} | LIGHT, ours - LIGHT
        assert not HEAVY & set(sys.modules)

    QUAL = (
        "qual", "qual.workload", "qual.workload.workload_set", "qual.workload.workload", "qual.units", "qual.names",
        "qual.frozen",
    )
    ROOMS = (
        "options", "options.declare", "options.settings", "options.device_address", "fixtures", "stash", "fleet",
        "fleet.xdist", "hookspecs", "gate", "options.values",
    )
    LIGHT = {"pytest_ssdqual.plugin." + name for name in ROOMS}
    LIGHT |= {"pytest_ssdqual." + name for name in QUAL}
    HEAVY = {"numpy", "scipy", "pydantic", "hypothesis", "jinja2", "matplotlib", "pytest_html", "allure"}
"""


@pytest.mark.parametrize("devices", [(), ("--ssd-devices=lab:3",)], ids=["idle", "active"])
def test_foreign_fixtures_of_the_same_names_are_left_alone(inner: Inner, devices: tuple[str, ...]) -> None:
    inner.pytester.makeini(INI)
    inner.pytester.makepyfile(FOREIGN)
    result = inner.run("-v", *devices)
    result.assert_outcomes(passed=2)
    assert list(inner.cases()) == ["test_foreign[mine]", "test_foreign[too]"]


def test_every_name_of_the_plugin_has_its_prefix(inner: Inner) -> None:
    listed = inner.run("--fixtures", "-v").stdout.str()
    listed_fixtures = re.findall(r"^(\w+)(?: \[\w+ scope\])? -- \S*pytest_ssdqual\S*", listed, re.MULTILINE)
    assert len(listed_fixtures) == len([name for name in vars(fixtures) if name.startswith(("ssd_", "_ssd_"))])
    assert [name for name in listed_fixtures if not name.startswith(("ssd_", "_ssd_"))] == []
    assert [line for line in declare.MARKERS if not line.startswith("ssd_")] == []


def test_a_common_word_is_no_fixture_of_the_plugin(inner: Inner) -> None:
    names = ("array", "run", "loop", "sla", "workload")
    inner.pytester.makepyfile("\n".join(f"def test_{name}({name}): pass" for name in names))
    result = inner.run()
    result.assert_outcomes(errors=len(names))
    result.stdout.fnmatch_lines([f"*'{name}' not found*" for name in names])


def test_no_word_without_devices(inner: Inner) -> None:
    inner.pytester.makepyfile(FOREIGN)
    result = inner.run()
    assert "ssdqual:" not in result.stdout.str()
    assert "storage qualification" not in result.stdout.str()
    assert not (inner.pytester.path / "ssdqual-runs").exists()


def test_nothing_heavy_is_loaded(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(HEAVY)
    # hypothesis' own plugin is light, too, but it loads more of itself when a module is collected.
    others = ("xdist", "hypothesispytest", "cacheprovider", "html", "html_fixtures", "allure_pytest")
    result = pytester.runpytest_subprocess(*(word for other in others for word in ("-p", f"no:{other}")))
    result.assert_outcomes(passed=1)


def test_our_tests_are_skipped_with_what_to_type(inner: Inner) -> None:
    result = inner.run(inner.suite("raid5"), "-rs")
    assert set(inner.outcomes().values()) == {"skipped"}
    (message,) = {case.message for case in inner.cases().values()}
    assert "DESTROYED" in message
    assert "--ssd-devices=lab:8" in message
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert not (inner.pytester.path / "ssdqual-runs").exists()


@pytest.mark.parametrize("question", ["--help", "--markers", "--version", "--fixtures"])
def test_a_question_about_pytest_opens_no_bay(inner: Inner, question: str) -> None:
    result = inner.run("--ssd-devices=/dev/nothing-like-this", question)
    assert result.ret == pytest.ExitCode.OK
    assert not (inner.pytester.path / "ssdqual-runs").exists()


def test_the_fixtures_exist_in_a_second_session_of_the_process(inner: Inner, promises: str) -> None:
    for _ in range(2):
        inner.run("--ssd-devices=lab:3", promises, "-k", "scaling or randread").assert_outcomes(failed=1, skipped=2)
