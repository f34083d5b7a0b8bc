from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner


RESTARTS = """
    def pytest_configure_node(node):
        print("RESTARTS", node.config.option.maxworkerrestart)
"""


def test_all_tests_of_a_bay_go_to_one_worker_with_equal_verdicts(inner: Inner, promises: str) -> None:
    inner.pytester.makeconftest(RESTARTS)
    args = "--ssd-devices=lab:4", promises
    first = inner.run(*args)
    alone = {name: (case.outcome, case.message) for name, case in inner.cases().items()}
    inner.folder().rename(inner.pytester.path / "first")
    second = inner.run(*args, "-n", "2", "--dist", "loadgroup")
    assert second.ret == first.ret
    assert {name: (case.outcome, case.message) for name, case in inner.cases().items()} == alone
    assert len({record["writer"] for record in inner.records("measured")}) == 1
    assert [record["geometry"] for record in inner.records("array_created")] == ["raid5x3", "raid5x4"]
    assert {record["writer"] for record in inner.records("verdict", "run_started", "run_ended")} == {"main"}
    second.stdout.fnmatch_lines(["RESTARTS 0"])


def test_a_user_may_still_ask_for_restarts(inner: Inner) -> None:
    inner.pytester.makeconftest(RESTARTS)
    inner.pytester.makepyfile("def test_it(): pass")
    result = inner.run("--ssd-devices=lab:3", "-n", "auto", "--max-worker-restart=3")
    result.stdout.fnmatch_lines(["created: 1/1 worker", "RESTARTS 3"])


def test_a_session_without_drives_is_scheduled_by_xdist(inner: Inner) -> None:
    inner.pytester.makeconftest(RESTARTS)
    inner.pytester.makepyfile("import pytest\n@pytest.mark.parametrize('n', range(2))\ndef test_it(n): pass")
    result = inner.run("-n", "2", "-v")
    result.stdout.fnmatch_lines(["RESTARTS None"])
    assert {line.split("]")[0] for line in result.outlines if "PASSED" in line} == {"[gw0", "[gw1"}
