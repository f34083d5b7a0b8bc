"""Types of smartctl(8), by which drives are opened."""

from __future__ import annotations

import pytest

from pytest_ssdqual.plugin.options.smart_type import SmartType, parse


@pytest.mark.parametrize(
    "name",
    [
        "auto", "none", "ata", "scsi", "nvme", "nvme,0x1", "sat", "sat,auto", "sat,12", "sat+megaraid,2", "megaraid,4",
        "sat,auto+megaraid,2", "scsi+cciss,1", "areca,3/1", "hpt,1/2/3", "3ware,2", "aacraid,0,0,2", "sntjmicron,0x1",
        "usbjmicron,p,0", "sntasmedia", "sntjmicron#/sat",
    ],
)  # fmt: skip
def test_types_of_smartctl_are_accepted(name: str) -> None:
    assert parse([name]) == (SmartType(name),)
    assert parse([f"/dev/disk/by-id/a=b*={name}"]) == (SmartType(name, "/dev/disk/by-id/a=b*"),)


@pytest.mark.parametrize(
    "name",
    ["", "foo", "megaraid,4;reboot", "sat,$(id)", "-x", "test", "megaraid 4", "sat+", "sat+foo", "SAT", "none+sat"],
)
def test_other_types_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no type of"):
        parse([name])


@pytest.mark.parametrize(
    "name", ["jmb39x,0", "jmb39x-q,1", "jms56x,2,force", "usbcypress", "intelliprop,1", "sat+jmb39x,0", "usbjmicron,x"]
)
def test_types_that_write_are_refused(name: str) -> None:
    """smartctl(8) warns of writes to the drive; smartctl runs before the drives are leased."""
    with pytest.raises(ValueError, match="may write to"):
        parse([name])


def test_patterns_are_paths_given_once() -> None:
    assert parse(["/dev/sdb=none", "sat"]) == (SmartType("none", "/dev/sdb"), SmartType("sat"))
    for given in (["sdb=sat"], ["sat", "scsi"], ["/dev/sdb=sat", "/dev/sdb=sat"]):
        with pytest.raises(ValueError, match=r"of paths|second type"):
            parse(given)
