# Wait until drives answer a read. One that has just been discarded may not for a while, and whatever opens it hangs.
#
# A read that waits in the kernel cannot be ended: it stays behind, and ends when the drive answers.
#
# Arguments: $1 the seconds to wait at most; $2... paths of drives.
# Output: of each drive that has not answered a line `PATH REQUESTS`, with those in flight; at last `end SECONDS`.
# Exit status: 0.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

limit=$1 reads=''
shift
now() { read -r seconds _ </proc/uptime; seconds=${seconds%%.*}; }
now
began=$seconds
for drive; do
    # Keeps no stream of this script, which would not be over before the read.
    dd if="$drive" of=/dev/null bs=4096 count=1 iflag=direct </dev/null >/dev/null 2>&1 &
    reads="$reads$!:$drive
"
done
# A process that has ended and is not waited for yet has no program any more.
waiting() {
    printf %s "$reads" | while IFS=: read -r pid drive; do [ ! -e "/proc/$pid/exe" ] || printf '%s\n' "$drive"; done
}
pause=0.1
while silent=$(waiting); [ -n "$silent" ] && [ $((seconds - began)) -lt "$limit" ]; do
    sleep "$pause"
    [ $((seconds - began)) -lt 5 ] || pause=1
    now
done
printf '%s\n' "$silent" | while read -r drive; do
    [ -n "$drive" ] || continue
    flying=0
    { read -r _ _ _ _ _ _ _ _ flying _ <"/sys/class/block/${drive##*/}/stat"; } 2>/dev/null
    printf '%s %s\n' "$drive" "$flying"
done
echo "end $((seconds - began))"
