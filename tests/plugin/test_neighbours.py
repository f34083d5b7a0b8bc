"""The shipped suite ``neighbour``: the verdict of each drive is about its own reads, beside writes and alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import PRODUCT, promise

if TYPE_CHECKING:
    from support.fakes.inner_session import Case, Inner

SPEC = PRODUCT + promise(claim="neighbour_p99", at_most=20) + promise(claim="neighbour_iops", at_least=0.2)
P99, IOPS = "test_p99_latency_beside_a_neighbour", "test_iops_beside_a_neighbour"


def judged(inner: Inner, protocol: str = "quick", *more: str) -> dict[str, Case]:
    (inner.pytester.path / "acme.toml").write_text(SPEC)
    inner.suite("neighbour")
    sheet = ("--ssd-spec=acme.toml",) if "--ssd-spec" not in "".join(more) else ()
    options = ("--import-mode=importlib", "--ssd-devices=lab:3", f"--ssd-protocol={protocol}", *sheet, *more)
    print(inner.run(*options, "neighbour").stdout.str())
    return inner.cases()


def test_x(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_STARVED", "SSDQ0002=0.05")
    for name, case in judged(inner).items():
        print(name, case.outcome, case.message[:600])
    assert 0
