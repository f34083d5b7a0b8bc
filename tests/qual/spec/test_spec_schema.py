from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from support.builders.sheet import PRODUCT, figure, loaded, promise
from support.documents.json_schema import problems

import pytest_ssdqual
from pytest_ssdqual.qual.spec import spec
from pytest_ssdqual.qual.spec.claims import Claim

SPECS = Path(pytest_ssdqual.__file__).parent / "specs"


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    # As it is written to a file.
    found: dict[str, Any] = json.loads(json.dumps(spec.json_schema()))
    return found


@pytest.mark.parametrize("name", spec.shipped())
def test_the_schema_accepts_what_is_shipped(schema: dict[str, Any], name: str) -> None:
    content = tomllib.loads((SPECS / f"{name}.toml").read_text(encoding="utf-8"))
    assert problems(content, schema) == []


_TABLES = ("Product", "DataSheetValue", "EnduranceTable", "HealthTable", "LotTable", "Promise")
GOOD = {
    "units": PRODUCT + '[endurance]\ntbw = "3,500 TB"\n',
    "sizes": PRODUCT + figure(rw="read", bs=["128KiB", "1m"], queue_depths=[1], throughput="450 MiB/s"),
    "micro": PRODUCT + figure(workload="a_qd1", mean_latency="140µs") + figure(workload="b_qd1", max_latency="1.4 ms"),
    "no conditions": PRODUCT + figure(rw="read", bs="4k", conditions="unpublished", iops=1),
    "iops as text": PRODUCT + figure(workload="read_4k_qd1", iops="75,000 iops"),
    "ratio as text": PRODUCT + promise(claim="qd_gain", at_least="1.5 x"),
    "ratio": PRODUCT + promise(claim="qd_gain", at_least=1.5),
    "rate": PRODUCT + promise(claim="rebuild_rate", at_least="450MB/s"),
    "lot": PRODUCT + '[lot]\nsize = 500\naql = "1.0 %"\ninspection = "S-4"\nby = "variables"\n',
    "lot of unknown size": PRODUCT + "[lot]\nsample = 13\naccept = 0\n",
    "health": PRODUCT + "[health]\nlink_errors = 0\nspare = 2\nunsafe_shutdowns = 3\n",
    "relative": PRODUCT + promise(claim="throughput", relative_to="read_4k_qd1", at_least="45 %"),
}


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_what_we_read_the_schema_accepts(schema: dict[str, Any], text: str) -> None:
    loaded(text)
    assert problems(tomllib.loads(text), schema) == []


def test_the_schema_says_what_it_is_and_describes_every_key(schema: dict[str, Any]) -> None:
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "pytest-ssdqual spec"
    assert schema["$defs"]["Claim"]["enum"] == [claim.value for claim in Claim]
    tables = {name: schema["$defs"][name] for name in _TABLES}
    for name, table in tables.items():
        assert table["additionalProperties"] is False
        for key, about in table["properties"].items():
            assert about.get("description"), f"{name}.{key}"
