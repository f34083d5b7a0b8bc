# Attach a connection to a keeper: pass words on to it, and tell how its process ended.
#
# Arguments: $1 the keeper's directory; $2 `wait` if others may come when this connection has ended, or `end`; $3 not
#   empty: tell the first line of the process as soon as there is one; $4 of each stream of the process, at most so many
#   bytes are told, the last ones.
# Input: words, a line each: `b` a heartbeat, `q` end the process, `a` all was heard.
# Output: `here`; `said` and the line; `ended`, status and the number of bytes of both streams, which follow; `gone` if
#   there is no keeper any more.
# Exit status: not used.
# Needs flock of util-linux.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

dir=$1 eof=$2 first=$3 most=$4
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
told() { n=$(wc -c <"$1"); [ "$n" -le "$most" ] || n=$most; echo "$n"; }
out=$(told "$dir/out") err=$(told "$dir/err")
echo "ended $(cat "$dir/status") $out $err"
tail -c "$out" "$dir/out"; tail -c "$err" "$dir/err"
wait "$forwarder"
