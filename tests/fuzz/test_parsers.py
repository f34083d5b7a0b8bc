"""Whatever comes from outside, only the errors that a parser documents leave it, with a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.captured import VERSIONS, Captured, captured
from support.builders.mutations import bytes_like, fuzzed, json_like, plain_like, survives, text_like
from support.builders.topologies import Plant, plants
from support.fakes.scripted import ScriptedMachine, completed

import pytest_ssdqual
from pytest_ssdqual.plugin.options.device_address import parse_devices
from pytest_ssdqual.plugin.plan.marks import parse_list
from pytest_ssdqual.qual import units
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import protocol, spec
from pytest_ssdqual.qual.spec import toml as document
from pytest_ssdqual.qual.spec.toml import DocumentError
from pytest_ssdqual.qual.strict_json import read_json
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.survey_parse import topology_of
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.fio import acceptance, features, output, status_stream
from pytest_ssdqual.rig.guard import refusals
from pytest_ssdqual.rig.guard.consent import Consent, Risk
from pytest_ssdqual.rig.health import health, temperature, write_counters
from pytest_ssdqual.rig.health.smart_answer import parsed
from pytest_ssdqual.rig.machine import facts as provenance
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, RigError
from pytest_ssdqual.rig.md import mdadm, resync
from pytest_ssdqual.rig.observe import environment
from pytest_ssdqual.rig.purge import ata, nvme
from pytest_ssdqual.rig.purge.zero import PassedOver

HERE = Path(__file__).parents[1] / "data"
LSBLK = (HERE / "lsblk" / "lab-2.38.json").read_text()
FACTS = (HERE / "lsblk" / "lab-2.38.facts").read_text()
SMART = (HERE / "smartctl" / "qemu-nvme-7.3.json").read_text()
NVME = [path.read_text() for path in sorted((HERE / "nvme-cli").rglob("*.json"))]
HDPARM = [path.read_text() for path in sorted((HERE / "hdparm" / "9.65").iterdir())]
SIGHT = """\
clock 1442.10 1795286113.157059313 1442.14
/proc/stat:cpu  90 0 584 2775 12 0 36 3 0 0
/proc/stat:cpu0 22 0 313 1391 5 0 16 1 0 0
/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_total_time_ms:1250
/sys/block/nvme0n1/stat:      49       10     2096       92        5        1        8        0        0       12     92
/sys/block/nvme0n1/diskseq:9
/sys/block/nvme0n1/device/device/current_link_speed:8.0 GT/s PCIe
/sys/block/nvme0n1/device/device/current_link_width:4
/sys/block/nvme0n1/device/device/max_link_speed:16.0 GT/s PCIe
/sys/block/nvme0n1/device/device/max_link_width:4
/sys/block/nvme0n1/device/hwmon1/temp1_max:81850
/sys/block/md100/stat:9415 0 75320 0 0 0 0 0 0 0 0
/sys/block/md100/md/chunk_size:65536
==log
[ 1421.565657] md: data-check of RAID array md100
==
==warmth nvme0n1
{ "critical_warning":0, "temperature":323, "thm_temp1_trans_count":"3" }
==
==end
"""
DRIVE = Drive("/dev/sdb", "sdb", "ACME SSD", "S 1/2", "0x50", "F1", 480 * 10**9, 512, 4096, False, "sata")
TOML = [
    file.read_text()
    for folder in ("specs", "protocols")
    for file in sorted((Path(pytest_ssdqual.__file__).parent / folder).glob("*.toml"))
    if file.stat().st_size < 6000
]


def answering(text: str) -> ScriptedMachine:
    """A machine that says this, whatever it is asked."""
    machine = ScriptedMachine()
    machine.answers[()] = lambda argv: completed(argv, text)
    return machine


# -- text that people and files write

WORDS = ("4k", "480 GB", "1.4 ms", "12 min", "450 MB/s", "5 %", "randrw70_4k_off512_t4xqd32", "raid5x4-1failed")
ARGUMENTS = (
    "root@dut7:/dev/sd[b-i],/dev/nvme*",
    "[fe80::1%eth0]:/dev/sda",
    "lab:8",
    "drive,raid5x4,raid0",
    "A\\,B,C@12ab,D\\@e",
)
TEXTS: Mapping[str, Callable[[str], object]] = {
    "size": units.parse_size,
    "duration": units.parse_duration,
    "latency": units.parse_latency,
    "throughput": units.parse_throughput,
    "geometry": Geometry.parse,
    "workload": Workload.parse,
    "arrays": parse_list,
    "wipe": partial(Consent.parse, Risk.CONTENT),
    "devices": parse_devices,
}


@pytest.mark.parametrize("name", TEXTS)
@fuzzed()
@given(st.data())
def test_words(name: str, data: st.DataObject) -> None:
    text = data.draw(text_like(WORDS + ARGUMENTS) | st.text(max_size=30) | st.just("9" * 10**5 + "k"))
    survives(lambda: TEXTS[name](text), ValueError, pytest.UsageError)


@fuzzed(60)
@given(text_like(TOML))
def test_specs_and_protocols(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "fuzz.toml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    survives(lambda: spec.load(file), DocumentError)
    survives(lambda: protocol.load(file), DocumentError)


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "9" * 5000, 'a = "\\u001b[2J"', '"\\u202e" = 1'])
def test_hostile_documents_are_refused_in_printable_words(tmp_path: Path, text: str) -> None:
    file = tmp_path / "acme.toml"
    file.write_text(text)
    with pytest.raises(document.DocumentError) as caught:
        spec.load(file)
    assert str(caught.value).replace("\n", "").isprintable()
    assert len(str(caught.value)) < 10_000


@pytest.mark.parametrize("name", ["ACME\\u001b[2J", "ACME\\u202e9", "ACME\\u0085"])
def test_a_product_is_called_something_that_can_be_printed(tmp_path: Path, name: str) -> None:
    file = tmp_path / "acme.toml"
    file.write_text(f'[product]\nname = "{name}"\nmodels = []\n')
    with pytest.raises(DocumentError, match=r"product\.name: "):
        spec.load(file)


@pytest.mark.parametrize("text", ["9" * 65, "1" + " " * 100 + "k", "1k" + " " * 10**6 + "x"])
def test_a_number_of_any_length_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="not a size"):
        units.parse_size(text)


def test_a_document_without_an_end_is_not_read_to_it() -> None:
    with pytest.raises(document.DocumentError, match="than 4 MiB"):
        document.text(Path("/dev/zero"), "specs")


# -- what tools of the machine under test print


@fuzzed(60)
@given(json_like([json.loads(LSBLK)]), text_like([FACTS]))
def test_lsblk_and_the_survey(lsblk: str, facts: str) -> None:
    for one, other in ((lsblk, FACTS), (LSBLK, facts)):
        topology = survives(lambda one=one, other=other: topology_of(one, other), ValueError)  # type: ignore[misc]
        if topology is not None:
            list(refusals.leftovers(topology, ()))  # type: ignore[arg-type]


@fuzzed(30)
@given(plants(), st.data())
def test_a_damaged_survey_lets_nothing_in_use_pass(plant: Plant, data: st.DataObject) -> None:
    """Only the relations may be lost together with the lines that tell of them; never an error of Python's."""
    disk, told, order = plant.disks[0], plant.everything(), Random(0)  # noqa: S311 (no secret)
    facts = data.draw(text_like([plant.script(told, order)]))
    topology = survives(lambda: topology_of(plant.lsblk(told, order), facts, [disk.kname]), ValueError)
    if topology is not None:
        refusals.refusals(topology, [plant.match(disk)])  # type: ignore[arg-type]


PARSERS: Mapping[str, tuple[list[str], Callable[[str], object], tuple[type[Exception], ...]]] = {
    "smartctl": ([SMART], health.parse, (ValueError,)),
    "smart-log": ([SMART, *NVME], lambda text: temperature.parse(parsed(text)), ()),
    "nvme": (NVME, lambda text: nvme._controller(answering(text), DRIVE), (PassedOver,)),
    "nvme layout": (NVME, lambda text: nvme._layout(answering(text), DRIVE), (PassedOver,)),
    "nvme sanitize": (NVME, lambda text: nvme.sanitize_status(answering(text), DRIVE), ()),
    "hdparm": (HDPARM, lambda text: ata.Security.parse(text).objection("/dev/sdb"), ()),
    "md": (
        ["/sys/block/md5/md/array_state:clean\n/sys/block/md5/md/degraded:0\n/sys/block/md5/md/mismatch_cnt:12\n"],
        lambda text: mdadm.parse_state(text).objections(),
        (RigError,),
    ),
    "resync": (["1234 / 5678\n", "none\n"], lambda text: resync.done_percent(answering(text), "md5"), ()),
    "resync speed": (["1000 (system)", "5000 (local)"], resync.limit_bytes_per_s, (RigError,)),
    "component": (["524288\n"], lambda text: resync.component_bytes(answering(text), "md5"), (RigError,)),
    "counters": (
        ["boot 0d3f\nsdb 9 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n"],
        lambda text: write_counters.read(answering(text), [DRIVE], smart=False),
        (RigError,),
    ),
    "sight": ([SIGHT], lambda text: environment.parse(text, "md100", ["nvme0n1"]), (ValueError,)),
    "facts": (["hostname dut7\nkernel Linux 6.1\ncpus 8\n"], lambda text: provenance.facts(answering(text)), ()),
    "features": (["fio-3.33\n"], lambda text: features.probe(answering(text)), (RigError,)),
}


@pytest.mark.parametrize("name", PARSERS)
@fuzzed(20)
@given(st.data())
def test_answers_of_tools(name: str, data: st.DataObject) -> None:
    samples, parse, documented = PARSERS[name]
    damaged = text_like(samples)
    if samples[0].lstrip().startswith("{"):
        damaged |= json_like([json.loads(each) for each in samples])
    text = data.draw(damaged)
    survives(lambda: parse(text), *documented)


# -- fio's output

FIO = [
    captured(version, case) for version in VERSIONS for case in ("randread", "side-by-side", "media-error", "stalled")
]
DOCUMENT = json.loads(captured(VERSIONS[0], "side-by-side").output.decode().split("\n}\n")[0] + "}")


@fuzzed(40)
@given(bytes_like([each.output[:60_000] + each.output[-20_000:] for each in FIO]), st.sampled_from(FIO))
def test_fio_output(data: bytes, asked: Captured) -> None:
    survives(lambda: output.parse(data), InvalidMeasurement)
    survives(lambda: acceptance.accept(data, asked.status, asked.stderr, asked.expectation), RigError)


@fuzzed(60)
@given(plain_like([DOCUMENT]))
def test_fio_documents_of_odd_values(document: object) -> None:
    try:
        text = json.dumps(document, indent=2)
    except ValueError:
        return
    survives(lambda: output.parse(text.encode("utf-8", "surrogatepass")), InvalidMeasurement)


# -- plain data


@fuzzed()
@given(bytes_like([b'{"a": [1, 2, {"b": "\\u0041"}], "c": 1.5}']))
def test_plain_json(data: bytes) -> None:
    survives(lambda: read_json(data), ValueError)


def test_a_line_and_a_document_without_an_end_are_not_kept() -> None:
    """Of what goes on for ever a bounded part is held, and the damage is told."""
    for beginning in (b"fio: ", b'{"jobs": "'):
        reader = output.StatusReader()
        reader.feed(beginning)
        for _ in range(2 + status_stream.LONGEST // (8 << 20)):
            reader.feed(b"x" * (8 << 20))
        assert len(reader._splitter._text) <= status_stream.LONGEST
        with pytest.raises(InvalidMeasurement, match="more than 32"):
            reader.whole()


def test_a_chatty_fio_is_heard_out_but_not_remembered() -> None:
    reader = output.StatusReader()
    for _ in range(5):
        reader.feed(b"fio: something is wrong\n" * 10_000)
    assert len(reader.messages()) == output.MOST_MESSAGES
