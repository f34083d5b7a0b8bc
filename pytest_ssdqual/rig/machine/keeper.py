"""What keeps a process on the machine under test while the way to it may fail: three shell scripts and who calls them.

A *keeper* over there starts the process, detached from the connection, and reads a byte from a FIFO every few seconds.
When none has come for too long, or it is told to, it ends the process and everything that one started: gently to the
process itself (INT lets fio write its results), then TERM, then KILL to all. An *attachment* is what a connection
carries: it passes bytes on to the FIFO, and tells how the process ended. A connection may be lost and another made; the
process does not notice.

A process that *must finish* is never ended by its keeper: neither a word, nor silence, nor a signal to the keeper
reaches it. Its keeper only waits for it, holds the lock file that says so, and reports how it ended if an attachment is
left. It and its keeper get a clean environment, because CI runners end every process that carries their variables
(Jenkins: BUILD_ID, GitHub: RUNNER_TRACKING_ID).

Who belongs to a process is told by an environment variable, not by the process group: fio's workers call setsid() and
survive a signal to the group (fio 3.33 backend.c; killing fio's parent left them writing).

POSIX sh, util-linux' flock and setsid, and coreutils or busybox.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ssdqual.rig.machine.machine import MustFinish

#: Where it keeps what it needs, on tmpfs on every systemd distribution, so that nothing survives a boot.
DIRECTORY = "/run/pytest-ssdqual"
#: In a keeper's directory, the file that is locked while the keeper lives.
KEPT = "kept"
#: Of what the process writes to each of its streams, at most the last so many bytes are told.
TOLD_BYTES = 4 << 20

#: $1 the keeper's directory, $2 token, $3 seconds of silence allowed, $4 first signal (empty: the process must finish),
#: rest: the command. Descriptor 9 is a lock that is free again when the process has ended. Who belongs to it is looked
#: for twice: in the middle of an exec a process shows no environment. The directory is cleared away under another name:
#: whoever is attached may have words for it until the last moment, and rm would leave what has such a word in it (one
#: in 60 on a busy computer).
KEEPER = r"""
dir=$1 token=$2 limit=$3 gently=$4; shift 4
exec 3<>"$dir/beat"
members() { grep -lzsxF "PYTEST_SSDQUAL_TETHER=$token" /proc/[0-9]*/environ | cut -d/ -f3; }
over() { [ ! -e "/proc/$child/exe" ]; }
nobody() { [ -z "$(members)" ]; }
gone() { over && nobody && sleep 0.1 && nobody; }
await() { n=0; until "$1"; do [ "$n" -lt "$2" ] || return 1; sleep 0.2; n=$((n + 1)); done; }
end() {
    kill -s "$gently" "$child" 2>/dev/null; await over 50; gone && return
    kill -s TERM $(members) 2>/dev/null; await gone 25 && return
    kill -s KILL $(members) 2>/dev/null; await gone 25
}
heard() { [ -n "$(timeout "$limit" head -c 1 <&3 7>&-)" ]; }
[ "$gently" ] || trap '' HUP INT TERM
PYTEST_SSDQUAL_TETHER=$token setsid "$@" </dev/null >"$dir/out" 2>"$dir/err" 3<&- 7>&- 9>&- &
child=$!
if [ "$gently" ]; then
    (
        trap '' INT HUP
        while heard; do [ ! -e "$dir/end" ] || break; done
        [ -e "$dir/end" ] || true >"$dir/silent"
        end
    ) 9>&- &
    watcher=$!
    trap 'end' HUP INT TERM
fi
wait "$child"; status=$?
if [ "$gently" ]; then
    kill -s KILL "$watcher" 2>/dev/null; printf . >&3
    gone || end
fi
exec 8>&-
echo "$status" >"$dir/status.part"; mv "$dir/status.part" "$dir/status"
exec 9>&-
# Until somebody has heard how it ended. Nobody will if it was for silence; hardly anybody when who ended it has left.
[ -e "$dir/silent" ] || while [ ! -e "$dir/ack" ]; do
    [ ! -e "$dir/left" ] || limit=15
    heard || break
done
mv "$dir" "$dir.over" && rm -rf "$dir.over"
"""

#: $1 directory of keepers, $2 token, $3 seconds of silence allowed, $4 first signal, $5 what the end of the stream
#: means, $6 whether the first line is awaited, $7 the keeper, $8 and $9 the lock file of what must finish and what is
#: noted in it, rest: the command. Descriptor 7 is locked as long as the keeper lives. Keeper and process both inherit
#: descriptor 8, so that file is locked while either lives. Other runs that only ask for a lock have it for a moment
#: (hence --timeout).
START = r"""
base=$1 token=$2 limit=$3 gently=$4 eof=$5 first=$6 keeper=$7 lock=$8 note=$9; shift 9
dir=$base/tether-$token
mkdir -p -m 0700 "$base" || exit 1
if [ "$lock" ]; then
    exec 8>>"$lock" || exit 1
    flock --timeout 10 8 || { echo "$lock is locked by another process" >&2; exit 1; }
    printf '%s\n' "$note" >"$lock"
fi
mkdir -m 0700 "$dir" && mkfifo -m 0600 "$dir/beat" || exit 1
exec 7>"$dir/kept"; flock 7
exec 9>"$dir/lock"; flock 9
set -- sh -c "$keeper" keeper "$dir" "$token" "$limit" "$gently" "$@"
[ "$gently" ] || set -- env -i "PATH=$PATH" LC_ALL=C "$@"
setsid "$@" </dev/null >/dev/null 2>&1 &
exec 7>&- 8>&- 9>&-
set -- "$dir" "$eof" "$first"
"""

#: $1 the keeper's directory, $2 ``wait`` if others may come when this connection has ended, or ``end``, $3 not empty:
#: tell the first line of the process as soon as there is one. What comes in are words, a line each: ``b`` a heartbeat,
#: ``q`` end the process, ``a`` all was heard. What goes out: ``here``; ``said`` and the line; ``ended``, status and the
#: number of bytes of both streams, which follow; ``gone`` if there is no keeper any more.
ATTACH = r"""
dir=$1 eof=$2 first=$3
[ -p "$dir/beat" ] || { echo gone; exit 0; }
exec 4<>"$dir/beat" 5<&0
echo here
flock --shared "$dir/lock" true </dev/null 4<&- 5<&- &
waiter=$!
(
    while read -r word <&5; do
        case $word in q) true >"$dir/end" ;; a) true >"$dir/ack" ;; esac
        printf . >&4
    done
    [ "$eof" = wait ] || true >"$dir/end"
    [ ! -e "$dir/end" ] || true >"$dir/left"
    printf . >&4
    kill "$waiter"
) 2>/dev/null &
forwarder=$!
if [ "$first" ]; then
    until [ -s "$dir/out" ] || [ -e "$dir/status" ] || ! kill -0 "$waiter" 2>/dev/null; do sleep 0.1; done
    [ ! -s "$dir/out" ] || printf 'said %s\n' "$(head -n 1 "$dir/out")"
fi
wait "$waiter"
[ -d "$dir" ] || { echo gone; exit 0; }
[ -e "$dir/status" ] || exit 0
told() { n=$(wc -c <"$1"); [ "$n" -le TOLD_BYTES ] || n=TOLD_BYTES; echo $n; }
out=$(told "$dir/out") err=$(told "$dir/err")
echo ended $(cat "$dir/status") $out $err
tail -c "$out" "$dir/out"; tail -c "$err" "$dir/err"
wait "$forwarder"
""".replace("TOLD_BYTES", str(TOLD_BYTES))

#: Around an attachment on this computer: if we end without a word, it says for us that the process shall end. The
#: output is the attachment's alone, so that its end is seen when the connection ends: closed by exec, as dash keeps a
#: copy of what is redirected for the length of a command.
WILL = r"""
exec 3<&0 4>&1 >/dev/null
( exec 2>/dev/null 4>&-; cat <&3; echo q ) | ( exec >&4 3<&- 4>&- "$@" ) &
exec 3<&- 4>&-
wait "$!"
"""


@dataclass(frozen=True, slots=True)
class Keeper:
    """How one process is kept, as the argv lists that start it and that come back to it."""

    #: Of the process; not yet as root.
    argv: tuple[str, ...]
    #: How it is ended at first: ``INT``, ``TERM``; empty: it must finish, and is never ended.
    first_signal: str
    #: Silence after which it is ended.
    silence_s: float
    #: Whether another connection may come back to it; otherwise the end of the stream is its end.
    survives: bool
    #: Its first line is told as soon as it is there.
    announces: bool
    directory: str
    token: str
    #: Of what must finish.
    work: MustFinish | None = None

    @classmethod
    def of(
        cls,
        argv: Sequence[str],
        first_signal: str = "INT",
        *,
        silence_s: float,
        survives: bool = False,
        announces: bool = False,
        directory: str = DIRECTORY,
    ) -> Keeper:
        """With a token of its own."""
        return cls(tuple(argv), first_signal, silence_s, survives, announces, directory, secrets.token_hex(8))

    @classmethod
    def until_finished(
        cls, argv: Sequence[str], work: MustFinish, *, silence_s: float, directory: str = DIRECTORY
    ) -> Keeper:
        """Of a command that nothing of ours ends; ``silence_s`` is how long its outcome is kept for a listener."""
        return cls(tuple(argv), "", silence_s, True, False, directory, secrets.token_hex(8), work)

    @property
    def start(self) -> list[str]:
        """Starts it and attaches to it."""
        words = [self.directory, self.token, f"{self.silence_s:g}", self.first_signal, *self._manner, KEEPER]
        words += [self.work.lock, self.work.note] if self.work else ["", ""]
        return ["sh", "-c", START + ATTACH, "tether", *words, *self.argv]

    @property
    def attach(self) -> list[str]:
        """Comes back to it."""
        return ["sh", "-c", ATTACH, "tether", f"{self.directory}/tether-{self.token}", *self._manner]

    @property
    def _manner(self) -> list[str]:
        return ["wait" if self.survives else "end", "first" if self.announces else ""]
