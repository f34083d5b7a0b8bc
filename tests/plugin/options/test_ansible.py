from __future__ import annotations

import json
import os
import re
import shutil
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from support.fakes import fake_ansible

from pytest_ssdqual.plugin.options import ansible
from pytest_ssdqual.plugin.options.device_address import Devices
from pytest_ssdqual.plugin.options.inventory import BayRequest, load

#: Inventories, and what ansible-inventory of ansible-core 2.19.14 printed for them (without its own profile).
RECORDED = Path(__file__).parent / "ansible"
DOCUMENT = (Path(__file__).parents[3] / "docs/bays.md").read_text()
EXAMPLES = dict(re.findall(r"^```(\w+)\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE))
WHERE = os.pathsep.join((os.environ.get("PATH", os.defpath), sysconfig.get_path("scripts")))
with_ansible = pytest.mark.skipif(not shutil.which(ansible.PROGRAM, path=WHERE), reason="Ansible is not installed")

Printing = Callable[..., list[str] | tuple[BayRequest, ...]]


def read(path: Path) -> list[str] | tuple[BayRequest, ...]:
    """The bays, or the errors."""
    try:
        return load(path)
    except pytest.UsageError as error:
        return str(error).removeprefix("--ssd-bays: ").replace(f"{path.name}: ", "").splitlines()


@pytest.fixture
def printing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Printing:
    """Return the bays or errors of an inventory for which a fake ansible-inventory prints this."""

    def reads(printed: str, errors: str = "", status: int = 0, name: str = "hosts", text: str = "x") -> object:
        ansible.listing.cache_clear()
        fake_ansible.install(monkeypatch, tmp_path / "bin", printed, errors, status)
        (tmp_path / name).write_text(text)
        return read(tmp_path / name)

    return reads  # type: ignore[return-value]


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.json").read_text()


def test_ini_hosts_become_bays(printing: Printing) -> None:
    bays = {bay.name: bay for bay in printing(recorded("room.ini")) if isinstance(bay, BayRequest)}
    assert list(bays) == ["dut08", "dut09", "dut10", "dut11", "lonely"]
    assert bays["lonely"] == BayRequest("lonely", Devices(patterns=("/dev/sdb", "/dev/sdc")))
    labels = {"group": "room, rack1", "room": "burn in"}
    nvme = Devices(host="root@dut09", patterns=("/dev/nvme[1-8]n1",))
    assert bays["dut09"] == BayRequest("dut09", nvme, {**labels, "shelf": "top"})
    address = Devices(host="admin@192.0.2.11", patterns=("/dev/sda",))
    assert bays["dut11"] == BayRequest("dut11", address, labels, {"/dev/sda": "4"}, expect=1)


def test_yaml_hosts_become_bays(printing: Printing) -> None:
    first, second, last = printing(recorded("rack.yml"), name="hosts.yml")
    assert first == BayRequest("dut1", Devices(host="root@dut1", patterns=("/dev/nvme[1-8]n1",)), {"group": "rack1"})
    assert isinstance(second, BayRequest)
    assert second.devices.host == "root@dut2"
    drives = Devices(host="root@fe80::7%eth0", patterns=("/dev/sdb", "/dev/sdc"))
    assert last == BayRequest("dut07", drives, {"group": "rack1", "rack": "1"}, {"/dev/sdb": "007"})


@pytest.mark.parametrize(("name", "plugin"), [("hosts", "ini"), ("hosts.yml", "yaml")])
def test_program_gets_file_and_one_inventory_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, plugin: str
) -> None:
    ansible.listing.cache_clear()
    printed = fake_ansible.listing({"a": {"ssd_devices": "lab"}})
    arguments = fake_ansible.install(monkeypatch, tmp_path / "bin", printed)
    (tmp_path / name).write_text("x")
    load(tmp_path / name)
    assert arguments.read_text().splitlines() == ["-i", str(tmp_path / name), "--list", plugin]
    arguments.unlink()
    load(tmp_path / name)
    assert not arguments.exists()  # one text is listed once
    (tmp_path / name).write_text("y")
    load(tmp_path / name)
    assert arguments.exists()


SSH = "into an OpenSSH configuration file that ssd_ssh_config (or --ssd-ssh-config) names"
NO_WAY = "is not supported; ssdqual uses ssh, and sudo to become root"
UNRESOLVED = "is a template or encrypted, and is not resolved here; write the value itself"


@pytest.mark.parametrize(
    ("variables", "errors"),
    [
        ({"ssd_devices": "none"}, ["names no bay"]),
        ({}, ["a: no variable ssd_devices; name the drives to test there (ssd_devices=/dev/...), or "
              "ssd_devices=none for a machine that must not be touched"]),
        ({"ansible_port": 22, "ansible_ssh_extra_args": "-v"}, [
            f"a: ansible_port: is not supported; put the setting {SSH}",
            f"a: ansible_ssh_extra_args: is not supported; put the setting {SSH}"]),
        ({"ansible_ssh_private_key_file": "~/.ssh/dut"}, [
            f"a: ansible_ssh_private_key_file: is not supported; put the setting {SSH}"]),
        ({"ansible_ssh_pass": "x"}, ["a: ansible_ssh_pass: ssdqual uses no passwords; log in with a key"]),
        ({"ansible_become_user": "postgres"}, [f"a: ansible_become_user: 'postgres' {NO_WAY}"]),
        ({"ansible_connection": "docker"}, [f"a: ansible_connection: 'docker' {NO_WAY}"]),
        ({"ssd_label": "x", "ssd_wipe": "y"}, [
            "a: ssd_label: unknown variable; did you mean ssd_labels?", "a: ssd_wipe: unknown variable"]),
        ({"ssd_devices": "{{drives}}"}, [f"a: ssd_devices: {UNRESOLVED}"]),
        ({"ansible_host": {"__ansible_vault": "$ANSIBLE_VAULT;1.1\n61"}}, [f"a: ansible_host: {UNRESOLVED}"]),
        ({"ssd_devices": "sdb"}, ["a: ssd_devices: write [[USER@]HOST:]PATTERN[,PATTERN...] with patterns that begin "
                                  "with /dev/, or lab[:N][@RELEASE]"]),
        ({"ssd_devices": {"x": "/dev/sdb"}}, [
            'a: ssd_devices: write a list of patterns that begin with /dev/, or "lab:N"']),
        ({"ssd_devices": "/dev/\u202esdb"}, ["a: ssd_devices: has characters that cannot be printed"]),
        ({"ansible_host": "-oProxyCommand=x"}, ["a: host: '-oProxyCommand=x' is not a host name"]),
        ({"ansible_user": "-l"}, ["a: host: '-l@a' is not a host name"]),
        ({"ssd_slots": "x"}, ["a: ssd_slots: is not a table; write it in YAML, or the whole inventory as TOML"]),
    ],
)  # fmt: skip
def test_wrong_variables_are_refused(printing: Printing, variables: Mapping[str, object], errors: list[str]) -> None:
    given = {"ssd_devices": "/dev/sdb", **variables} if variables else {}
    assert printing(fake_ansible.listing({"a": given})) == errors


def test_one_drive_of_two_hosts_is_refused(printing: Printing) -> None:
    drive = {"ssd_devices": "/dev/sdb"}
    errors = printing(fake_ansible.listing({"a": drive, "b": {**drive, "ansible_host": "A"}}))
    (error,) = errors
    assert str(error).startswith("b: /dev/sdb of")


def test_too_many_hosts_are_refused(printing: Printing) -> None:
    hosts = {f"a{number}": {"ssd_devices": "/dev/sdb"} for number in range(1001)}
    (error,) = printing(fake_ansible.listing(hosts))
    assert "1001 bays" in str(error)
    del hosts["a0"]
    assert len(printing(fake_ansible.listing(hosts))) == 1000


OLDER = """[WARNING]:  * Failed to parse /tmp/hosts with ini plugin: /tmp/hosts:1: Expected
key=value host variable assignment, got: b
[WARNING]: Unable to parse /tmp/hosts as an inventory source
ERROR! Completely failed to parse inventory source /tmp/hosts
"""
NEWER = """[WARNING]: Failed to parse inventory with 'ini' plugin: Failed to parse inventory: Expected key=value, got: b

Failed to parse inventory with 'ini' plugin.

[ERROR]: Completely failed to parse inventory source /tmp/hosts
"""
SKIPPED = '[WARNING]: Skipping unexpected key (host) in group (all), only "vars", "children" and "hosts" are valid\n'
SAYS = "ansible-inventory cannot read it: "


@pytest.mark.parametrize(
    ("errors", "status", "sentence"),
    [
        (OLDER, 1, f"{SAYS}/tmp/hosts:1: Expected key=value host variable assignment, got: b"),
        (NEWER, 1, f"{SAYS}Expected key=value, got: b"),
        (SKIPPED, 0, f'{SAYS}Skipping unexpected key (host) in group (all), only "vars", "children" and "hosts" are '
                     "valid"),
        ("ERROR! no vault secrets found\n", 4, f"{SAYS}no vault secrets found"),
        ("Killed\n", 137, f"{SAYS}exit status 137"),
        ("", 0, "ansible-inventory printed no inventory"),
    ],
)  # fmt: skip
def test_error_of_the_program_is_one_sentence(printing: Printing, errors: str, status: int, sentence: str) -> None:
    assert printing("{}", errors, status) == [sentence]


def test_output_that_is_not_json_is_an_error(printing: Printing) -> None:
    (error,) = printing("usage:")
    assert "no JSON: " in str(error)


def test_program_that_does_not_end_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printing: Printing
) -> None:
    monkeypatch.setattr(ansible, "DEADLINE_S", 0)
    (error,) = printing("{}")
    assert "within 0 s" in str(error)


def test_missing_program_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    (tmp_path / "hosts").write_text("missing ssd_devices=lab")
    (error,) = read(tmp_path / "hosts")
    assert "pip install ansible-core" in str(error)


def test_inventory_program_is_refused(printing: Printing) -> None:
    (error,) = printing("{}", text="#!/usr/bin/python")
    assert str(error).startswith("is a program")


@with_ansible
@pytest.mark.parametrize("name", ["room.ini", "rack.yml"])
def test_recorded_listing_is_that_of_ansible(name: str) -> None:
    listed = ansible.listing(RECORDED / name, (RECORDED / name).read_text(), "yaml" if name == "rack.yml" else "ini")
    found = {**listed, "_meta": {"hostvars": listed["_meta"]["hostvars"]}}
    assert found == json.loads(recorded(name))


@with_ansible
def test_examples_of_the_document_with_ansible(tmp_path: Path) -> None:
    found: dict[str, tuple[BayRequest, ...]] = {}
    for kind in ("ini", "yaml"):
        (tmp_path / f"bays.{kind}").write_text(EXAMPLES[kind])
        found[kind] = load(tmp_path / f"bays.{kind}")
        assert [bay.name for bay in found[kind]] == [f"dut{number:02d}" for number in range(1, 22)]
    assert [bay.devices for bay in found["ini"]] == [bay.devices for bay in found["yaml"]]
    first, last = found["ini"][0], found["ini"][-1]
    assert first.devices == Devices(host="root@dut01", patterns=("/dev/nvme[1-8]n1",))
    assert last.devices == Devices(host="root@192.0.2.21", patterns=("/dev/sdb", "/dev/sdc"))
    assert dict(first.labels) == {"group": "burnin, rack1", "rack": "A7"}


@with_ansible
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hosts", "a b ssd_devices=/dev/sdb"),
        ("hosts", "[x:var]\na"),
        ("hosts", "[y:vars]\nssd_devices=/dev/sdb"),
        ("hosts", "[y:children]\nz\n[z:children]\ny"),
        ("hosts.yml", "a: ["),
        ("hosts.yml", "all:\n  hosts: [a, b]"),
        ("hosts.yml", "all:\n  hosts:\n    a:\n    a:"),
        ("hosts.yml", "all:\n  host: {}\n  hosts: {a: {ssd_devices: /dev/sdb}}"),
    ],
)
def test_broken_inventory_with_ansible(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (error,) = read(tmp_path / name)
    assert str(error).startswith(SAYS)
    assert "plugin" not in str(error)


@with_ansible
def test_port_of_a_host_is_refused_with_ansible(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("a:2222 ssd_devices=/dev/sdb")
    (error,) = read(tmp_path / "hosts")
    assert str(error).startswith("a: ansible_port: ")


@with_ansible
def test_group_vars_are_read_and_templates_are_not_run(tmp_path: Path) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars/all.yml").write_text("ssd_devices: /dev/sdb\nansible_user: root\n")
    (tmp_path / "hosts").write_text(f"a\nb ssd_devices=\"{{{{ lookup('pipe', 'touch {tmp_path}/ran') }}}}\"\n")
    assert read(tmp_path / "hosts") == [f"b: ssd_devices: {UNRESOLVED}"]
    assert not (tmp_path / "ran").exists()
