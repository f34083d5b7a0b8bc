from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_ssdqual.plugin.options import ansible, inventory
from pytest_ssdqual.plugin.options.bay_table import BayTable
from pytest_ssdqual.plugin.options.device_address import Devices
from pytest_ssdqual.plugin.options.inventory import BayRequest, asked, count, kind_of, load, select
from pytest_ssdqual.plugin.options.settings import NEED_DEVICES, Settings, active
from pytest_ssdqual.plugin.options.smart_type import SmartType

OURS = """
[[bay]]
name = "a7-left"
host = "root@dut7"
devices = ["/dev/disk/by-path/pci-0000:3a:00.0-nvme-1", "/dev/nvme[2-4]n1"]
ssh_config = "dut.ssh"
[bay.slots]
"/dev/nvme2n1" = "3"
[bay.labels]
rack = "A7"

[[bay]]
name = "here"
devices = "/dev/sdb,/dev/sdc"

[[bay]]
name = "rehearsal"
devices = "lab:2"

[[bay]]
name = "another"
devices = "lab"
"""


@pytest.fixture
def told(tmp_path: Path) -> Any:  # noqa: ANN401  (a function)
    """What is said of a file of this name with this text."""

    def read(name: str, text: str) -> tuple[BayRequest, ...] | list[str]:
        (tmp_path / "dut.ssh").touch()
        (tmp_path / name).write_text(text)
        try:
            return load(tmp_path / name)
        except pytest.UsageError as error:
            return str(error).removeprefix("--ssd-bays: ").replace(f"{name}: ", "").splitlines()

    return read


def test_an_inventory_of_ours(tmp_path: Path, told: Any) -> None:  # noqa: ANN401
    first, here, rehearsal, another = told("bays.toml", OURS)
    drives = "/dev/disk/by-path/pci-0000:3a:00.0-nvme-1", "/dev/nvme[2-4]n1"
    assert first == BayRequest(
        "a7-left", Devices(host="root@dut7", patterns=drives), {"rack": "A7"}, {"/dev/nvme2n1": "3"},
        str(tmp_path / "dut.ssh"),
    )  # fmt: skip
    assert here == BayRequest("here", Devices(patterns=("/dev/sdb", "/dev/sdc")))
    # Drives of labs are numbered through, so that they have the same serials when one bay is chosen alone.
    assert (rehearsal.devices, another.devices) == (Devices(lab=2, first=1), Devices(lab=8, first=3))


BAY = '[[bay]]\nname = "a"\ndevices = ["/dev/sdb"]\n'


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("", ["bay: is missing"]),
        ("bay = []", ["names no bay"]),
        ("[[bay]]\nname=", ["is not TOML: Invalid value (at end of document)"]),
        ('[[bay]]\nhosts = "a"', ["bay[0].name: is missing", "bay[0].devices: is missing",
                                  "bay[0].hosts: unknown key; did you mean host?"]),
        ("[[bays]]", ["bay: is missing", "bays: unknown key; did you mean bay?"]),
        (BAY + BAY.replace('"a"', '"A"').replace("sdb", "sdc"),
         ["bay[1]: has the name A, as bay[0] has; names are compared without case"]),
        (BAY + BAY.replace('"a"', '"b"'),
         ["bay[1]: /dev/sdb of localhost is already in bay[0]; a drive belongs to one bay"]),
        (BAY.replace('"a"', '"../a"'), ["bay[0].name: '../a' is not a valid bay name: write up to 64 letters, digits, "
                                        "_, . and -, the first a letter or a digit"]),
        (BAY + 'host = "-oProxyCommand=x"', ["bay[0].host: '-oProxyCommand=x' is not a host name"]),
        (BAY + 'host = "root@-x"', ["bay[0].host: 'root@-x' is not a host name"]),
        (BAY + 'host = "a;reboot"', ["bay[0].host: 'a;reboot' is not a host name"]),
        (BAY.replace("/dev/sdb", "sdb"),
         ['bay[0].devices: write a list of patterns that begin with /dev/, or "lab:N"']),
        (BAY.replace('["/dev/sdb"]', '"dut:/dev/sdb"'),
         ["bay[0].devices: 'dut:/dev/sdb' names a host; write it as host"]),
        (BAY.replace('["/dev/sdb"]', '"lab:99"'), ["bay[0].devices: the lab emulates 1 to 24 drives, not 99"]),
        (BAY.replace('["/dev/sdb"]', '"lab"') + 'host = "a"',
         ["bay[0]: a lab is a VM of this computer: leave out host and ssh_config"]),
        (BAY + 'host = "a"\nssh_config = "no"', ["bay[0]: there is no ssh configuration {}/no"]),
        (BAY + 'ssh_config = "dut.ssh"',
         ["bay[0]: ssh_config without a host: drives of this computer need no ssh"]),
        (BAY + "labels = {rack = 7}", ["bay[0].labels.rack: should be a valid string, not 7"]),
        (BAY + 'slots = {sdb = "1"}', ["bay[0].slots.sdb.[key]: 'sdb' does not begin with /dev/"]),
        (BAY + 'labels = {rack = "\\u001b[2J"}', ["bay[0].labels.rack: has characters that cannot be printed"]),
    ],
)  # fmt: skip
def test_what_is_no_inventory_of_ours(tmp_path: Path, told: Any, text: str, errors: list[str]) -> None:  # noqa: ANN401
    assert told("bays.toml", text) == [each.format(tmp_path) for each in errors]


def test_types_for_smartctl_are_those_of_the_option(told: Any) -> None:  # noqa: ANN401
    for text, types in (
        ('"megaraid,4"', (SmartType("megaraid,4"),)),
        ('["/dev/sdb=none", "sat"]', (SmartType("none", "/dev/sdb"), SmartType("sat"))),
    ):
        (bay,) = told("bays.toml", f"{BAY}smart_type = {text}")
        assert bay.smart_types == types
    for text in ("7", '["sat", 7]', '"foo"', '["sdb=sat"]'):
        (error,) = told("bays.toml", f"{BAY}smart_type = {text}")
        assert error.startswith("bay[0].smart_type: ")


def test_an_inventory_has_an_end(tmp_path: Path, told: Any) -> None:  # noqa: ANN401
    bays = "".join(BAY.replace('"a"', f'"a{n}"').replace("sdb", f"sd{n}") for n in range(1001))
    assert told("bays.toml", bays)[0].startswith("bay: list should")


def test_a_pipe_is_no_inventory(tmp_path: Path) -> None:
    with pytest.raises(pytest.UsageError, match=r"^--ssd-bays: .*regular file"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("x.toml", "a:", "toml"),
        ("x.yml", "[[bay]]", "yaml"),
        ("x", "# ours\n[[bay]]\n", "toml"),
        ("x.txt", "\n---\nall:\n", "yaml"),
        ("x", "all:\n  hosts:\n", "yaml"),
        ("x", "[rack1]\na\n", "ini"),
        ("x", "; a word\na:22 b=c\n", "ini"),
        ("x", "", "ini"),
    ],
)
def test_a_file_is_told_by_its_suffix_or_its_beginning(name: str, text: str, kind: str) -> None:
    assert kind_of(name, text) == kind


DOCUMENT = (Path(__file__).parents[3] / "docs/bays.md").read_text()
EXAMPLES = dict(re.findall(r"^```(\w+)\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE))


def test_bays_document_toml_example(tmp_path: Path, told: Any) -> None:  # noqa: ANN401
    (tmp_path / "rack-a.ssh").touch()
    assert names(told("bays.toml", EXAMPLES["toml"])) == ["a7-left", "a7-right", "bench", "rehearsal"]
    for kind in ("toml", "ini", "yaml"):
        assert kind_of("hosts", EXAMPLES[kind]) == kind


def test_the_document_has_every_key_and_variable() -> None:
    rows = {
        each for line in re.findall(r"^\| (`.*?) \|", DOCUMENT, re.MULTILINE) for each in re.findall(r"`(\w+)`", line)
    }
    assert {*BayTable.model_fields, *ansible.SSD_VARIABLES, "ansible_host", "ansible_user"} <= rows


def config(tmp_path: Path, ini: str = "", **options: object) -> pytest.Config:
    (tmp_path / "elsewhere").mkdir(exist_ok=True)
    given = {"ssd_devices": [], "ssd_bays": None, "ssd_bay": []} | options
    return cast(
        "pytest.Config",
        SimpleNamespace(
            getoption=given.__getitem__,
            getini={"ssd_bays": ini}.__getitem__,
            invocation_params=SimpleNamespace(dir=tmp_path / "elsewhere"),
            rootpath=tmp_path,
        ),
    )


def names(bays: tuple[BayRequest, ...]) -> list[str]:
    return [bay.name for bay in bays]


def test_an_option_names_an_inventory_relative_to_the_folder(tmp_path: Path) -> None:
    (tmp_path / "bays.toml").write_text(BAY)
    assert names(asked(config(tmp_path, ssd_bays="../bays.toml"))) == ["a"]
    assert names(asked(config(tmp_path, ssd_bays="../bays.toml", ini="no.toml"))) == ["a"]


def test_a_configured_inventory_gives_only_bays_asked_for(tmp_path: Path) -> None:
    (tmp_path / "bays.toml").write_text(BAY)
    assert asked(config(tmp_path, ini="bays.toml")) == ()
    assert names(asked(config(tmp_path, ini="bays.toml", ssd_bay=["*"]))) == ["a"]
    assert names(asked(config(tmp_path, ini="bays.toml", ssd_devices=["dut:/dev/sdb"], ssd_bay=["d*"]))) == ["dut"]


ALL = tuple(BayRequest(name, Devices(lab=1)) for name in ("rack1-a", "rack1-b", "rack2-a"))


@pytest.mark.parametrize(
    ("given_", "found"),
    [
        (["rack2-a,rack1-a"], ["rack1-a", "rack2-a"]),
        (["rack1-*"], ["rack1-a", "rack1-b"]),
        (["RACK1-a", "rack?-a"], ["rack1-a", "rack2-a"]),
    ],
)
def test_bays_are_selected_in_the_order_of_the_inventory(given_: list[str], found: list[str]) -> None:
    assert names(select(ALL, given_)) == found


@pytest.mark.parametrize("given_", ["rack1-c", "rack1-a,rack1-c", "", "rack1-a,", "rack9-*"])
def test_an_unknown_bay_is_refused_with_the_known_ones(given_: str) -> None:
    with pytest.raises(pytest.UsageError, match="rack1-a, rack1-b, rack2-a"):
        select(ALL, [given_])


def test_of_many_bays_the_nearest_is_named() -> None:
    many = [BayRequest(f"dut{number:03d}", Devices(lab=1)) for number in range(200)]
    with pytest.raises(pytest.UsageError, match=r"dut019 and 180.*dut\d50\?$"):
        select(many, ["dut_50"])


def test_counting_never_fails(tmp_path: Path) -> None:
    assert count(config(tmp_path, ssd_devices=["a:/dev/sdb", "b:/dev/sdb", "a:/dev/sdc"])) == 2
    assert count(config(tmp_path, ssd_devices=["a:/dev/sdb", "b:/dev/sdb"], ssd_bay=["b"])) == 1
    assert count(config(tmp_path)) == 1
    assert count(config(tmp_path, ssd_devices=["nothing"])) == 1
    assert count(config(tmp_path, ssd_bays="not-there")) == 1
    assert count(cast("Any", None)) == 1


@pytest.mark.parametrize(
    ("options", "is_active"),
    [
        ({}, False),
        ({"ssd_devices": ["/dev/sdb"]}, True),
        ({"ssd_bays": "x"}, True),
        ({"ssd_bays": ""}, True),
        ({"ssd_bay": ["x"]}, True),
        ({"ssd_bays": "x", "help": True}, False),
        ({"ssd_bays": "x", "ssd_doctor": True}, False),
    ],
)
def test_a_run_with_bays_is_a_run(options: dict[str, object], is_active: bool) -> None:
    idle = dict.fromkeys(("help", "version", "markers", "showfixtures", "ssd_doctor"), False)
    nothing = dict.fromkeys((*NEED_DEVICES, "ssd_devices"))
    config = SimpleNamespace(option=SimpleNamespace(**{**idle, **nothing, **options}))
    assert active(cast("pytest.Config", config)) is is_active


def test_settings_of_one_bay_are_those_of_a_run_of_it_alone() -> None:
    first, second = BayRequest("a", Devices(host="a")), BayRequest("b", Devices(host="b"), ssh_config="/its/own")
    settings = Settings(
        devices=first.devices, bays=(first, second), specs=(), protocol="quick", consents=frozenset(),
        unchecked=frozenset(), arrays=(), run_root=Path("x"), resume=None, ssh_config="/ours", reconnect_s=0, wait_s=0,
        inconclusive="error", junit_properties=True, page=True, members=True, explore_database=Path("x"),
        explore_seed="", replay=None, baseline=None, trace=None, openmetrics=None, shared_path="auto", expect=None,
        expect_default=None, read_only=False, force_spec=False, mixed=False, required_claims=None, budget_s=None,
        measure_unpromised=False, smart_types=(), power=None,
    )  # fmt: skip
    assert (settings.of(first).devices, settings.of(first).ssh_config) == (first.devices, "/ours")
    assert (settings.of(second).bays, settings.of(second).ssh_config) == ((second,), "/its/own")
    assert [settings.on_shared_path(acceptance=each) for each in (True, False)] == ["error", "warn"]
    assert inventory.MOST_BAYS == 1000
