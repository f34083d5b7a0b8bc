"""Which block devices a machine has, what uses them, and which of them a user's pattern names.

The rule of the module: two commands for a survey, one for an expansion (a command costs 0.15 s over OpenSSH in
an emulated VM). The scripts are constants; what a user wrote reaches them as positional parameters only, and what
cannot be understood is an error, never an empty answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_ssdqual.rig import lsblk
from pytest_ssdqual.rig.facts import topology_of
from pytest_ssdqual.rig.machine import Completed, Machine, RigError
from pytest_ssdqual.rig.topology import Drive, Match, MdArray, Node, Topology, Use, UseKind

__all__ = [
    "Drive",
    "Match",
    "MdArray",
    "Node",
    "NotABlockDevice",
    "NothingMatches",
    "Topology",
    "UnusablePattern",
    "Use",
    "UseKind",
    "expand",
    "survey",
]

#: Is a device claimed (mount of any namespace, swap, md, dm, ZFS, …)? The kernel answers EBUSY to O_EXCL, for a
#: disk also when one of its partitions is claimed. Read-only, non-blocking, in three rounds: udev's claims are short.
PERL_PROBE = """
use Fcntl;
my %error;
for my $round (1 .. 3) {
    my @busy = grep { !defined $error{$_} || $error{$_} == 16 } @ARGV;
    select(undef, undef, undef, 0.2) if @busy && $round > 1;
    for my $path (@busy) {
        $error{$path} = sysopen(my $device, $path, O_RDONLY | O_EXCL | O_NONBLOCK) ? 0 : $! + 0;
    }
}
print "$_ $error{$_}\\n" for @ARGV;
"""

PYTHON_PROBE = """
import os, sys, time
errors = dict.fromkeys(sys.argv[1:], 16)
for pause in (0, 0.2, 0.2):
    busy = [path for path in errors if errors[path] == 16]
    time.sleep(pause if busy else 0)
    for path in busy:
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_NONBLOCK))
            errors[path] = 0
        except OSError as problem:
            errors[path] = problem.errno
for path, error in errors.items():
    print(path, error)
"""

#: What loop devices are over, by number: the kernel keeps the file open, no process does, and its name may be gone or
#: be one of another mount namespace. LOOP_GET_STATUS64 tells the device that the file is on, and the one that it is.
PERL_LOOPS = """
for my $path (@ARGV) {
    my ($device, $info) = (undef, "\\0" x 232);
    next unless open($device, "<", $path) && ioctl($device, 0x4C05, $info);
    for my $number ((unpack "QQQ", $info)[0, 2]) {
        my ($major, $minor) = ($number >> 8 & 0xFFF, $number & 0xFF | $number >> 12 & 0xFFF00);
        printf "over %s %x %x\\n", substr($path, 5), $major, $minor if $major;
    }
}
"""

PYTHON_LOOPS = """
import fcntl, struct, sys
for path in sys.argv[1:]:
    try:
        with open(path, "rb") as device:
            info = fcntl.ioctl(device, 0x4C05, bytes(232))
    except OSError:
        continue
    on, _, node = struct.unpack_from("QQQ", info)
    for number in (on, node):
        major, minor = number >> 8 & 0xFFF, number & 0xFF | number >> 12 & 0xFFF00
        if major:
            print("over %s %x %x" % (path[5:], major, minor))
"""

#: $1 and $2 are the probes above, the rest are the nodes of the candidates. Builtins where possible: a fork costs
#: 10 ms under emulation. Every section starts with ``==name``; without the last one the answer was cut short.
FACTS = (
    f"perl_loops='{PERL_LOOPS}' python_loops='{PYTHON_LOOPS}'"
    + r"""
export LC_ALL=C
perl_probe=$1 python_probe=$2 loops=
shift 2
say() { [ -r "$3" ] && { read -r line <"$3"; [ -n "$line" ] && echo "$1 $2 $line"; } 2>/dev/null; line=; }
echo ==sysfs
for d in /sys/class/block/*; do
    k=${d##*/}
    say dev "$k" "$d/dev"
    say size "$k" "$d/size"
    say ro "$k" "$d/ro"
    for f in "$d/wwid" "$d/device/wwid"; do say wwid "$k" "$f"; done
    for f in "$d/serial" "$d/device/serial"; do say serial "$k" "$f"; done
    say model "$k" "$d/device/model"
    say depth "$k" "$d/device/queue_depth"
    for f in "$d/device/firmware_rev" "$d/device/rev"; do say firmware "$k" "$f"; done
    say mduuid "$k" "$d/md/uuid"
    [ -r "$d/loop/backing_file" ] && say loop "$k" "$d/loop/backing_file" && loops="$loops /dev/$k"
    [ -d "$d/bcache" ] && echo "bcache $k"
    [ -e "$d/partition" ] && cd -P "$d/.." && echo "disk $k ${PWD##*/}"
    for f in "$d"/holders/*; do [ -L "$f" ] && echo "holder $k ${f##*/}"; done
    for f in "$d"/slaves/*; do [ -L "$f" ] && echo "slave $k ${f##*/}"; done
done
cd /
for f in /sys/fs/bcachefs/*/dev-*/block; do
    [ -L "$f" ] && cd -P "$f" && id=${f#/sys/fs/bcachefs/} && echo "bcachefs ${PWD##*/} ${id%%/*}"
done
cd /
for f in /sys/kernel/config/nvmet/subsystems/*/namespaces/*/device_path /sys/kernel/config/target/core/*/*/udev_path; do
    case $f in */nvmet/*) by=nvmet ;; *) by=target ;; esac
    [ -r "$f" ] && read -r line <"$f" && echo "export $by $line"
    [ -b "$line" ] && echo "exported $by $(stat -L -c '%t %T' "$line")"
    line=
done 2>/dev/null
python=$(command -v python3 || command -v /usr/libexec/platform-python)
if [ -z "$loops" ]; then :
elif command -v perl >/dev/null; then perl -e "$perl_loops" $loops
elif [ -n "$python" ]; then "$python" -I -S -c "$python_loops" $loops
fi
echo ==mounts
stat -L -c '%i %n' /proc/[0-9]*/ns/mnt 2>/dev/null | sort -u -k1,1 | {
    cat /proc/1/mountinfo /proc/self/mountinfo
    while read -r inode f; do cat "${f%/ns/mnt}/mountinfo"; done
} 2>/dev/null | grep -E '^[0-9]+ [0-9]+ [1-9]| - [^ ]+ /dev/' | cut -d ' ' -f 3- | sort -u
echo ==swaps
[ -r /proc/swaps ] && cat /proc/swaps
echo ==mdstat
[ -r /proc/mdstat ] && cat /proc/mdstat
echo ==btrfs
for f in /sys/fs/btrfs/*/devices/*; do [ -L "$f" ] && echo "$f"; done
echo ==zfs
if command -v zpool >/dev/null; then
    pools=$(timeout 20 zpool status -LP 2>/dev/null) || echo 'unchecked zpool status did not answer'
    printf '%s\n' "$pools" | grep -o '/dev/[^ ]*'
fi
echo ==writers
for p in /proc/[0-9]*; do
    for f in "$p"/fd/*; do
        [ -b "$f" ] || continue
        while read -r key flags; do [ "$key" = flags: ] && break; done <"$p/fdinfo/${f##*/}"
        case $flags in
        *[1256]) n=$(stat -L -c '%t %T' "$f") && read -r name <"$p/comm" && echo "$n ${p#/proc/} $name" ;;
        esac
    done
done 2>/dev/null
echo ==numbers
[ $# -gt 0 ] && stat -L -c '%n %t %T' "$@"
echo ==exclusive
if [ $# -gt 0 ]; then
    if command -v perl >/dev/null; then perl -e "$perl_probe" "$@"
    elif [ -n "$python" ]; then "$python" -I -S -c "$python_probe" "$@"
    else echo 'unchecked neither perl nor python3 is there, so exclusive openers hidden from sysfs were not looked for'
    fi
fi
echo ==signatures
if [ $# -eq 0 ]; then :
elif command -v wipefs >/dev/null; then
    for f; do
        wipefs --no-act --noheadings --output TYPE,UUID "$f" 2>/dev/null | while read -r kind; do echo "$f $kind"; done
    done
else echo 'unchecked wipefs is not there, so signatures are those that lsblk knows'
fi
echo ==end
"""
)

#: Each line of the answer is ``kind SP value``, ended by NUL. With IFS empty a parameter is not split; its
#: expansion is globbed and nothing else: no command substitution, no quote removal, no further expansion.
EXPAND = r"""
IFS=
for pattern; do
    printf 'pattern %s\0' "$pattern"
    if [ -e "$pattern" ] || [ -L "$pattern" ]; then set -f; else set +f; fi
    for path in $pattern; do
        if [ ! -e "$path" ] && [ ! -L "$path" ]; then continue; fi
        kname= disk=
        if [ -b "$path" ]; then
            n=$(stat -L -c '%t:%T' "$path")
            if cd -P "/sys/dev/block/$((0x${n%:*})):$((0x${n#*:}))"; then
                kname=${PWD##*/}
                [ -e partition ] && cd -P .. && disk=${PWD##*/}
            fi
            cd /
        fi
        printf 'path %s\0kname %s\0disk %s\0' "$path" "$kname" "$disk"
    done
done
printf 'end \0'
"""


class UnusablePattern(ValueError):
    """A pattern does not name drives; its text is one sentence for the user."""


class NothingMatches(UnusablePattern):
    """Nothing on the machine under test has a name like that."""


class NotABlockDevice(UnusablePattern):
    """The pattern names something else: a file, a character device, a link to nowhere."""


def survey(machine: Machine, candidates: Iterable[str] = ()) -> Topology:
    """All block devices of a machine and what uses them, as they are now.

    ``candidates`` are kernel names of devices that may be destroyed: only these, and other paths to them, are opened
    (read-only, exclusively, for a moment) and probed for signatures. Raises ``RigError`` if the answer cannot be
    understood.
    """
    candidates = frozenset(candidates)
    listed = machine.run(lsblk.ARGV, repeatable=True)
    topology = _surveyed(machine, listed, candidates, candidates)
    twins = {twin.kname for kname in candidates for twin in topology.twins(kname)} - candidates
    return _surveyed(machine, listed, candidates, candidates | twins) if twins else topology


def _surveyed(machine: Machine, listed: Completed, candidates: frozenset[str], opened: frozenset[str]) -> Topology:
    nodes = [f"/dev/{kname}" for kname in sorted(opened)]
    facts = machine.run(["sh", "-c", FACTS, "facts", PERL_PROBE, PYTHON_PROBE, *nodes], check=False, repeatable=True)
    try:
        # Names of drives may be any bytes; as escapes they would not be JSON any more.
        listing, said = (done.stdout.decode("utf-8", "surrogateescape") for done in (listed, facts))
        return topology_of(listing, said, candidates)
    except ValueError as problem:
        raise RigError(f"The block devices of {machine.name} cannot be listed: {problem}") from problem


def expand(machine: Machine, patterns: Sequence[str]) -> tuple[Match, ...]:
    """The block devices that patterns name on the machine under test, in the order written.

    Several links to one device within one pattern are one match, and so are a disk and its partitions when one
    glob names both (``/dev/sd*``). A device named by two patterns is two matches; ``safety`` refuses it.
    Raises ``NothingMatches`` or ``NotABlockDevice``, both ``ValueError``.
    """
    for pattern in patterns:
        if not pattern.startswith("/") or "\0" in pattern:
            raise UnusablePattern(f"{pattern!r} is not an absolute path; write for example /dev/{pattern or 'sdb'}.")
    answer = machine.run(["sh", "-c", EXPAND, "expand", *patterns], check=False, repeatable=True)
    words = [word.partition(" ") for word in answer.text.split("\0")[:-1]]
    if not words or words[-1][0] != "end":
        raise RigError(f"{machine.name} did not say which devices {', '.join(patterns)} are: {answer.errors.strip()}")
    found: dict[int, list[tuple[str, str, str]]] = {}
    values = iter((kind, value) for kind, _, value in words)
    for kind, value in values:
        if kind == "pattern":
            found[len(found)] = []
        elif kind == "path":
            found[len(found) - 1].append((value, next(values)[1], next(values)[1]))
    if len(found) != len(patterns):
        raise RigError(f"{machine.name} answered for {len(found)} of {len(patterns)} patterns.")
    return tuple(
        match for number, pattern in enumerate(patterns) for match in _matches(machine, pattern, found[number])
    )


def _matches(machine: Machine, pattern: str, found: Sequence[tuple[str, str, str]]) -> Iterable[Match]:
    if not found:
        raise NothingMatches(f"Nothing on {machine.name} matches {pattern!r}; `lsblk` there lists its drives.")
    seen: set[str] = set()
    disks = {_name(kname) for _, kname, _ in found}
    for path, kname, disk in found:
        if not kname:
            meant = "" if path == pattern else f", which {pattern!r} matches,"
            raise NotABlockDevice(f"{path!r}{meant} is not a block device of {machine.name}; name drives only.")
        match = Match(pattern, path, _name(kname))
        if match.kname not in seen and not (disk and _name(disk) in disks):
            yield match
        seen.add(match.kname)


def _name(sysfs_name: str) -> str:
    return sysfs_name.replace("!", "/")  # /dev/cciss/c0d0 is /sys/class/block/cciss!c0d0
