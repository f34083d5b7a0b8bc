# Wait until drives answer a read. One that has just been discarded may not for a while, and whatever opens it hangs.
#
# A read that waits in the kernel cannot be ended: it stays behind, and ends when the drive answers.
#
# Arguments: $1 the seconds to wait at most; $2... paths of drives.
# Output: of each drive that has not answered a line `PATH REQUESTS`, with those in flight, or `PATH unread` if it could
#   not be opened or there is no dd; at last `end SECONDS`.
# Exit status: 0.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

limit=$1 reads=''
shift
now() { read -r seconds _ </proc/uptime; seconds=${seconds%%.*}; }
now
began=$seconds
for drive; do
    # An error of a read is an answer, too. Not each dd of busybox has iflag=direct. The reader keeps no stream of this
    # script, which would not be over before the read.
    (
        exec >/dev/null 2>&1
        exec <"$drive" || exit
        dd bs=4096 count=1 iflag=direct || dd bs=4096 count=1 || command -v dd
    ) &
    reads="$reads$!:$drive
"
done
# A process that has ended and is not waited for yet has no program any more.
waiting() {
    printf %s "$reads" | while IFS=: read -r pid drive; do [ ! -e "/proc/$pid/exe" ] || printf '%s\n' "$drive"; done
}
pause=0.1
while [ -n "$(waiting)" ] && [ $((seconds - began)) -lt "$limit" ]; do
    sleep "$pause"
    [ $((seconds - began)) -lt 5 ] || pause=1
    now
done
set -f
IFS='
'
for read in $reads; do
    pid=${read%%:*} drive=${read#*:} flying=0
    if [ ! -e "/proc/$pid/exe" ]; then
        wait "$pid" || printf '%s unread\n' "$drive"
        continue
    fi
    { IFS=' ' read -r _ _ _ _ _ _ _ _ flying _ <"/sys/class/block/${drive##*/}/stat"; } 2>/dev/null
    printf '%s %s\n' "$drive" "$flying"
done
echo "end $((seconds - began))"
