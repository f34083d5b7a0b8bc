"""One fio process on the machine under test: start, wait, fetch what it wrote, leave nothing behind."""

from __future__ import annotations

import contextlib
import gzip
import secrets
from dataclasses import dataclass

from pytest_ssdqual.rig.fio.jobfile import Job
from pytest_ssdqual.rig.lease import DIRECTORY
from pytest_ssdqual.rig.machine import Completed, Machine, RigError

#: fio's own start and end, on an emulated or busy machine.
OVERHEAD_S = 90.0
#: Pack the output, and remove it only when all of it is out.
FETCH = 'gzip -1 -c "$1" && rm -f "$1"'


@dataclass(frozen=True, slots=True)
class Finished:
    """A fio process that ended, and its output file; ``packed`` is gzip, as it came over the wire."""

    completed: Completed
    packed: bytes

    @property
    def output(self) -> bytes:
        return gzip.decompress(self.packed)


def run(machine: Machine, job: Job, seconds: float) -> Finished:
    """Run ``job``, which should take about ``seconds``, and fetch its output.

    It is tethered: if we end, are interrupted or lose the machine, fio ends there by itself. Whether the numbers
    are any good is ``verify.accept``'s to say; only a machine or process that fails altogether raises here.
    """
    path = f"{DIRECTORY}/fio-{secrets.token_hex(6)}.json"
    try:
        completed = machine.tether(job.argv(path)).wait(seconds * 1.25 + OVERHEAD_S)
    except BaseException:
        with contextlib.suppress(RigError):  # the error on its way says more
            machine.run(["rm", "-f", path], check=False)
        raise
    fetched = machine.run(["sh", "-c", FETCH, "fetch", path], check=False, deadline_s=300)
    return Finished(completed, fetched.stdout if fetched.status == 0 else gzip.compress(b""))
