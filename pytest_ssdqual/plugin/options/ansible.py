"""The text of an Ansible inventory, INI or YAML → its groups, hosts and variables, as they are written; pure.

What of Ansible is not read: programs, templates, vaults, plugins, and the folders ``group_vars`` and ``host_vars``.
``ansible-inventory --list --yaml`` writes an inventory in which all that is resolved.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

#: What a variable is: text, or in YAML (and as a list in INI's vars) more of it.
Value = str | list[str] | dict[str, str]
#: Of what is said about the way to a host and is ssh's own business.
SSH_CONFIG = "goes into an OpenSSH configuration file that ssd_ssh_config (or --ssd-ssh-config) names"
#: Of one inventory; of the hosts not all need have drives of ours.
MOST_HOSTS, MOST_GROUPS = 10_000, 1000
#: ``dut[01:20]``, ``dut[a:f]``, ``dut[1:20:2]``.
RANGE = re.compile(r"\[(?P<first>\d{1,9}|[A-Za-z]):(?P<last>\d{1,9}|[A-Za-z])(?::(?P<step>\d{1,9}))?\]", re.ASCII)
SECTION = re.compile(r"\[([^\[\]:\s]+)(?::(\w+))?\]\s*(?:[#;].*)?")
#: Lines of a section that is none are passed over, after it was told.
UNKNOWN = "unknown"
RESOLVED = "write it anew with: ansible-inventory --list --yaml"


class UnknownSection(ValueError):
    """Neither hosts nor variables nor children."""


@dataclass(slots=True)
class Group:
    hosts: dict[str, None] = field(default_factory=dict)
    children: dict[str, None] = field(default_factory=dict)
    variables: dict[str, Value] = field(default_factory=dict)


@dataclass(slots=True)
class Groups:
    """An inventory as it is written, and what is wrong with it."""

    groups: dict[str, Group] = field(default_factory=lambda: {"all": Group(), "ungrouped": Group()})
    #: Variables of each host that is named at all.
    hosts: dict[str, dict[str, Value]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def add_host(self, group: str, pattern: str, variables: Mapping[str, Value]) -> None:
        """All hosts that a pattern stands for; ``ValueError`` for one that cannot be."""
        if port := re.fullmatch(r"([^:]+|.*\]):(\d+)", pattern):
            raise ValueError(f"{port[1]} has the port {port[2]}, which {SSH_CONFIG}")
        for host in expanded(pattern):
            self.groups[group].hosts[host] = None
            self.hosts.setdefault(host, {}).update(variables)
        if len(self.hosts) > MOST_HOSTS:
            raise ValueError(f"the inventory has more than {MOST_HOSTS} hosts")


def expanded(pattern: str) -> list[str]:
    """``dut[01:20]`` → ``dut01`` to ``dut20``; ``ValueError`` for a range that runs backwards or has no end."""
    parts: list[list[str]] = []
    at, count = 0, 1
    for found in RANGE.finditer(pattern):
        each = _range(found)
        count *= len(each)
        if count > MOST_HOSTS:
            raise ValueError(f"{pattern} is more than {MOST_HOSTS} hosts")
        parts += [[pattern[at : found.start()]], each]
        at = found.end()
    return ["".join(each) for each in product(*parts, [pattern[at:]])]


def _range(found: re.Match[str]) -> list[str]:
    first, last, step = found["first"], found["last"], int(found["step"] or 1)
    if first.isdigit() != last.isdigit() or not step:
        raise ValueError(f"{found[0]} is no range of hosts; write e.g. dut[01:20]")
    if first.isdigit():
        numbers = range(int(first), int(last) + 1, step)
        padded = len(first) if first.startswith("0") else 0
    else:
        numbers, padded = range(ord(first), ord(last) + 1, step), 0
    if not 0 < len(numbers) <= MOST_HOSTS:
        raise ValueError(f"{found[0]} is a range of no hosts, or of more than {MOST_HOSTS}")
    return [f"{each:0{padded}d}" if first.isdigit() else chr(each) for each in numbers]


def read_ini(written: str) -> Groups:
    """Sections of hosts, of variables, of groups; what is wrong is told with the number of its line."""
    found, group, kind = Groups(), "ungrouped", ""
    declared = set(found.groups)
    varied: dict[str, int] = {}
    for number, line in enumerate(written.split("\n"), 1):
        text = line.strip()
        if not text or text[0] in "#;":
            continue
        try:
            if text[0] == "[" and (section := SECTION.fullmatch(text)):
                group, kind = section[1], _section_kind(section[2] or "")
                found.groups.setdefault(group, Group())
                if kind == "vars":
                    varied.setdefault(group, number)
                else:
                    declared.add(group)
            else:
                _ini_line(found, group, kind, text)
        except UnknownSection as error:
            found.errors.append(f"line {number}: {error}")
            kind = UNKNOWN
        except ValueError as error:
            found.errors.append(f"line {number}: {error}")
    for each in varied.keys() - declared:
        found.errors.append(f"line {varied[each]}: there is no group {each}, so its variables are nobody's")
    return found


def _section_kind(said: str) -> str:
    if said not in ("", "vars", "children"):
        raise UnknownSection(f"a section of {said} is nothing that an inventory has; there are vars and children")
    return said


def _ini_line(found: Groups, group: str, kind: str, text: str) -> None:
    if kind == UNKNOWN:
        return
    if kind == "children":
        found.groups[group].children[text.split("#")[0].strip()] = None
    elif kind == "vars":
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"{text!r} is no variable; write name=value")
        found.groups[group].variables[name.strip()] = _ini_value(value.strip())
    else:
        pattern, *rest = shlex.split(text, comments=True)
        if wrong := [each for each in rest if "=" not in each]:
            raise ValueError(f"{wrong[0]!r} is no variable; write name=value, one host on each line")
        pairs = (each.partition("=") for each in rest)
        found.add_host(group, pattern, {name: _ini_value(value) for name, _, value in pairs})


def _ini_value(text: str) -> Value:
    """Text in quotes and lists of texts are those of Python, as Ansible has it; all else is text as it stands."""
    if text[:1] in ("'", '"', "["):
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            value = None
        if isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            return value
    return re.split(r"\s#", text, maxsplit=1)[0].rstrip()


def read_yaml(written: str) -> Groups:
    """Groups of hosts, variables and further groups. ``ValueError`` for what is no YAML."""
    try:
        import yaml
    except ImportError:
        raise ValueError("is YAML, which needs PyYAML: pip install pyyaml, or write the inventory as TOML") from None
    found = Groups()
    try:
        node = yaml.compose(written, Loader=yaml.SafeLoader)
        content = _plain(node, set()) if node else {}
    except yaml.YAMLError as error:
        raise ValueError(f"is not YAML: {' '.join(str(error).split())}") from None
    for name, each in _table(content, "it").items():
        _yaml_group(found, name, each)
    return found


def _plain(node: Any, seen: set[int]) -> Any:  # noqa: ANN401  (PyYAML has no types)
    """Texts as they are written: of a serial number 007 nothing may be lost, nor of a key that is there twice."""
    if id(node) in seen:
        raise ValueError(f"line {node.start_mark.line + 1} is used a second time by an alias (*); write it out")
    seen.add(id(node))
    if node.id == "sequence":
        return [_plain(each, seen) for each in node.value]
    if node.id != "mapping":
        return "" if node.tag.endswith(":null") else node.value
    found: dict[str, Any] = {}
    for key, value in node.value:
        name = _plain(key, seen)
        where = f"line {key.start_mark.line + 1}"
        if not isinstance(name, str) or name == "<<":
            raise ValueError(f"{where}: a key is text here")
        if name in found:
            raise ValueError(f"{where}: {name} is there twice")
        found[name] = _plain(value, seen)
    return found


def _yaml_group(found: Groups, name: str, content: object) -> None:
    group = found.groups.setdefault(name, Group())
    parts = _table(content, name)
    if unknown := parts.keys() - {"hosts", "vars", "children"}:
        found.errors.append(f"{name}: {min(unknown)!r} is nothing that a group has; there are hosts, vars and children")
    for host, variables in _table(parts.get("hosts"), f"{name}.hosts").items():
        try:
            found.add_host(name, host, dict(_variables(variables, f"{name}.hosts.{host}")))
        except ValueError as error:
            found.errors.append(f"{name}: {error}")
    group.variables.update(_variables(parts.get("vars"), f"{name}.vars"))
    for child, each in _table(parts.get("children"), f"{name}.children").items():
        group.children[child] = None
        _yaml_group(found, child, each)


def _variables(content: object, where: str) -> Iterator[tuple[str, Value]]:
    for name, value in _table(content, where).items():
        inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        # What is nested more deeply is no variable of ours.
        if all(isinstance(each, str) for each in inside):
            yield name, value
        elif name.startswith(("ssd_", "ansible_")):
            raise ValueError(f"{where}.{name}: is nested more deeply than it can be")


def _table(content: object, where: str) -> dict[str, Any]:
    if not content:
        return {}
    if not isinstance(content, dict):
        raise ValueError(f"{where}: is no table; write one name and a colon on each line")  # noqa: TRY004  (bad data)
    return content
