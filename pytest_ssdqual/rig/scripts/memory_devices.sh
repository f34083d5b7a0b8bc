# Memory devices for an array that shows md's own ceiling: of null_blk, or of brd where null_blk is missing. Those of
# null_blk keep what is written (memory_backed), as md reads its superblocks again; the copies cost less than a
# microsecond for each I/O. Those of brd copy, too, and complete at once.
#
# Arguments: $1 `up` or `down`; $2 a prefix of their names in configfs; for `up` also $3 their number, $4 the size of
#   each, MiB, and $5 the time until an I/O completes, nanoseconds.
# Output: of `up` the paths of the devices, a line each.
# Files: /run/PREFIX.brd says that this script loaded brd; without it brd is somebody else's, and left alone.
# Exit status: 0; 3 if there are no such devices, with the reason on standard error.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

home=/sys/kernel/config/nullb
mark=/run/$2.brd
unavailable() {
    echo "$1" >&2
    exit 3
}
down() {
    for d in "$home/$1"*; do
        [ -d "$d" ] || continue
        echo 0 >"$d/power" && rmdir "$d" || return 1
    done
    [ ! -e "$mark" ] || [ ! -d /sys/module/brd ] || rmmod brd || return 1
    rm -f "$mark"
}
brd() {
    [ "$wait" -eq 0 ] || unavailable "$1, and brd cannot delay I/O"
    [ ! -d /sys/module/brd ] || unavailable "$1, and brd is in use"
    : >"$mark" || unavailable "$1, and $mark cannot be written"
    if ! modprobe brd "rd_nr=$number" "rd_size=$((mib * 1024))" max_part=0 2>/dev/null; then
        rm -f "$mark"
        unavailable "$1, and no brd"
    fi
    i=0
    while [ "$i" -lt "$number" ]; do
        echo "/dev/ram$i"
        i=$((i + 1))
    done
    exit 0
}
if [ "$1" = down ]; then
    down "$2"
    exit
fi
prefix=$2 number=$3 mib=$4 wait=$5
free=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
[ "$free" -gt $((2 * number * mib)) ] || unavailable "only $free MiB of memory are free"
down "$prefix" || unavailable 'devices of an earlier run are in use'
modprobe null_blk nr_devices=0 2>/dev/null || [ -d /sys/module/null_blk ] || brd 'the kernel has no null_blk'
[ -d /sys/kernel/config ] || modprobe configfs 2>/dev/null
[ -d "$home" ] || mount -t configfs none /sys/kernel/config 2>/dev/null
[ -d "$home" ] || brd 'null_blk cannot be configured: configfs is missing'
i=0
while [ "$i" -lt "$number" ]; do
    d=$home/$prefix$i
    mkdir "$d" || unavailable 'null_blk takes no more devices'
    irqmode=0
    [ "$wait" -gt 0 ] && irqmode=2
    for each in "size $mib" 'memory_backed 1' 'queue_mode 2' "submit_queues $(nproc)" 'hw_queue_depth 1024' \
        "irqmode $irqmode" "completion_nsec $wait"; do
        echo "${each#* }" >"$d/${each%% *}" 2>/dev/null || unavailable "null_blk does not take ${each%% *}"
    done
    echo 1 >"$d/power" || unavailable 'null_blk made no device'
    read -r index <"$d/index"
    if [ -b "/dev/nullb$index" ]; then echo "/dev/nullb$index"; else echo "/dev/$prefix$i"; fi
    i=$((i + 1))
done
