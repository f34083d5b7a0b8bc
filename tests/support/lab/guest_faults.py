"""What goes wrong inside of the machine under test: done from within, past the program."""

from __future__ import annotations

from support.lab.rehearsed import Server

#: A worker of fio, not the process that reports: as the kernel does it when memory is short. Not before the first
#: report: fio 3.33 waits for ever for a worker that dies while it starts, until the program ends it after 97 s.
KILL_WORKER = r"""
until [ -s "$(ls -t /run/pytest-ssdqual/fio-* | head -n 1)" ]; do sleep 0.1; done
for pid in $(pidof fio); do
    read -r _ _ _ parent _ <"/proc/$pid/stat"
    [ "$(cat "/proc/$parent/comm")" = fio ] && kill -KILL "$pid" && exit 0
done
exit 1
"""
#: $1 a drive's serial number: the NVMe controller neither reads its queues nor can be reached, and resetting it does
#: not help, because memory access and bus mastering are switched off in its PCI command register as often as the
#: driver switches them on. Its time limits are lowered: 30 s for a request is longer than a test should take.
DEAFEN = r"""
drive=$(readlink -f "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_$1")
for limit in /sys/block/nvme*n1/queue/io_timeout; do echo 2000 >"$limit"; done
setsid perl -e '
    open F, "+<", shift or die; binmode F;
    while (1) { sysseek F, 4, 0; syswrite F, "\0\0", 2 or exit; select undef, undef, undef, 0.0005 }
' "$(readlink -f "/sys/block/${drive##*/}/device/device")/config" </dev/null >/dev/null 2>&1 &
echo $! "$(readlink -f "/sys/block/${drive##*/}/device/device")"
"""
#: $1 process, $2 the controller's directory in sysfs: it hears again, and is found anew.
HEAR_AGAIN = r"""
kill "$1"
[ ! -e "$2/remove" ] || echo 1 >"$2/remove"
echo 1 >/sys/bus/pci/rescan
udevadm settle --timeout=30
for limit in /sys/block/nvme*n1/queue/io_timeout; do echo 30000 >"$limit"; done
"""


def kill_worker(server: Server) -> None:
    """Kill one worker of the fio that runs."""
    server.ask("sh", "-c", KILL_WORKER)


def panic(server: Server) -> None:
    """Crash the kernel; the answer to this does not arrive."""
    server.ask("sh", "-c", "(sleep 0.2; echo c >/proc/sysrq-trigger) >/dev/null 2>&1 &", check=False)


def restart(server: Server) -> None:
    """Reset the machine at once, as a watchdog does: nothing is written or unmounted. The lab's QEMU ends with it."""
    server.ask("sh", "-c", "(sleep 0.2; echo b >/proc/sysrq-trigger) >/dev/null 2>&1 &", check=False)


def step_clock(server: Server, seconds: int) -> None:
    """Set the clock forward, or back if negative."""
    server.ask("sh", "-c", 'date --set="@$(($(date +%s) + $1))"', "step", str(seconds))


def deafen(server: Server, serial: str) -> tuple[str, str]:
    """Let a drive not answer any more; what ``hear_again`` wants to know."""
    process, controller = server.ask("sh", "-c", DEAFEN, "deafen", serial).split()
    return process, controller


def hear_again(server: Server, process: str, controller: str) -> None:
    """Let the drive answer again, as if it had been taken out and put in."""
    server.ask("sh", "-c", HEAR_AGAIN, "hear", process, controller)
