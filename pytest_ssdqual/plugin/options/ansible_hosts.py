"""An Ansible inventory as bays: each host with the variables of its groups, as far as they are about drives and ssh.

The rule of the module: a variable that says how to reach a host is honoured or refused, never passed over; a drive of
another machine would be destroyed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from pytest_ssdqual.plugin.options import ansible
from pytest_ssdqual.plugin.options.ansible import MOST_GROUPS, RESOLVED, SSH_CONFIG, Groups, Value
from pytest_ssdqual.plugin.options.device_address import bay_names
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.spec import toml

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.options.inventory import BayTable

#: Ours, and one for each label: ssd_label_rack.
OURS, LABEL = ("ssd_devices", "ssd_ssh_config", "ssd_slots", "ssd_labels", "ssd_expect"), "ssd_label_"
KEYS = "devices", "slots", "labels", "ssh_config", "expect"
#: Of a host that is none of ours.
NO_DEVICES = "none"
ADDRESS, USER = ("ansible_host", "ansible_ssh_host"), ("ansible_user", "ansible_ssh_user")
#: Variables that change nothing for us, with the values for which that is so; none: all.
#: We are root over there, by sudo if we did not log in as root; that sudo asks for a password is told when it does.
HARMLESS: Mapping[str, Sequence[str]] = {
    "ansible_connection": ("ssh", "smart", "local", "ansible.builtin.ssh", "ansible.builtin.local"),
    "ansible_become": (),
    "ansible_become_method": ("sudo", "ansible.builtin.sudo"),
    "ansible_become_user": ("root",),
    "ansible_become_password": (),
    "ansible_become_pass": (),
    "ansible_become_flags": (),
    "ansible_python_interpreter": (),
    "ansible_remote_tmp": (),
    "ansible_shell_type": ("sh",),
    "ansible_pipelining": (),
    "ansible_ssh_pipelining": (),
}
PASSWORDS = "ansible_password", "ansible_ssh_pass", "ansible_ssh_password"
#: Groups that say nothing of a host.
EVERYBODY = ("all", "ungrouped")


def tables(name: str, written: str, kind: str) -> list[tuple[str, BayTable]]:
    """Each host with drives, and its bay; ``DocumentError`` with everything that is wrong."""
    groups = _read(name, written, kind)
    try:
        order = _order(groups)
    except ValueError as error:
        raise toml.DocumentError(name, [*groups.errors, str(error)]) from None
    errors, found, without = list(groups.errors), [], []
    above = _memberships(groups, order)
    for host, called in zip(groups.hosts, bay_names(groups.hosts), strict=True):
        variables: dict[str, Value] = {}
        for group in above[host]:
            variables.update(groups.groups[group].variables)
        variables.update(groups.hosts[host])
        if not variables.get("ssd_devices"):
            without.append(host)
        elif variables["ssd_devices"] != NO_DEVICES:
            try:
                found.append((host, _table(host, called, variables, above[host])))
            except toml.DocumentError as error:
                errors += [f"{host}: {each}" for each in error.errors]
    if without:
        errors.append(
            f"{', '.join(without)}: no variable ssd_devices; say which drives are tested there (ssd_devices=/dev/...), "
            f"or ssd_devices={NO_DEVICES} for a machine that is not to be touched"
        )
    if errors:
        raise toml.DocumentError(name, errors)
    return found


def _read(name: str, written: str, kind: str) -> Groups:
    if written.startswith("#!"):
        raise toml.DocumentError(name, [f"is a program, and none is run for an inventory; {RESOLVED}"])
    for number, line in enumerate(written.split("\n"), 1):
        if not line.replace("\t", " ").isprintable():
            raise toml.DocumentError(name, [f"line {number}: has characters that cannot be printed"])
    try:
        return ansible.read_ini(written) if kind == "ini" else ansible.read_yaml(written)
    except RecursionError:
        raise toml.DocumentError(name, ["is nested too deeply"]) from None
    except ValueError as error:
        raise toml.DocumentError(name, [str(error)]) from None


def _order(groups: Groups) -> list[str]:
    """All groups, whose variables give way first, first: parents before children, then by name, as Ansible has it.

    ``ValueError`` for groups that are in each other, and for children that there are not.
    """
    if len(groups.groups) > MOST_GROUPS:
        raise ValueError(f"has more than {MOST_GROUPS} groups")
    parents: dict[str, set[str]] = {name: set() for name in groups.groups}
    for name, group in groups.groups.items():
        for child in group.children:
            if child not in parents:
                raise ValueError(f"group {name} has the child {child}, and there is no such group")
            parents[child].add(name)
    for name in parents.keys() - {"all"}:
        parents[name].add("all")
    depth: dict[str, int] = {}
    try:
        for name in TopologicalSorter(parents).static_order():
            depth[name] = 1 + max((depth[each] for each in parents[name]), default=-1)
    except CycleError as error:
        raise ValueError(f"groups are in each other: {', '.join(dict.fromkeys(error.args[1]))}") from None
    return sorted(depth, key=lambda name: (depth[name], name))


def _memberships(groups: Groups, order: Sequence[str]) -> Mapping[str, list[str]]:
    """The groups of each host, those above its own included, in the order in which their variables are taken."""
    rank = {name: number for number, name in enumerate(order)}
    above: dict[str, set[str]] = {name: {name, "all"} for name in order}
    for name in order:
        for child in groups.groups[name].children:
            above[child] |= above[name]
    of: dict[str, set[str]] = {host: {"all"} for host in groups.hosts}
    for name, group in groups.groups.items():
        for host in group.hosts:
            of[host] |= above[name]
    return {host: sorted(names, key=rank.__getitem__) for host, names in of.items()}


def _table(host: str, called: str, variables: Mapping[str, Value], groups: Sequence[str]) -> BayTable:
    """``DocumentError`` with what is wrong about this host."""
    from pytest_ssdqual.plugin.options.inventory import LONGEST_LABEL, BayTable

    if errors := list(_wrong(variables)):
        raise toml.DocumentError(host, errors)
    labels = {"group": safe_text.line(", ".join(each for each in groups if each not in EVERYBODY), LONGEST_LABEL)}
    labels |= _mapping(variables.get("ssd_labels"))
    labels |= {name.removeprefix(LABEL): str(value) for name, value in variables.items() if name.startswith(LABEL)}
    devices = variables["ssd_devices"]
    is_here = str(variables.get("ansible_connection", "")).endswith("local") or str(devices).startswith("lab")
    content: dict[str, object] = {
        "name": called,
        "host": None if is_here else _destination(host, variables),
        "devices": devices,
        "slots": _mapping(variables.get("ssd_slots")),
        "labels": {name: value for name, value in labels.items() if value},
        "ssh_config": variables.get("ssd_ssh_config") or None,
        "expect": _number(variables.get("ssd_expect")),
    }
    try:
        return toml.checked(BayTable, host, content, toml.DocumentError)
    except toml.DocumentError as error:
        # In the words of the inventory: devices of a bay are ssd_devices of a host.
        told = [f"ssd_{each}" if each.startswith(KEYS) else each for each in error.errors]
        raise toml.DocumentError(host, told) from None


def _wrong(variables: Mapping[str, Value]) -> Iterable[str]:
    for name, value in variables.items():
        ours, theirs = name.startswith("ssd_"), name.startswith("ansible_")
        if HARMLESS.get(name) == ():
            continue
        if (ours or theirs) and "{{" in str(value):
            yield f"{name}: is a template, and none is filled in here; {RESOLVED}"
        elif ours and name not in OURS and not name.startswith(LABEL):
            known = [
                each.removeprefix("ssd_") for each in (*OURS, LABEL)
            ]  # the common prefix would make all of them similar
            near = get_close_matches(name.removeprefix("ssd_"), known, n=1)
            yield f"{name}: unknown variable" + (f"; did you mean ssd_{near[0]}?" if near else "")
        elif name in ("ssd_slots", "ssd_labels") and not isinstance(value, dict):
            yield f"{name}: is a table, which only YAML has; write it so, or the whole inventory as TOML"
        elif theirs and name not in (*ADDRESS, *USER):
            if name in PASSWORDS:
                yield f"{name}: nobody is asked for a password here; log in with a key"
            elif name not in HARMLESS:
                yield f"{name}: is not honoured here; what it says {SSH_CONFIG}"
            elif value not in HARMLESS[name]:
                yield f"{name}: {value!r} is no way to a machine that there is here; there is ssh, with sudo to be root"


def _destination(host: str, variables: Mapping[str, Value]) -> str:
    address = next((str(variables[name]) for name in ADDRESS if variables.get(name)), host)
    user = next((str(variables[name]) for name in USER if variables.get(name)), "")
    return f"{user}@{address}" if user else address


def _number(value: Value | None) -> object:
    """Convert decimal text to a number: INI has only text."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() else value


def _mapping(value: Value | None) -> dict[str, str]:
    return dict(value) if isinstance(value, dict) else {}
