from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_ssdqual.qual.measured.environment import OwnCount
from pytest_ssdqual.rig.health import activity, own_activity
from pytest_ssdqual.rig.health.own_activity import between
from pytest_ssdqual.rig.health.smart_answer import parsed

DATA = Path(__file__).parents[2] / "data"
SMART_LOG = (DATA / "nvme-cli" / "2.3" / "smart-log.json").read_text()
SMARTCTL = (DATA / "smartctl" / "qemu-nvme-7.3.json").read_text()


def count(answer: str) -> OwnCount | None:
    return own_activity.count(parsed(answer))


def self_test(answer: str) -> str | None:
    return activity.self_test(parsed(answer))


def test_nvme_cli_and_smartctl_report_commands_and_data_units() -> None:
    assert count(SMART_LOG) == OwnCount(49, 0, 3 * 512_000, 0, 512_000)
    log = json.loads(SMARTCTL)["nvme_smart_health_information_log"]
    found = count(SMARTCTL)
    assert found
    assert (found.read_commands, found.write_commands) == (log["host_reads"], log["host_writes"])
    assert found.read_bytes == log["data_units_read"] * 512_000


def ata(**values: int) -> str:
    table = [{"name": name, "value": value, "flags": {"valid": True}} for name, value in values.items()]
    plain = {
        "json_format_version": [1, 0],
        "logical_block_size": 512,
        "ata_device_statistics": {"pages": [{"table": table}]},
    }
    return json.dumps(plain)


def test_device_statistics_and_the_error_counter_log_count_too() -> None:
    values = {
        "Logical Sectors Read": 80, "Logical Sectors Written": 8, "Number of Read Commands": 10,
        "Number of Write Commands": 1,
    }  # fmt: skip
    assert count(ata(**values)) == OwnCount(10, 1, 80 * 512, 8 * 512, 512)
    log = {"read": {"gigabytes_processed": "3.125"}, "write": {"gigabytes_processed": "0.001"}}
    scsi = json.dumps({"json_format_version": [1, 0], "scsi_error_counter_log": log})
    assert count(scsi) == OwnCount(None, None, 3_125_000_000, 1_000_000, 10**6)


@pytest.mark.parametrize("answer", ["", "no JSON", "[]", "{}", '{"data_units_read": "many"}', ata()])
def test_a_drive_that_does_not_count_is_unknown(answer: str) -> None:
    assert count(answer) is None
    assert self_test(answer) is None


def test_a_count_that_went_backwards_is_unknown() -> None:
    first, last = OwnCount(5, 5, 500, None, 512), OwnCount(7, 9, 900, 3, 512)
    assert between(first, last) == OwnCount(2, 4, 400, None, 512)
    assert between(last, first) is None
    assert between(None, last) is None


@pytest.mark.parametrize(
    ("plain", "expected"),
    [
        ({"nvme_self_test_log": {"current_self_test_operation": {"value": 0}}}, ""),
        (
            {
                "nvme_self_test_log": {
                    "current_self_test_operation": {"value": 2, "string": "Extended self-test in progress"},
                    "current_self_test_completion_percent": 60,
                }
            },
            "an extended self-test (40 % left)",
        ),
        ({"nvme_self_test_log": {"current_self_test_operation": {"value": 1}}}, "a short self-test"),
        (
            {"ata_smart_data": {"self_test": {"status": {"value": 244, "remaining_percent": 40}}}},
            "a self-test (40 % left)",
        ),
        ({"ata_smart_data": {"self_test": {"status": {"value": 240}}}}, "a self-test (less than 10 % left)"),
        ({"ata_smart_data": {"self_test": {"status": {"value": 0, "passed": True}}}}, ""),
        ({"ata_smart_data": {"self_test": {"status": {"value": 121, "passed": False}}}}, ""),
        ({"scsi_self_test_0": {"result": {"value": 15, "string": "Self test in progress ..."}}}, "a self-test"),
        ({"scsi_self_test_0": {"result": {"value": 0, "string": "Completed"}}}, ""),
        ({"smartctl": {"exit_status": 4}}, None),
    ],
)
def test_a_self_test_in_progress_is_described(plain: object, expected: str | None) -> None:
    assert self_test(json.dumps(plain)) == expected
