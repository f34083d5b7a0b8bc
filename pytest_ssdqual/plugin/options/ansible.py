"""Converts an Ansible inventory to bays: the hosts, with their variables about drives and ssh.

Ansible itself reads the inventory: ``ansible-inventory --list`` resolves groups, host patterns, precedence, and the
folders ``group_vars`` and ``host_vars``. It runs no inventory program and fills in no template here.

Every variable about how to reach a host is either applied or refused, never ignored: with the wrong machine, the wrong
drives would be destroyed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from pytest_ssdqual.plugin.options.bay_table import LONGEST_LABEL, BayTable
from pytest_ssdqual.plugin.options.device_address import bay_names
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.spec import toml

PROGRAM, PACKAGE = "ansible-inventory", "ansible-core"
#: A thousand hosts take two seconds; a range of a hundred million hosts would never end.
DEADLINE_S = 60
#: A file that Ansible reads only in part is an error, and its messages are the same for every user.
STRICT = {
    "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "True",
    "ANSIBLE_DUPLICATE_YAML_DICT_KEY": "error",
    "ANSIBLE_FORCE_COLOR": "False",
    "ANSIBLE_NOCOLOR": "True",
    "LC_ALL": "C.UTF-8",
}
#: One message of ansible-inventory: its first paragraph.
MESSAGE = re.compile(
    r"^(?:\[(?:WARNING|ERROR)\]|ERROR!):? *(.+?)(?=\n\s*\n|\n\[|\nERROR!|\Z)", re.DOTALL | re.MULTILINE
)
#: Prefix of a reason: which of Ansible's plugins failed.
PREFIX = re.compile(r"^.* plugin: (?:Failed to parse inventory: )?|^Failed to parse inventory: ")
#: Ansible only warns of a key that no group has, such as host for hosts; its hosts would be missing.
SKIPPED = "Skipping "

SSD_VARIABLES, LABEL = (
    ("ssd_devices", "ssd_ssh_config", "ssd_slots", "ssd_labels", "ssd_expect", "ssd_smart_type"),
    "ssd_label_",
)
KEYS = "devices", "slots", "labels", "ssh_config", "expect", "smart_type"
#: The value of ssd_devices for a host that must not be touched.
NO_DEVICES = "none"
ADDRESS, USER = ("ansible_host", "ansible_ssh_host"), ("ansible_user", "ansible_ssh_user")
#: Variables without an effect here, with the values for which that holds; an empty tuple: all values.
#: The account is root or becomes root by sudo; the run reports a sudo that asks for a password.
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
#: Groups that every inventory has.
COMMON_GROUPS = ("all", "ungrouped")

Variables = Mapping[str, Any]


def tables(path: Path, written: str, kind: str) -> list[tuple[str, BayTable]]:
    """Return each host with drives, and its bay; raise ``DocumentError`` with all errors.

    ``kind`` is ``ini`` or ``yaml``, ``written`` the file's text.
    """
    if written.startswith("#!"):
        reason = f"is a program, which ssdqual does not run; store its output: {PROGRAM} -i FILE --list --yaml"
        raise toml.DocumentError(path.name, [reason])
    try:
        listed = listing(path.absolute(), written, kind)
        memberships = _memberships(listed)
    except ValueError as error:
        raise toml.DocumentError(path.name, [str(error)]) from None
    errors, bays, without = [], [], []
    for host, name in zip(memberships, bay_names(memberships), strict=True):
        variables: Variables = listed["_meta"]["hostvars"].get(host, {})
        if not variables.get("ssd_devices"):
            without.append(host)
        elif variables["ssd_devices"] != NO_DEVICES:
            try:
                bays.append((host, _table(host, name, variables, memberships[host])))
            except toml.DocumentError as error:
                errors += [f"{host}: {each}" for each in error.errors]
    if without:
        errors.append(
            f"{', '.join(without)}: no variable ssd_devices; name the drives to test there (ssd_devices=/dev/...), "
            f"or ssd_devices={NO_DEVICES} for a machine that must not be touched"
        )
    if errors:
        raise toml.DocumentError(path.name, errors)
    return bays


@lru_cache(maxsize=4)
def listing(path: Path, written: str, kind: str) -> Mapping[str, Any]:
    """Return what ``ansible-inventory --list`` prints; ``ValueError`` with its reason.

    Cached by the file's text, because a run reads its inventory more than once and the program takes a second.
    """
    folders = (os.environ.get("PATH", os.defpath), sysconfig.get_path("scripts"))
    program = shutil.which(PROGRAM, path=os.pathsep.join(folders))
    if program is None:
        raise ValueError(f"is an Ansible inventory, which needs Ansible: pip install {PACKAGE}, or write it as TOML")
    # Enable only the inventory plugin of this format: other ones run programs or query a cloud.
    settings = {**os.environ, **STRICT, "ANSIBLE_INVENTORY_ENABLED": kind}
    try:
        done = subprocess.run(
            [program, "-i", str(path), "--list"],
            env=settings, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=DEADLINE_S,
        )  # fmt: skip
        found = json.loads(done.stdout) if not done.returncode else None
    except subprocess.TimeoutExpired:
        raise ValueError(f"{PROGRAM} did not finish within {DEADLINE_S} s") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{PROGRAM} gave no JSON: {error}") from None
    messages = [" ".join(each.split()) for each in MESSAGE.findall(done.stderr.decode(errors="replace"))]
    ignored = [each for each in messages if each.startswith(SKIPPED)]
    if done.returncode or ignored:
        reasons = ignored or [each for each in messages if PREFIX.match(each)] or messages[-1:]
        reason = PREFIX.sub("", reasons[0]) if reasons else f"exit status {done.returncode}"
        raise ValueError(f"{PROGRAM} cannot read it: {reason}")
    if not isinstance(found, dict) or not isinstance(found.get("_meta"), dict) or "hostvars" not in found["_meta"]:
        raise ValueError(f"{PROGRAM} printed no inventory")
    return found


def _memberships(listed: Mapping[str, Any]) -> Mapping[str, list[str]]:
    """Return the groups of each host and their parents: parents before children, then by name."""
    groups = {name: group for name, group in listed.items() if name != "_meta"}
    parents: dict[str, set[str]] = {name: set() for name in groups}
    for name, group in groups.items():
        for child in group.get("children", ()):
            parents.setdefault(child, set()).add(name)
    depth: dict[str, int] = {}
    above: dict[str, set[str]] = {}
    for name in TopologicalSorter(parents).static_order():
        depth[name] = 1 + max((depth[each] for each in parents[name]), default=-1)
        above[name] = {name}.union(*(above[each] for each in parents[name]))
    of: dict[str, set[str]] = {}
    for name, group in groups.items():
        for host in group.get("hosts", ()):
            of.setdefault(host, set()).update(above[name])
    return {host: sorted(names, key=lambda name: (depth[name], name)) for host, names in of.items()}


def _table(host: str, name: str, variables: Variables, groups: Sequence[str]) -> BayTable:
    """Return the bay of one host; raise ``DocumentError`` with all errors of the host."""
    if errors := list(_wrong(variables)):
        raise toml.DocumentError(host, errors)
    labels = {"group": safe_text.line(", ".join(each for each in groups if each not in COMMON_GROUPS), LONGEST_LABEL)}
    labels |= _texts(variables.get("ssd_labels"))
    single = {key.removeprefix(LABEL): value for key, value in variables.items() if key.startswith(LABEL)}
    labels |= _texts(single)
    devices, expect = variables["ssd_devices"], variables.get("ssd_expect")
    is_here = str(variables.get("ansible_connection", "")).endswith("local") or str(devices).startswith("lab")
    content: dict[str, object] = {
        "name": name,
        "host": None if is_here else _destination(host, variables),
        "devices": devices,
        "slots": _texts(variables.get("ssd_slots")),
        "labels": {name: value for name, value in labels.items() if value},
        "ssh_config": variables.get("ssd_ssh_config") or None,
        # A quoted number is text.
        "expect": int(expect) if isinstance(expect, str) and expect.isascii() and expect.isdecimal() else expect,
        "smart_type": variables.get("ssd_smart_type") or [],
    }
    try:
        return toml.checked(BayTable.model_validate, host, content, toml.DocumentError)
    except toml.DocumentError as error:
        # Name the inventory's variables: the key devices of a bay is ssd_devices of a host.
        errors = [f"ssd_{each}" if each.startswith(KEYS) else each for each in error.errors]
        raise toml.DocumentError(host, errors) from None


def _wrong(variables: Variables) -> Iterable[str]:
    for name, value in variables.items():
        ssd, theirs, text = name.startswith("ssd_"), name.startswith("ansible_"), str(value)
        if HARMLESS.get(name) == () or not (ssd or theirs):
            continue
        if "{{" in text or "__ansible_vault" in text:
            yield f"{name}: is a template or encrypted, and is not resolved here; write the value itself"
        elif not text.isprintable():
            yield f"{name}: has characters that cannot be printed"
        elif ssd and name not in SSD_VARIABLES and not name.startswith(LABEL):
            # Without the common prefix, which would make all of them similar.
            known = [each.removeprefix("ssd_") for each in (*SSD_VARIABLES, LABEL)]
            near = get_close_matches(name.removeprefix("ssd_"), known, n=1)
            yield f"{name}: unknown variable" + (f"; did you mean ssd_{near[0]}?" if near else "")
        elif name in ("ssd_slots", "ssd_labels") and not isinstance(value, dict):
            yield f"{name}: is not a table; write it in YAML, or the whole inventory as TOML"
        elif theirs and name not in (*ADDRESS, *USER):
            if name in PASSWORDS:
                yield f"{name}: ssdqual uses no passwords; log in with a key"
            elif name not in HARMLESS:
                yield (
                    f"{name}: is not supported; put the setting into an OpenSSH configuration file that "
                    "ssd_ssh_config (or --ssd-ssh-config) names"
                )
            elif value not in HARMLESS[name]:
                yield f"{name}: {value!r} is not supported; ssdqual uses ssh, and sudo to become root"


def _destination(host: str, variables: Variables) -> str:
    address = next((str(variables[name]) for name in ADDRESS if variables.get(name)), host)
    user = next((str(variables[name]) for name in USER if variables.get(name)), "")
    return f"{user}@{address}" if user else address


def _texts(table: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a table with numbers as text and None as empty text; the model refuses nested tables and lists."""
    plain = {key: "" if value is None else value for key, value in (table or {}).items()}
    return {key: str(value) if isinstance(value, int | float) else value for key, value in plain.items()}
