# Keep a process: start it, end it on a word or after silence, and tell how it ended. See supervisor.py.
#
# Who belongs to the process is looked for twice: in the middle of an exec a process shows no environment. The directory
# is cleared away under another name: whoever is attached may have words for it until the last moment, and rm would
# leave what has such a word in it (one in 60 on a busy computer).
#
# A fio that says that a worker was killed is ended with the next sign of life. Without that it goes on for hours with a
# load that nobody asked for, or waits for the worker for ever (2 of 72 fio 3.33 whose worker was killed).
#
# Arguments: $1 the keeper's directory, $2 its token, $3 seconds of silence allowed, $4 the first signal (empty: the
#   process must finish), $5... the command.
# Files: in the directory, FIFO `beat` (a byte is a sign of life), `end`, `ack` and `left` (words of keeper_attach.sh),
#   `out`, `err` and `status` of the process, `silent` if it was ended for silence.
# Descriptors: 7 and 8 see keeper_start.sh; 9 is a lock that is free again when the process has ended.
# Output: none.
# Exit status: not used.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

dir=$1 token=$2 limit=$3 gently=$4; shift 4
exec 3<>"$dir/beat"
members() { grep -lzsxF "PYTEST_SSDQUAL_TETHER=$token" /proc/[0-9]*/environ | cut -d/ -f3; }
over() { [ ! -e "/proc/$child/exe" ]; }
nobody() { [ -z "$(members)" ]; }
gone() { over && nobody && sleep 0.1 && nobody; }
await() { n=0; until "$1"; do [ "$n" -lt "$2" ] || return 1; sleep 0.2; n=$((n + 1)); done; }
end() {
    kill -s "$gently" "$child" 2>/dev/null; await over 50; gone && return
    # shellcheck disable=SC2046  # one process or several
    kill -s TERM $(members) 2>/dev/null; await gone 25 && return
    # shellcheck disable=SC2046
    kill -s KILL $(members) 2>/dev/null; await gone 25
}
lost_worker() { [ -s "$dir/err" ] && grep -q 'got signal=' "$dir/err"; }
heard() { [ -n "$(timeout "$limit" head -c 1 <&3 7>&-)" ]; }
[ "$gently" ] || trap '' HUP INT TERM
PYTEST_SSDQUAL_TETHER=$token setsid "$@" </dev/null >"$dir/out" 2>"$dir/err" 3<&- 7>&- 9>&- &
child=$!
if [ "$gently" ]; then
    (
        trap '' INT HUP
        while heard; do [ ! -e "$dir/end" ] || break; ! lost_worker || break; done
        [ -e "$dir/end" ] || lost_worker || true >"$dir/silent"
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
