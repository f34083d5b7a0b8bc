"""Without --ssd-devices the plugin must not be noticed: it is loaded in every pytest run of its environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

FOREIGN = """
    import pytest

    @pytest.fixture(params=["mine", "too"])
    def array(request):
        return request.param

    @pytest.fixture
    def run():
        return 7

    def test_foreign(array, run, request):
        assert array in ("mine", "too") and run == 7
"""
HEAVY = """
    import sys

    def test_imports():
        ours = {name for name in sys.modules if name.startswith("pytest_ssdqual")}
        assert ours <= {"pytest_ssdqual", "pytest_ssdqual.plugin"} | LIGHT, ours - LIGHT
        assert not HEAVY & set(sys.modules)

    QUAL = ("qual", "qual.workload", "qual.workload.workload_set", "qual.workload.workload", "qual.units")
    ROOMS = (
        "options", "options.declare", "options.settings", "options.device_address", "fixtures", "stash", "fleet",
        "fleet.xdist", "hookspecs", "gate",
    )
    LIGHT = {"pytest_ssdqual.plugin." + name for name in ROOMS}
    LIGHT |= {"pytest_ssdqual." + name for name in QUAL}
    HEAVY = {"numpy", "scipy", "pydantic", "hypothesis", "jinja2", "matplotlib", "pytest_html", "allure"}
"""


@pytest.mark.parametrize("devices", [(), ("--ssd-devices=lab:3",)], ids=["idle", "active"])
def test_foreign_fixtures_of_the_same_names_are_left_alone(inner: Inner, devices: tuple[str, ...]) -> None:
    inner.pytester.makepyfile(FOREIGN)
    result = inner.run("-v", *devices)
    result.assert_outcomes(passed=2)
    assert list(inner.cases()) == ["test_foreign[mine]", "test_foreign[too]"]


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
    assert {case.message for case in inner.cases().values()} == {
        "needs drives: add --ssd-devices='/dev/sd[b-i]' (all data on them will be DESTROYED), "
        "or --ssd-devices=lab:8 to rehearse with emulated ones"
    }
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert not (inner.pytester.path / "ssdqual-runs").exists()


@pytest.mark.parametrize("question", ["--help", "--markers", "--version", "--fixtures"])
def test_a_question_about_pytest_opens_no_bay(inner: Inner, question: str) -> None:
    result = inner.run("--ssd-devices=/dev/nothing-like-this", question)
    assert result.ret == pytest.ExitCode.OK
    assert not (inner.pytester.path / "ssdqual-runs").exists()


def test_the_fixtures_are_there_in_a_second_session_of_the_process(inner: Inner, promises: str) -> None:
    for _ in range(2):
        inner.run("--ssd-devices=lab:3", promises, "-k", "scaling or randread").assert_outcomes(failed=1, skipped=2)
