# Wait until no sanitize is in progress in an NVMe drive, or its log cannot be read any more. SSTAT is in byte 2 of the
# log; 2 in its last three bits is a sanitize in progress (NVM Express Base Specification 2.0, Sanitize Status).
#
# Arguments: $1 the drive, $2 seconds between two looks, $3... the options of nvme get-log that give the whole log raw.
# Output: none.
# Exit status: 0.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

device=$1 pause=$2
shift 2
while state=$(nvme get-log "$device" "$@" 2>/dev/null | od -A n -t u1 -j 2 -N 1)
    [ $((${state:-0} & 7)) -eq 2 ]
do sleep "$pause"; done
