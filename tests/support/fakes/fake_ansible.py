"""A program ``ansible-inventory`` on PATH that prints what it is given, and stores its arguments."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, printed: str, errors: str = "", status: int = 0) -> Path:
    """Return the file of the arguments of its last call, one a line."""
    folder.mkdir(parents=True, exist_ok=True)
    arguments, program = folder / "arguments", folder / "ansible-inventory"
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" "$ANSIBLE_INVENTORY_ENABLED" >{shlex.quote(str(arguments))}\n'
        f"printf %s {shlex.quote(errors)} >&2\nprintf %s {shlex.quote(printed)}\nexit {status}\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return arguments


def listing(hosts: Mapping[str, Mapping[str, object]], **groups: Mapping[str, object]) -> str:
    """Like the program: hosts in no group are ungrouped, hosts without variables have none."""
    grouped = {host for group in groups.values() for host in group.get("hosts", [])}  # type: ignore[attr-defined]
    children = [child for group in groups.values() for child in group.get("children", [])]  # type: ignore[attr-defined]
    rest = {"ungrouped": {"hosts": [host for host in hosts if host not in grouped]}}
    top = {"all": {"children": ["ungrouped", *(name for name in groups if name not in children)]}}
    hostvars = {host: variables for host, variables in hosts.items() if variables}
    return json.dumps({"_meta": {"hostvars": hostvars}, **top, **groups, **rest}, sort_keys=True)
