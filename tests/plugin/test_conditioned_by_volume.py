"""A session by the protocol of acceptance: drives are conditioned once, by volume, and refreshed before arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import PRODUCT, promise
from support.builders.suite import suite

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

SUITE = suite('"raid0", widths=[2, 4]', iops=("steady_iops", '"randread", "4k", 8', '"randwrite", "4k", 8'))


def test_a_session_conditions_by_volume_and_refreshes_each_array(inner: Inner) -> None:
    inner.pytester.makepyfile(test_volume=SUITE)
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + promise(claim="steady_iops", at_least="1 IOPS"))
    result = inner.run("--ssd-devices=lab:4", "--ssd-spec=acme.toml", "--ssd-protocol=acceptance")
    result.assert_outcomes(passed=4)
    (conditioned,) = inner.records("conditioned")
    assert 1 <= conditioned["capacities"] < 1.1
    assert {serial for serial, drift in conditioned["drift"].items() if drift["settled"]} == set(conditioned["rates"])
    refreshed = list(inner.records("refreshed"))
    assert refreshed
    assert all(each["settled"] == pytest.approx(conditioned["rates"]) for each in refreshed)
    assert all(not each["differing"] for each in refreshed)
    visits = {(each["geometry"], each["visit"]) for each in inner.records("cell")}
    # The first array follows the conditioning.
    assert len(refreshed) == len(visits) - 1
