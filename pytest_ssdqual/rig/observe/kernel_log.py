"""What the kernel says between two looks about an array, its drives, and what they hang on.

The rule of the module: what counts is found by its names, and the names are those of the directories in sysfs from a
drive up to the bus; none is guessed. A name counts where it stands alone: ``sda`` is not ``sdaa``, ``ata3.00`` not
``ata3.01``. Messages are told apart by the kernel's own numbers (``/dev/kmsg``, Documentation/ABI/testing/dev-kmsg), or
by their time stamps where only ``dmesg`` may be read; the log is a ring, so they cannot be counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.measured.environment import KernelLine, KernelLog

#: Of a line: a message with an address, a command and its sense data has 150 characters.
LINE_CHARACTERS = 240
#: What stands for the log's end before anything was read, and for a log that could not be read.
FIRST, UNREAD = "new", "-"
#: As sysfs spells devices; a ``+`` before it: above the controller, so other drives may hang on it, too.
NAME = re.compile(r"\+?[\w.:!/-]{1,64}", re.ASCII)
#: k and the number of the last message, or t and its time stamp.
MARK = re.compile(r"k\d{1,18}|t\d{1,12}\.\d{1,9}", re.ASCII)
SAID = re.compile(r"(?P<level>[0-7-]) (?P<s>\d{1,12}\.\d{6}) (?P<text>.*)", re.ASCII | re.DOTALL)

#: Functions of ``surroundings.SCRIPT``, which has set $array, $since (``FIRST`` or where the earlier look ended) and
#: $names. ``above``: the directories in between that are no devices (``nvme``, ``platform``) have no number; a root
#: bus is everybody's. libata's name of a drive is its port's with port multiplier plus device number, which are channel
#: and target of its SCSI address; mpt3sas calls itself by its driver and the host's number.
#: ``likely``: patterns of 64 drives take 160 µs a message in mawk, words 3 µs.
#: ``ring``: a read of /dev/kmsg is one message, and fails when the log was overtaken; the next one goes on behind.
SCRIPT = r"""
above() {
    p=$(readlink -f "$1" 2>/dev/null) shared='' address=0:0:0:0
    while [ "${p#/sys/devices/}" != "$p" ]; do
        n=${p##*/} p=${p%/*}
        case $n in
        pci????*:??) ;;
        *:[0-9a-f][0-9a-f]:[0-9a-f][0-9a-f].[0-7]) printf '%s\n' "$shared$n"; shared=+ ;;
        [0-9]*:*:*:*) printf '%s\n' "$shared$n"; address=$n ;;
        ata[0-9]*)
            target=${address#*:}
            channel=${target%%:*} target=${target#*:}
            printf '%s\n%s.%02d\n' "$n" "$n" $((channel + ${target%%:*}))
            ;;
        host[0-9]*)
            printf '%s\n' "$n"
            h=/sys/class/scsi_host/$n
            [ -r $h/unique_id ] && [ -r $h/proc_name ] && read -r number <$h/unique_id &&
                read -r driver <$h/proc_name && [ "${driver#mpt}" != "$driver" ] && printf '%s\n' "${driver}_cm$number"
            ;;
        *[!0-9.:-]*) [ "${n#*[0-9]}" = "$n" ] || printf '%s\n' "$shared$n" ;;
        esac
    done
}
names() {
    [ "$array" = - ] || echo "$array"
    while [ $# -gt 1 ]; do
        echo "$1"
        for each in /sys/block/${1%n*}c[0-9]*n${1##*n}; do
            [ ! -e "$each" ] || echo "${each##*/}"
        done
        above "/sys/block/$1/device"
        for each in "/sys/block/$1/device"/nvme[0-9]*; do
            n=${each##*/}
            case ${n#nvme} in *[!0-9]*) ;; *) above "$each" ;; esac
        done
        shift 2
    done
}
ring() {
    { for again in 1 2 3; do dd iflag=nonblock bs=8192; done </dev/kmsg; } 2>/dev/null
}
pick='
BEGIN {
    form = ENVIRON["form"]; fresh = ENVIRON["since"] == "new"; since = substr(ENVIRON["since"], 2) + 0
    sync = "^md: .* of RAID array " ENVIRON["array"] "$"
    words = split(ENVIRON["names"], name, " ")
    for (i = 1; i <= words; i++) {
        word = name[i]; shared = sub(/^[+]/, "", word)
        if (word in known) continue
        known[word] = 1
        start = word; sub(/[^A-Za-z0-9].*/, "", start); begins[start] = 1
        before = word ~ /^[0-9]/ ? "(^|[^A-Za-z0-9_.:])" : "(^|[^A-Za-z0-9_])"
        gsub(/[.]/, "[.]", word)
        pattern[shared] = pattern[shared] "|" before word
    }
    for (i in pattern) pattern[i] = "(" substr(pattern[i], 2) ")($|[^A-Za-z0-9.]|[.]($|[^0-9]))"
}
function anothers(text) {
    while (match(text, /[0-9a-f]+:[0-9a-f][0-9a-f]:[0-9a-f][0-9a-f][.][0-7]/)) {
        if (!(substr(text, RSTART, RLENGTH) in known)) return 1
        text = substr(text, RSTART + RLENGTH)
    }
    return 0
}
function likely(text,    parts, part) {
    parts = split(text, part, /[^A-Za-z0-9]+/)
    for (i = 1; i <= parts; i++) if (part[i] in begins) return 1
    return 0
}
function ours(text) {
    if (!likely(text)) return 0
    return (0 in pattern) && text ~ pattern[0] || (1 in pattern) && text ~ pattern[1] && !anothers(text)
}
form == "k" && /^[0-9]+,[0-9]+,[0-9]+,[^;]*;/ {
    text = substr($0, index($0, ";") + 1)
    split($0, head, ",")
    level = head[1] % 8; mark = head[2]; time = head[3] / 1000000
    missed = read ? mark + 0 != before_it + 1 : mark + 0 > since + 1
}
form == "t" && match($0, /^\[ *[0-9]+[.][0-9]+\](\[ *[TC][0-9]+\])? /) {
    text = substr($0, RLENGTH + 1)
    level = "-"; mark = $0
    sub(/^\[ */, "", mark); sub(/\].*/, "", mark)
    time = mark + 0
    missed = !read && time > since
}
mark == "" { next }
{
    read = 1; before_it = mark + 0; end = mark; mark = ""
    if (fresh || before_it <= since) next
    if (missed) lost = 1
    if (!ours(text)) next
    if (kept >= 40 && !(text ~ sync && kept < 80)) { more++; next }
    line[++kept] = sprintf("%s %.6f %s", level, time, substr(text, 1, 1000))
}
END {
    if (!read) exit
    printf "==kernel %s%s %d %d\n", form, end, more, lost
    for (i = 1; i <= kept; i++) print line[i]
}
'
kernel() {
    told=
    export array since names
    case $since in k* | new) told=$(ring | form=k awk "$pick" 2>/dev/null) ;; esac
    case $since in
    t* | new) [ -z "$told" ] && log=$(dmesg 2>/dev/null) &&
        told=$(printf '%s\n' "$log" | form=t awk "$pick" 2>/dev/null) ;;
    esac
    [ -z "$told" ] || printf '%s\n==\n' "$told"
}
"""


@dataclass(frozen=True, slots=True)
class Heard:
    """The kernel's log at one look, as far as it concerns the array and its drives."""

    #: Where it ended.
    mark: str
    #: Since the earlier look; empty at the first one.
    log: KernelLog


def parse(said: str, lines: Iterable[str]) -> Heard:
    """The section of an answer: the words of its first line, and its lines. ``ValueError`` if it is none."""
    mark, _, counts = said.partition(" ")
    more, _, lost = counts.partition(" ")
    if not MARK.fullmatch(mark) or not re.fullmatch(r"\d{1,18}", more, re.ASCII) or lost not in ("0", "1"):
        raise ValueError(f"{safe_text.line(said, 40)!r} tells nothing of the kernel's log")
    return Heard(mark, KernelLog(tuple(map(_line, lines)), int(more), lost == "1"))


def names(words: Iterable[str]) -> tuple[str, ...]:
    """What was named, each once, as messages spell it; sysfs has ``!`` for the slash of some controllers' names."""
    return tuple(dict.fromkeys(word.replace("!", "/") for word in words if NAME.fullmatch(word)))


def syncs(log: KernelLog, kname: str) -> tuple[str, ...]:
    """What md began to do with the array of this kernel name by itself: resyncs, checks, recoveries."""
    began = re.compile(rf"md: .* of RAID array {re.escape(kname)}")
    return tuple(each.describe() for each in log.lines if began.fullmatch(each.text))


def between(first: Heard | None, last: Heard | None) -> KernelLog | None:
    """What was said meanwhile; None if it could not be read at both looks."""
    return last.log if first and last else None


def parameters(first: Heard | None, known: Sequence[str], *, is_first: bool) -> list[str]:
    """What a look's script wants to know of the earlier one: where that ended, and whose messages count."""
    mark = FIRST if is_first else first.mark if first else UNREAD
    return [mark, " ".join(known)]


def _line(text: str) -> KernelLine:
    found = SAID.fullmatch(text)
    if not found:
        raise ValueError(f"{safe_text.line(text, 40)!r} is no line of the kernel's log")
    level = None if found["level"] == "-" else int(found["level"])
    return KernelLine(float(found["s"]), level, safe_text.line(found["text"], LINE_CHARACTERS))
