"""Files of a run on the machine under test, and their removal by the next start if the run was killed.

/run is a tmpfs: hours of fio's documents are gigabytes of memory, and what no run fetched would stay until the next
boot. A file's name has the token of its run's connection; the run's lease holds a lock of that name as long as the run
is alive. The keepers of processes (``supervisor``) hold a lock in their own directory as long as they live.
"""

from __future__ import annotations

import secrets

from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine
from pytest_ssdqual.rig.machine.supervisor import DIRECTORY

SWEEP = scripts.text("sweep_run_files.sh")


def path(machine: Machine, kind: str) -> str:
    """Return a new name for a file of this run; it is valid as long as the run holds its lease."""
    return f"{DIRECTORY}/{kind}-{machine.token}-{secrets.token_hex(6)}"


def lock(machine: Machine) -> str:
    """The file that the lease locks, shared, for the life of the run."""
    return f"{DIRECTORY}/run-{machine.token}.lock"


def sweep(machine: Machine) -> tuple[str, ...]:
    """Remove the files that killed runs left on the machine; return their names."""
    return tuple(machine.run(["sh", "-c", SWEEP, "sweep", DIRECTORY], repeatable=True).text.splitlines())
