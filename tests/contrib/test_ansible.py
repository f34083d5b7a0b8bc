"""contrib/ansible: Ansible accepts the playbook, and the role installs what a run needs."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

import yaml

from pytest_ssdqual.rig.machine import facts

CONTRIB = Path(__file__).parents[2] / "contrib/ansible"
ROLE = CONTRIB / "roles/ssdqual_machine"
#: Parts of every installation.
BASIC = {"coreutils"}


def test_ansible_accepts_the_playbook(tmp_path: Path) -> None:
    program = Path(sysconfig.get_path("scripts"), "ansible-playbook")
    argv = [str(program), "--syntax-check", "-i", "localhost,", str(CONTRIB / "machine.yml")]
    env = {**os.environ, "ANSIBLE_HOME": str(tmp_path), "ANSIBLE_LOCAL_TEMP": str(tmp_path)}
    done = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_role_installs_every_tool() -> None:
    install, *_ = yaml.safe_load((ROLE / "tasks/main.yml").read_text())
    named = {*install["vars"]["ssdqual_machine_packages"]}
    assert set(facts.TOOLS.values()) | set(facts.NVME_TOOLS.values()) <= named | BASIC | {"udev"}
    assert "'udev'" in install["vars"]["ssdqual_machine_packages_of_family"]


def test_every_variable_has_a_default_and_every_default_a_use() -> None:
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    tasks = "".join(path.read_text() for path in (ROLE / "tasks").glob("*.yml"))
    assert [name for name in defaults if name not in tasks] == []
