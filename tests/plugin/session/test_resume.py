from __future__ import annotations

import pytest

from pytest_ssdqual.plugin.session.resume import command


@pytest.mark.parametrize("before", [[], ["--ssd-resume=last"], ["--ssd-resume", "last"]])
def test_the_command_that_resumes_a_run_names_it_once(before: list[str]) -> None:
    given = ["--ssd-devices=/dev/sd[b-i]", *before, "suites/raid5"]
    assert command(given, "20261124T1") == "pytest '--ssd-devices=/dev/sd[b-i]' suites/raid5 --ssd-resume=20261124T1"
