from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner


def test_a_site_can_refuse_drives_with_its_own_reasons(inner: Inner) -> None:
    inner.pytester.makeconftest(
        """
        def pytest_ssdqual_refuse_drive(drive):
            if drive.serial in ("SSDQ0002", "SSDQ0003"):
                return "is not on the asset list"
        """
    )
    for more in ((), ("--collect-only",)):
        said = inner.refused("--ssd-devices=/dev/nvme*", *more)
        assert said.count("the asset list") == 2
        assert "serial SSDQ0002): " in said
        assert "SSDQ0004" not in said


def test_a_site_can_add_facts(inner: Inner) -> None:
    inner.pytester.makeconftest(
        """
        def pytest_ssdqual_facts(machine):
            return {"slot_map": machine.run(["nproc"]).text + " slots"}
        """
    )
    inner.pytester.makepyfile("def test_it(): pass")
    inner.run("--ssd-devices=lab:3")
    folder = inner.folder()
    assert '"slot_map": "2 slots"' in (folder / "manifest.json").read_text()


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_site_is_told_of_every_verdict_once(inner: Inner, promises: str, workers: tuple[str, ...]) -> None:
    inner.pytester.makeconftest(
        """
        import json, pathlib

        def pytest_ssdqual_record(record):
            with pathlib.Path("told").open("a") as file:
                print(json.dumps(record), file=file)
        """
    )
    inner.run("--ssd-devices=lab:4", promises, *workers)
    told = [json.loads(line) for line in (inner.pytester.path / "told").read_text().splitlines()]
    assert [(each["claim"], each["outcome"]) for each in told] == [
        ("steady_iops", "inconclusive"), ("steady_iops", "fail"), ("steady_iops", "inconclusive"),
        ("steady_iops", "pass"), ("scaling_slope", "pass"), ("scaling_slope", "pass"),
    ]  # fmt: skip
    assert told[0]["test"] == "test_promises.py::test_iops[raid5x3-randwrite_4k_qd8]"
