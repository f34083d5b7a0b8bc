from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.plugin.options import ansible, ansible_hosts, inventory
from pytest_ssdqual.plugin.options.ansible import expanded
from pytest_ssdqual.plugin.options.device_address import Devices
from pytest_ssdqual.plugin.options.inventory import BayAsked, BayTable, asked, count, kind_of, load, select
from pytest_ssdqual.plugin.options.settings import NEED_DEVICES, Settings, active

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
INI = """
# Machines of the burn-in room.
lonely ssd_devices='/dev/sdb,/dev/sdc' ansible_connection=local
gateway ssd_devices=none ansible_port=2222

[rack1]
dut[08:10] ssd_label_shelf=top   # three of them
dut11 ansible_host=192.0.2.11 ansible_user=admin ssd_devices=/dev/sda

[rack1:vars]
ssd_devices = /dev/nvme[1-8]n1   # all but the system's
ansible_user=root

[room:children]
rack1

[room:vars]
ssd_devices=/dev/nothing
ntp_server=ntp.example
ssd_label_room="burn in"

[all:vars]
ansible_user=nobody
ansible_become=yes
ansible_become_method=sudo
ansible_become_password={{vault}}
"""
YAML = """
all:
  vars:
    ansible_user: root
  children:
    rack1:
      hosts:
        dut[1:2]:
          ssd_devices: /dev/nvme[1-8]n1
        dut07:
          ansible_host: fe80::7%eth0
          ssd_devices: [/dev/sdb, /dev/sdc]
          ssd_slots: {/dev/sdb: 007}
          ssd_labels:
            rack: 1
            lot:
"""


@pytest.fixture
def told(tmp_path: Path) -> Any:  # noqa: ANN401  (a function)
    """What is said of a file of this name with this text."""

    def read(name: str, text: str) -> tuple[BayAsked, ...] | list[str]:
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
    assert first == BayAsked(
        "a7-left", Devices(host="root@dut7", patterns=drives), {"rack": "A7"}, {"/dev/nvme2n1": "3"},
        str(tmp_path / "dut.ssh"),
    )  # fmt: skip
    assert here == BayAsked("here", Devices(patterns=("/dev/sdb", "/dev/sdc")))
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
         ["bay[1]: is called A as bay[0] is; case makes no difference"]),
        (BAY + BAY.replace('"a"', '"b"'),
         ["bay[1]: /dev/sdb of localhost is in bay[0] already, and a drive is in one bay"]),
        (BAY.replace('"a"', '"../a"'), ["bay[0].name: '../a' is no name of a bay: write up to 64 letters, digits, _, . "
                                        "and -, the first a letter or a digit"]),
        (BAY + 'host = "-oProxyCommand=x"', ["bay[0].host: '-oProxyCommand=x' is not a host name"]),
        (BAY + 'host = "root@-x"', ["bay[0].host: 'root@-x' is not a host name"]),
        (BAY + 'host = "a;reboot"', ["bay[0].host: 'a;reboot' is not a host name"]),
        (BAY.replace("/dev/sdb", "sdb"),
         ['bay[0].devices: write a list of patterns that begin with /dev/, or "lab:N"']),
        (BAY.replace('["/dev/sdb"]', '"dut:/dev/sdb"'),
         ["bay[0].devices: 'dut:/dev/sdb' names a host, which is given by itself"]),
        (BAY.replace('["/dev/sdb"]', '"lab:99"'), ["bay[0].devices: the lab emulates 1 to 24 drives, not 99"]),
        (BAY.replace('["/dev/sdb"]', '"lab"') + 'host = "a"',
         ["bay[0]: a lab is a VM of this computer: leave out host and ssh_config"]),
        (BAY + 'host = "a"\nssh_config = "no"', ["bay[0]: there is no ssh configuration {}/no"]),
        (BAY + 'ssh_config = "dut.ssh"',
         ["bay[0]: ssh_config without a host: drives of this computer are reached without ssh"]),
        (BAY + "labels = {rack = 7}", ["bay[0].labels.rack: should be a valid string, not 7"]),
        (BAY + 'slots = {sdb = "1"}', ["bay[0].slots.sdb.[key]: 'sdb' does not begin with /dev/"]),
        (BAY + 'labels = {rack = "\\u001b[2J"}', ["bay[0].labels.rack: has characters that cannot be printed"]),
    ],
)  # fmt: skip
def test_what_is_no_inventory_of_ours(tmp_path: Path, told: Any, text: str, errors: list[str]) -> None:  # noqa: ANN401
    assert told("bays.toml", text) == [each.format(tmp_path) for each in errors]


def test_an_inventory_has_an_end(tmp_path: Path, told: Any) -> None:  # noqa: ANN401
    bays = "".join(BAY.replace('"a"', f'"a{n}"').replace("sdb", f"sd{n}") for n in range(1001))
    assert told("bays.toml", bays)[0].startswith("bay: list should have at most 1000 items")
    (said,) = told("hosts", "a[1:1001] ssd_devices=/dev/sdb")
    assert said == "names 1001 bays, and a run has at most 1000; write several inventories"
    assert "at most" not in str(told("hosts", "a[1:1000] ssd_devices=/dev/sdb"))
    (said,) = told("hosts", "a[1:100000] ssd_devices=/dev/sdb")
    assert said == "line 1: [1:100000] is a range of no hosts, or of more than 10000"
    (said,) = told("hosts", "a" + 4 * "[0:1000]")
    assert "is more than 10000 hosts" in said


def test_a_pipe_is_no_inventory(tmp_path: Path) -> None:
    with pytest.raises(pytest.UsageError, match=r"^--ssd-bays: .*: is not a file, and an inventory is read more than"):
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


def test_an_inventory_of_ansible_s(told: Any) -> None:  # noqa: ANN401
    bays = {bay.name: bay for bay in told("hosts", INI)}
    assert list(bays) == ["lonely", "dut08", "dut09", "dut10", "dut11"]
    assert bays["lonely"] == BayAsked("lonely", Devices(patterns=("/dev/sdb", "/dev/sdc")))
    labels = {"group": "room, rack1", "room": "burn in"}
    nvme = Devices(host="root@dut09", patterns=("/dev/nvme[1-8]n1",))
    assert bays["dut09"] == BayAsked("dut09", nvme, {**labels, "shelf": "top"})
    assert bays["dut11"] == BayAsked("dut11", Devices(host="admin@192.0.2.11", patterns=("/dev/sda",)), labels)


def test_an_inventory_of_ansible_s_as_yaml(told: Any) -> None:  # noqa: ANN401
    last, first, second = sorted(told("hosts.yml", YAML), key=lambda bay: str(bay.name))
    assert first == BayAsked("dut1", Devices(host="root@dut1", patterns=("/dev/nvme[1-8]n1",)), {"group": "rack1"})
    assert second.devices.host == "root@dut2"
    drives = Devices(host="root@fe80::7%eth0", patterns=("/dev/sdb", "/dev/sdc"))
    assert last == BayAsked("dut07", drives, {"group": "rack1", "rack": "1"}, {"/dev/sdb": "007"})


SSH = "goes into an OpenSSH configuration file that ssd_ssh_config (or --ssd-ssh-config) names"
RESOLVED = "write it anew with: ansible-inventory --list --yaml"


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("", ["names no bay"]),
        ("a ssd_devices=none", ["names no bay"]),
        ("a\nb\nc ssd_devices=/dev/sdb", [
            "a, b: no variable ssd_devices; say which drives are tested there (ssd_devices=/dev/...), or "
            "ssd_devices=none for a machine that is not to be touched"]),
        ("a:2222 ssd_devices=/dev/sdb", [f"line 1: a has the port 2222, which {SSH}"]),
        ("a ssd_devices=/dev/sdb ansible_port=22 ansible_ssh_extra_args=-v", [
            f"a: ansible_port: is not honoured here; what it says {SSH}",
            f"a: ansible_ssh_extra_args: is not honoured here; what it says {SSH}"]),
        ("a ssd_devices=/dev/sdb ansible_ssh_pass=x",
         ["a: ansible_ssh_pass: nobody is asked for a password here; log in with a key"]),
        ("a ssd_devices=/dev/sdb ansible_become_user=postgres",
         ["a: ansible_become_user: 'postgres' is no way to a machine that there is here; there is ssh, with sudo to be "
          "root"]),
        ("a ssd_devices=/dev/sdb ansible_connection=docker", [
            "a: ansible_connection: 'docker' is no way to a machine that there is here; there is ssh, with sudo to be "
            "root"]),
        ("a ssd_devices=/dev/sdb ssd_label=x ssd_wipe=y", [
            "a: ssd_label: unknown variable; did you mean ssd_labels?", "a: ssd_wipe: unknown variable"]),
        ("a ssd_devices={{drives}}", [f"a: ssd_devices: is a template, and none is filled in here; {RESOLVED}"]),
        ("a ssd_devices=sdb", ["a: ssd_devices: write [[USER@]HOST:]PATTERN[,PATTERN...] with patterns that begin with "
                               "/dev/, or lab[:N]"]),
        ("a ssd_devices=/dev/sdb ansible_host=-oProxyCommand=x", ["a: host: '-oProxyCommand=x' is not a host name"]),
        ("a ssd_devices=/dev/sdb ansible_user=-l", ["a: host: '-l@a' is not a host name"]),
        ("a ssd_devices=/dev/sdb ssd_slots=x",
         ["a: ssd_slots: is a table, which only YAML has; write it so, or the whole inventory as TOML"]),
        ("a b ssd_devices=/dev/sdb", ["line 1: 'b' is no variable; write name=value, one host on each line"]),
        ("a ssd_devices='/dev/sdb", ["line 1: No closing quotation"]),
        ("[x:var]\na", ["line 1: a section of var is nothing that an inventory has; there are vars and children"]),
        ("[y:vars]\nssd_devices=/dev/sdb", ["line 1: there is no group y, so its variables are nobody's"]),
        ("[y:children]\nz", ["group y has the child z, and there is no such group"]),
        ("[y:children]\nz\n[z:children]\ny", ["groups are in each other: y, z"]),
        ("[a:vars]\nx", ["line 1: there is no group a, so its variables are nobody's",
                         "line 2: 'x' is no variable; write name=value"]),
        ("a[3:1] ssd_devices=/dev/sdb", ["line 1: [3:1] is a range of no hosts, or of more than 10000"]),
        ("a ssd_devices=/dev/sdb\nb ansible_host=A ssd_devices=/dev/sdb",
         ["b: /dev/sdb of A is in a already, and a drive is in one bay"]),
        ("a ssd_devices=/dev/\u202esdb", ["line 1: has characters that cannot be printed"]),
        ("#!/usr/bin/python", [f"is a program, and none is run for an inventory; {RESOLVED}"]),
    ],
)  # fmt: skip
def test_what_is_no_inventory_of_ansible_s(told: Any, text: str, errors: list[str]) -> None:  # noqa: ANN401
    assert sorted(told("hosts", text)) == sorted(errors)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: [", "is not YAML: "),
        ("- a", "it: is no table"),
        ("all:\n  hosts: [a, b]", "all.hosts: is no table"),
        ("all:\n  host: {}", "all: 'host' is nothing that a group has"),
        ("all:\n  hosts:\n    a: &x {ssd_devices: lab}\n    b: *x", "line 3 is used a second time by an alias"),
        ("all:\n  hosts:\n    a:\n    a:", "line 4: a is there twice"),
        ("all:\n  hosts:\n    a: {ssd_devices: {x: {y: z}}}", "all: all.hosts.a.ssd_devices: is nested more deeply"),
        ("[" * 5000, "is nested too deeply"),
        ("all: {hosts: {'a:22': {ssd_devices: /dev/sdb}}}", f"all: a has the port 22, which {SSH}"),
    ],
)
def test_what_is_no_inventory_of_ansible_s_as_yaml(told: Any, text: str, error: str) -> None:  # noqa: ANN401
    assert told("hosts.yml", text)[0].startswith(error)


def test_without_pyyaml_it_is_said_what_to_do(told: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
    monkeypatch.setitem(sys.modules, "yaml", None)
    (said,) = told("hosts.yml", YAML)
    assert said == "is YAML, which needs PyYAML: pip install pyyaml, or write the inventory as TOML"


@pytest.mark.parametrize(
    ("pattern", "hosts"),
    [
        ("dut", ["dut"]),
        ("dut[08:10].lab", ["dut08.lab", "dut09.lab", "dut10.lab"]),
        ("dut[1:5:2]", ["dut1", "dut3", "dut5"]),
        ("r[1:2]-[a:b]", ["r1-a", "r1-b", "r2-a", "r2-b"]),
        ("[fe80::1]", ["[fe80::1]"]),
    ],
)
def test_ranges_of_hosts(pattern: str, hosts: list[str]) -> None:
    assert expanded(pattern) == hosts


@given(st.text(alphabet="ab[]:=#;'\"{}- \n\\,/", max_size=60) | st.text(max_size=40))
def test_any_text_is_groups_or_sentences(text: str) -> None:
    ansible.read_ini(text)
    try:
        ansible.read_yaml(text)
    except ValueError as error:
        assert str(error)  # noqa: PT017


DOCUMENT = (Path(__file__).parents[3] / "docs/bays.md").read_text()
EXAMPLES = dict(re.findall(r"^```(\w+)\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE))


def test_the_examples_of_the_document_are_inventories(tmp_path: Path, told: Any) -> None:  # noqa: ANN401
    (tmp_path / "rack-a.ssh").touch()
    ours, ini, resolved = (told(f"bays.{kind}", EXAMPLES[kind]) for kind in ("toml", "ini", "yaml"))
    assert names(ours) == ["a7-left", "a7-right", "bench", "rehearsal"]
    racked = [f"dut{number:02d}" for number in range(1, 22)]
    assert names(ini) == names(resolved) == racked
    assert [bay.devices for bay in ini] == [bay.devices for bay in resolved]
    assert ini[0].devices == Devices(host="root@dut01", patterns=("/dev/nvme[1-8]n1",))
    assert ini[-1].devices == Devices(host="root@192.0.2.21", patterns=("/dev/sdb", "/dev/sdc"))
    assert dict(ini[0].labels) == {"group": "burnin, rack1", "rack": "A7"}
    for kind in ("toml", "ini", "yaml"):
        assert kind_of("hosts", EXAMPLES[kind]) == kind


def test_the_document_has_every_key_and_variable() -> None:
    rows = {
        each for line in re.findall(r"^\| (`.*?) \|", DOCUMENT, re.MULTILINE) for each in re.findall(r"`(\w+)`", line)
    }
    assert {*BayTable.model_fields, *ansible_hosts.OURS, "ansible_host", "ansible_user"} <= rows


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


def names(bays: tuple[BayAsked, ...]) -> list[str]:
    return [bay.name for bay in bays]


def test_an_option_names_the_inventory_from_where_pytest_is_called(tmp_path: Path) -> None:
    (tmp_path / "bays.toml").write_text(BAY)
    assert names(asked(config(tmp_path, ssd_bays="../bays.toml"))) == ["a"]
    assert names(asked(config(tmp_path, ssd_bays="../bays.toml", ini="no.toml"))) == ["a"]


def test_of_the_inventory_of_a_configuration_file_bays_are_taken_only_when_they_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "bays.toml").write_text(BAY)
    assert asked(config(tmp_path, ini="bays.toml")) == ()
    assert names(asked(config(tmp_path, ini="bays.toml", ssd_bay=["*"]))) == ["a"]
    assert names(asked(config(tmp_path, ini="bays.toml", ssd_devices=["dut:/dev/sdb"], ssd_bay=["d*"]))) == ["dut"]


ALL = tuple(BayAsked(name, Devices(lab=1)) for name in ("rack1-a", "rack1-b", "rack2-a"))


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
def test_a_bay_that_there_is_not_is_told_with_those_that_there_are(given_: str) -> None:
    with pytest.raises(pytest.UsageError, match="there is no such bay; there are rack1-a, rack1-b, rack2-a"):
        select(ALL, [given_])


def test_of_many_bays_the_nearest_is_named() -> None:
    many = [BayAsked(f"dut{number:03d}", Devices(lab=1)) for number in range(200)]
    with pytest.raises(pytest.UsageError, match=r"dut000, .*, dut019 and 180 more; did you mean dut\d50\?$"):
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
    ],
)
def test_a_run_with_bays_is_a_run(options: dict[str, object], is_active: bool) -> None:
    idle = dict.fromkeys(("help", "version", "markers", "showfixtures"), False)
    nothing = dict.fromkeys((*NEED_DEVICES, "ssd_devices"))
    config = SimpleNamespace(option=SimpleNamespace(**{**idle, **nothing, **options}))
    assert active(cast("pytest.Config", config)) is is_active


def test_settings_of_one_bay_are_those_of_a_run_of_it_alone() -> None:
    first, second = BayAsked("a", Devices(host="a")), BayAsked("b", Devices(host="b"), ssh_config="/its/own")
    settings = Settings(
        devices=first.devices, bays=(first, second), spec=None, protocol="quick", wipe=frozenset(), arrays=(),
        run_root=Path("x"), resume=None, ssh_config="/ours", reconnect_s=0, wait_s=0, inconclusive="error",
        junit_properties=True, page=True, explore_database=Path("x"), explore_seed="", replay=None,
    )  # fmt: skip
    assert (settings.of(first).devices, settings.of(first).ssh_config) == (first.devices, "/ours")
    assert (settings.of(second).bays, settings.of(second).ssh_config) == ((second,), "/its/own")
    assert [settings.on_shared_path(acceptance=each) for each in (True, False)] == ["error", "warn"]
    assert inventory.MOST_BAYS == 1000
