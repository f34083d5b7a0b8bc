"""What a machine is and has: the tools a run needs, and the facts its evidence must carry."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.rig.machine.machine import Machine, RigError

#: Command → the package that has it, by its name on Debian, Ubuntu, Fedora and RHEL alike.
TOOLS = {
    "fio": "fio",
    "mdadm": "mdadm",
    "smartctl": "smartmontools",
    "lsblk": "util-linux",
    "flock": "util-linux",
    "blkdiscard": "util-linux",
    "setsid": "util-linux",
    "blockdev": "util-linux",
    "timeout": "coreutils",
    "nproc": "coreutils",
    "gzip": "gzip",
    "udevadm": "udev",
}
#: Only where there are NVMe drives.
NVME_TOOLS = {"nvme": "nvme-cli"}

MISSING = 'for c; do command -v "$c" >/dev/null 2>&1 || echo "$c"; done'

#: One ``key value`` line each; what is not there (a tool, a clock that nobody governs) gives no line.
#: How fast processors may be, and whether links may sleep, is in latencies of microseconds.
FACTS = r"""
export LC_ALL=C
sys=${sys:-/sys}
printf 'hostname %s\n' "$(uname -n)"
printf 'kernel %s\n' "$(uname -srvm)"
[ -r /etc/os-release ] && (. /etc/os-release; printf 'os %s\n' "$PRETTY_NAME")
[ -s /etc/machine-id ] && printf 'machine_id %s\n' "$(cat /etc/machine-id)"
echo "boot_id $(cat /proc/sys/kernel/random/boot_id)"
sed -n 's/^model name[^:]*: /cpu /p' /proc/cpuinfo | head -n 1
echo "cpus $(nproc)"
cat "$sys"/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor 2>/dev/null | sort -u | paste -s -d ' ' |
    sed -n 's/^./governor &/p'
sed -n 's/^0/turbo on/p; s/^1/turbo off/p' "$sys/devices/system/cpu/intel_pstate/no_turbo" 2>/dev/null ||
    sed -n 's/^1/turbo on/p; s/^0/turbo off/p' "$sys/devices/system/cpu/cpufreq/boost" 2>/dev/null
sed -n 's/.*\[\(.*\)\].*/pcie_aspm \1/p' "$sys/module/pcie_aspm/parameters/policy" 2>/dev/null
sed -n 's/^MemTotal: *\([0-9]*\) kB/memory_kib \1/p' /proc/meminfo
fio --version 2>/dev/null | sed 's/^fio-/fio /'
mdadm --version 2>&1 | sed -n 's/^mdadm - /mdadm /p'
smartctl --version 2>/dev/null | sed -n '1s/^smartctl /smartctl /p'
nvme version 2>/dev/null | sed -n '1s/^nvme version /nvme /p'
lsblk --version 2>/dev/null | sed 's/^lsblk from util-linux /util-linux /'
"""


class ToolsMissing(RigError):
    """The machine lacks programs that every run needs."""


def require_tools(machine: Machine, tools: dict[str, str] | None = None) -> None:
    """Raise ``ToolsMissing`` naming every missing command and the packages that bring them."""
    wanted = TOOLS if tools is None else tools
    missing = machine.run(["sh", "-c", MISSING, "missing", *wanted]).text.split()
    if missing:
        packages = sorted({wanted[command] for command in missing})
        raise ToolsMissing(
            f"{machine.name} has no {_list(missing)}: install the package{'s' if len(packages) > 1 else ''} "
            f"{' '.join(packages)} there"
        )


def facts(machine: Machine) -> dict[str, str]:
    """Kernel, tools and hardware, as printable text; what could not be found out is not in it."""
    lines = machine.run(["sh", "-c", FACTS, "facts"], check=False, repeatable=True).text.splitlines()
    words = (line.split(" ", 1) for line in lines if " " in line)
    return {safe_text.line(name): safe_text.line(value) for name, value in words}


def _list(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
