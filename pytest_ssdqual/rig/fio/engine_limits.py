"""errno of a fio process in words, with the limit of the machine that explains it and what a person can do.

fio in JSON mode writes only the number, and exits with status 1 or 2. Sources: io_uring_setup(2), io_setup(2), Linux
Documentation/admin-guide/sysctl/kernel.rst (``io_uring_disabled``) and fs.rst (``aio-nr``, ``aio-max-nr``).
"""

from __future__ import annotations

import errno as numbers
import os
import re
from collections.abc import Mapping

from pytest_ssdqual.rig.machine import scripts

SCRIPT = scripts.text("engine_limits.sh")
#: A line of ``SCRIPT`` in what fio printed on standard error.
LIMIT = re.compile(r"^(kernel\.io_uring_disabled|fs\.aio-nr|fs\.aio-max-nr|memlock|nofile)=(\w{1,20})$", re.ASCII)
IO_URING = "io_uring"
OTHER_ENGINE = 'allow it, or set engine = "libaio" in [load] of the protocol'
MORE_SLOTS = "`sysctl fs.aio-max-nr=1048576` raises the limit"
MORE_MEMORY = "raise `ulimit -l` (memlock), or free memory"


def limits_in(lines: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the limits among ``lines``, and the other lines."""
    matches = [(line, LIMIT.match(line)) for line in lines]
    return {match[1]: match[2] for _, match in matches if match}, [line for line, match in matches if not match]


def in_words(errno: int, engine: str, limits: Mapping[str, str]) -> str:
    """Return an errno of fio as ``Operation not permitted: io_uring is forbidden here, …``."""
    words = os.strerror(errno)
    if engine == IO_URING and errno in (numbers.EPERM, numbers.EACCES, numbers.ENOSYS):
        value = limits.get("kernel.io_uring_disabled", "")
        sysctl = f"kernel.io_uring_disabled={value}"
        if value not in ("", "0"):
            return f"{words}: io_uring is forbidden here, {sysctl}; {OTHER_ENGINE}"
        known = f" ({sysctl})" if value else ""
        return f"{words}: io_uring is forbidden here, perhaps by a container's seccomp profile{known}; {OTHER_ENGINE}"
    if errno == numbers.EAGAIN:
        used, most = limits.get("fs.aio-nr"), limits.get("fs.aio-max-nr")
        counted = f", of fs.aio-max-nr={most} are in use {used}" if used and most else ""
        return f"{words}: the kernel has too few slots for asynchronous I/O{counted}; {MORE_SLOTS}"
    if errno == numbers.ENOMEM:
        memlock = limits.get("memlock", "")
        limited = f", of which {memlock} KiB may be locked" if memlock.isdecimal() else ""
        return f"{words}: the kernel has too little memory for fio's queues and buffers{limited}; {MORE_MEMORY}"
    return f"{words} (errno {errno})"
