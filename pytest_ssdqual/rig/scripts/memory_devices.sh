# Memory devices for an array that shows md's own ceiling: of null_blk, or of brd where null_blk is missing. Those of
# null_blk keep what is written (memory_backed), as md reads its superblocks again; the copies cost less than a
# microsecond for each I/O. Those of brd copy, too, and complete at once.
#
# Each run has devices of its own, by its token. `up` also removes those of runs that are no longer alive, and stops the
# arrays on them, since a killed run left both.
#
# Arguments: $1 `up` or `down`; $2 the beginning of the names of all such devices in configfs; $3 the run's token; $4 the
#   directory of run files, where each run that is alive has a lock; for `up` also $5 the number of devices and $6 the
#   size of each, MiB.
# Output: of `up` the paths of the devices, a line each.
# Files: /run/NAME.brd has the token of the run that loaded brd, and the inode of the loaded module. Without it, or with
#   another inode, brd is somebody else's, and left alone. If the run was killed before it wrote the inode, nothing shows
#   who loaded brd, so that is left alone, too.
# Exit status: 0; 3 if there are no such devices, with the reason on standard error.
# Needs flock of util-linux.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

home=/sys/kernel/config/nullb family=$2 own=$3 files=$4
mark=/run/$family.brd
unavailable() {
    echo "$1" >&2
    exit 3
}
is_alive() { [ -e "$files/run-$1.lock" ] && ! flock --nonblock "$files/run-$1.lock" true; }
stop_arrays() {
    for md in "/sys/block/$1/holders/md"*; do
        [ ! -e "$md" ] || mdadm --stop "/dev/${md##*/}" >/dev/null 2>&1
    done
}
# The kernel's name of a device, by its directory: the directory's own name, or of older kernels its number. A device
# without power has the number 0, which may be the number of a device of another program.
named() {
    if [ -d "/sys/block/${1##*/}" ]; then echo "${1##*/}"; return; fi
    read -r power <"$1/power" && [ "$power" = 1 ] && read -r index <"$1/index" && echo "nullb$index"
}
remove() {
    ! name=$(named "$1") || stop_arrays "$name"
    echo 0 >"$1/power" && rmdir "$1"
}
loaded() { stat -c %i /sys/module/brd 2>/dev/null; }
remove_brd() {
    { read -r owner inode <"$mark"; } 2>/dev/null || return 0
    [ "$owner" = "$own" ] || ! is_alive "$owner" || return 0
    if [ "$inode" = "$(loaded)" ]; then
        for ram in /sys/block/ram*; do stop_arrays "${ram##*/}"; done
        [ ! -d /sys/module/brd ] || rmmod brd || return 1
    fi
    rm -f "$mark"
}
remove_dead() {
    for d in "$home/$family"*; do
        token=${d##*/"$family"} token=${token%%n*}
        [ ! -d "$d" ] || [ "$token" = "$own" ] || is_alive "$token" || remove "$d"
    done 2>/dev/null
}
down() {
    for d in "$home/$family${own}n"*; do
        [ ! -d "$d" ] || remove "$d" || return 1
    done
    remove_brd
}
brd() {
    [ ! -d /sys/module/brd ] || unavailable "$1, and brd is in use"
    echo "$own -" >"$mark" || unavailable "$1, and $mark cannot be written"
    if ! modprobe brd "rd_nr=$number" "rd_size=$((mib * 1024))" max_part=0 2>/dev/null; then
        rm -f "$mark"
        unavailable "$1, and no brd"
    fi
    echo "$own $(loaded)" >"$mark"
    i=0
    while [ "$i" -lt "$number" ]; do
        echo "/dev/ram$i"
        i=$((i + 1))
    done
    exit 0
}
# One run at a time: two would remove the same devices, or both load brd.
exec 9>"$files/memory-devices.lock" || exit 3
flock --timeout 60 9 || unavailable 'another run makes such devices'
if [ "$1" = down ]; then
    down
    exit
fi
number=$5 mib=$6
remove_dead
down || unavailable 'devices of an earlier measurement are in use'
free=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
[ "$free" -gt $((2 * number * mib)) ] || unavailable "only $free MiB of memory are free"
modprobe null_blk nr_devices=0 2>/dev/null || [ -d /sys/module/null_blk ] || brd 'the kernel has no null_blk'
[ -d /sys/kernel/config ] || modprobe configfs 2>/dev/null
[ -d "$home" ] || mount -t configfs none /sys/kernel/config 2>/dev/null
[ -d "$home" ] || brd 'null_blk cannot be configured: configfs is missing'
i=0
while [ "$i" -lt "$number" ]; do
    d=$home/$family${own}n$i
    mkdir "$d" || unavailable 'null_blk takes no more devices'
    for each in "size $mib" 'memory_backed 1' 'queue_mode 2' "submit_queues $(nproc)" 'hw_queue_depth 1024' \
        'irqmode 0'; do
        echo "${each#* }" >"$d/${each%% *}" 2>/dev/null || unavailable "null_blk does not take ${each%% *}"
    done
    echo 1 >"$d/power" || unavailable 'null_blk made no device'
    made=$(named "$d") || unavailable 'null_blk made no device'
    echo "/dev/$made"
    i=$((i + 1))
done
