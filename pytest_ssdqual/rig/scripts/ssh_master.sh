# Hold an ssh connection, on this computer, for as long as the run lives and ten seconds more: whoever speaks for the
# run when it is killed (will.sh) needs it.
#
# Arguments: $1... ssh and its options.
# Input: never written to; its end is the run's.
# Output: ssh's.
# Exit status: ssh's.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

exec 3<&0
"$@" </dev/null 3<&- & master=$!
( cat <&3 >/dev/null; sleep 10; kill "$master" ) 2>/dev/null &
exec 3<&-
wait "$master"
