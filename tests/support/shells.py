"""Shells and awks under which the scripts of the machine are tested; without one of them its tests are skipped visibly.

script/test installs all of them.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence

import pytest


def _each(program: str, value: object, *words: str) -> object:
    is_missing = not shutil.which(program)
    skipped = pytest.mark.skipif(is_missing, reason=f"there is no {program} here")
    return pytest.param(value, marks=skipped, id=" ".join((program, *words)))


#: For parameters and fixtures, by the name of the program; busybox' shell is its applet ``sh``.
SHELLS = [_each(shell, shell) for shell in ("dash", "bash", "busybox")]
#: The argv of each awk.
AWKS = [
    _each(awk[0], awk, *awk[1:])
    for awk in (["mawk"], ["gawk", "--posix"], ["gawk"], ["busybox", "awk"], ["original-awk"])
]


def with_each_shell(values: Sequence[str]) -> list[object]:
    """Return the parameters that combine each shell with each of ``values``: tuples."""
    return [_each(shell, (shell, value), value) for shell in ("dash", "bash", "busybox") for value in values]


def shell_argv(shell: str) -> list[str]:
    """Return the argv of one of ``SHELLS``, for ``-c`` and a script."""
    return [shutil.which(shell) or shell, *(["sh"] if shell == "busybox" else [])]


def run_script(
    shell: str, script: str, *words: str, stdin: str | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Return the output of a script, which must end well and report nothing; ``words`` begin with its name."""
    argv = [*shell_argv(shell), "-c", script, *words]
    done = subprocess.run(argv, input=stdin, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
