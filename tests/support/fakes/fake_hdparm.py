"""An ATA drive behind a program that speaks as hdparm does, for our own scripts to run for real.

What it prints for ``-I`` is real (``tests/data/hdparm``); the rest is worded after hdparm's source (9.58).
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pytest_ssdqual.rig.machine.machine import Completed
from support.fakes.scripted import ScriptedMachine

DATA = Path(__file__).parents[2] / "data" / "hdparm" / "9.65"

#: A drive, in a directory: ``identify`` is what -I prints when no password is set; ``password`` exists while one is;
#: ``sanitizing`` counts down the looks that are left. Files named ``no-…`` are what it does not do,
#: ``half`` is an erase that takes off the password and fails.
HDPARM = r"""#!/bin/sh
cd "${FAKE_DRIVE:-/run/fake-drive}" || exit 99
echo "$*" >>asked
for drive; do :; done
printf '\n%s:\n' "$drive"
refuse() { [ ! -e no-"$1" ] || { cat no-"$1" >&2; exit "$(cat status-"$1" 2>/dev/null || echo 5)"; }; }
case " $* " in
*" -I "*)
    refuse identify
    if [ -e password ]; then sed 's/^\tnot\tenabled$/\t\tenabled/' identify; else cat identify; fi ;;
*" --user-master u --security-set-pass "*)
    echo ' Issuing SECURITY_SET_PASS command, password="'"$4"'", user=user, mode=high'
    refuse set-pass
    echo "$4" >password ;;
*" --user-master u --security-erase"*)
    echo ' Issuing SECURITY_ERASE command, password="'"$4"'", user=user'
    while [ -e erasing ]; do sleep 0.02; done
    refuse erase
    [ "$4" = "$(cat password 2>/dev/null)" ] || { echo 'SECURITY_ERASE: Input/output error' >&2; exit 5; }
    rm password; [ ! -e half ] || exit 5; touch erased ;;
*" --user-master u --security-disable "*)
    refuse disable
    [ "$4" = "$(cat password 2>/dev/null)" ] || { echo 'SECURITY_UNLOCK: Input/output error' >&2; exit 5; }
    rm password ;;
*" --sanitize-status "*)
    echo 'Issuing SANITIZE_STATUS command'
    refuse status
    echo 'Sanitize status:'
    left=$(cat sanitizing 2>/dev/null || echo 0)
    if [ -e frozen ]; then echo '    State:    SD1 Sanitize Frozen'
    elif [ "$left" -gt 0 ]; then
        echo $((left - 1)) >sanitizing
        printf '    State:    SD2 Sanitize operation In Process\n    Progress: 0x7fff (50%%)\n'
    else
        echo '    State:    SD0 Sanitize Idle'
        [ -e no-success ] || echo '    Last Sanitize Operation Completed Without Error'
    fi ;;
*" --yes-i-know-what-i-am-doing --sanitize-"*)
    echo 'Issuing SANITIZE command'
    refuse sanitize
    echo 3 >sanitizing
    printf 'Operation started in background\nYou may use `--sanitize-status` to check progress\n' ;;
*) echo "unknown: $*" >&2; exit 22 ;;
esac
"""


@dataclass
class FakeDrive:
    """An ATA drive behind a program that speaks as hdparm does; our own scripts run it for real."""

    place: Path

    def __post_init__(self) -> None:
        (self.place / "bin").mkdir()
        program = self.place / "bin" / "hdparm"
        program.write_text(HDPARM)
        program.chmod(0o755)
        self.identifies_as("idle")

    def identifies_as(self, name: str) -> FakeDrive:
        (self.place / "identify").write_text((DATA / f"{name}.txt").read_text())
        return self

    def has(self, name: str, content: object = "") -> FakeDrive:
        (self.place / name).write_text(f"{content}\n")
        return self

    def refuses(self, what: str, said: str = "SECURITY: Input/output error", status: int = 5) -> FakeDrive:
        return self.has(f"no-{what}", said).has(f"status-{what}", status)

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.place / 'bin'}:{os.environ['PATH']}"
        return {**os.environ, "LC_ALL": "C", "PATH": path, "FAKE_DRIVE": str(self.place)}

    def machine(self) -> ScriptedMachine:
        return ScriptedMachine().on("hdparm", answer=self.run).on("sh", answer=self.run)

    def run(self, argv: tuple[str, ...]) -> Completed:
        done = subprocess.run(argv, env=self.environment, capture_output=True, check=False, timeout=60)
        return Completed(argv, done.returncode, done.stdout, done.stderr, "2026-01-01T00:00:00+00:00", 0.0)

    @property
    def is_locked_in(self) -> bool:
        """Whether it would lock itself when its power is cut."""
        return (self.place / "password").exists()

    @property
    def is_erased(self) -> bool:
        return (self.place / "erased").exists()

    def asked(self, word: str) -> list[str]:
        return [line for line in (self.place / "asked").read_text().splitlines() if word in line]
