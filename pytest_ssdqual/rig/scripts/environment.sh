# A look at the machine, just before or just after a fio process; kernel_log.sh, placement.sh and open_files.sh are put in
# front of it. Counters are read nearest to fio, what takes time (SMART data) farthest from it. Drives are asked one after another:
# some shells write line by line, and answers of several at once would get mixed. One that does not answer in time has an
# unknown temperature; without a limit of its own it would use up that of the reading, which is an error for all drives.
#
# A namespace of an NVMe subsystem with several controllers is a head (nvme0n1) above hidden paths (nvme0c1n1), and
# kernels before 6.4 count on the paths only. Where hwmon has a threshold it is temp1_max.
#
# Arguments: $1 the text of kernel_log.awk; $2 `before` or `after`; $3 the array's kernel name or `-`; $4 where the log
#   ended at the earlier look (`new`: there was none, `-`: it could not be read); $5 the names found then; of each drive
#   its kernel name, as sysfs spells it, its path, and smartctl's option -d (`none`: smartctl is not run).
# smartctl before 7.4 has no self-tests of NVMe; nvme-cli would ask drives that have none, which makes an entry in the
# error log of some.
#
# Output: sections `==warmth NAME`, `==selftest NAME` (NVMe), `==placement NAME` (before), `==names`, `==kernel`,
#   `==opened`, each ended by `==`; lines `clock`, and FILE:LINE of counters; `==end`.
# Exit status: not used; an answer without `==end` was cut short.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

export LC_ALL=C
# shellcheck disable=SC2034  # kernel_log.sh reads pick and since
pick=$1 when=$2 array=$3 since=$4 names=$5
shift 5
counters() {
    read -r up rest </proc/uptime
    now=$(date +%s.%N)
    read -r later rest </proc/uptime
    echo "clock $up $now $later"
    set -- /proc/stat /proc/pressure/cpu /sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_total_time_ms "$@"
    grep -sH '' "$@" | grep -v '^/proc/stat:[^c]'
}
warmth() {
    tool=smartctl
    command -v nvme >/dev/null && tool=nvme
    while [ $# -gt 2 ]; do
        echo "==warmth $1"
        if [ "$tool" = nvme ] && [ "$1" != "${1#nvme}" ]; then
            timeout 20 nvme smart-log -o json "$2" </dev/null 2>/dev/null
            echo
            echo "==selftest $1"
            [ "$3" = none ] || timeout 20 smartctl --json=c -l selftest -d "$3" "$2" </dev/null 2>/dev/null
        elif [ "$3" != none ]; then
            timeout 20 smartctl --json=c -i -c -A -l scttempsts -l selftest -l devstat,1 -l error -d "$3" "$2" </dev/null 2>/dev/null
        fi
        echo
        shift 3
    done
    echo '=='
}
files() {
    m=/sys/block/$array/md
    if [ "$array" != - ]; then
        echo "/sys/block/$array/stat /sys/block/$array/diskseq /sys/block/$array/queue/iostats"
        echo "$m/chunk_size $m/bitmap/location $m/group_thread_cnt"
        for t in /proc/[0-9]*/comm; do
            { read -r name <"$t"; } 2>/dev/null || continue
            case $name in
                "${array}_raid"*) echo "${t%comm}stat" ;;
                # Workers of RAID 5 and 6, in the pool of all unbound work; by its end the name has what they did last.
                kworker/u*) [ -e "$m/group_thread_cnt" ] && echo "${t%comm}stat" ;;
            esac
        done
    fi
    while [ $# -gt 2 ]; do
        # shellcheck disable=SC2125  # patterns, which are expanded where counters is called
        d=/sys/block/$1 p=/sys/block/${1%n*}c[0-9]*n${1##*n}
        echo "$d/stat $d/diskseq $d/queue/iostats $p/stat $d/device/io[et]*_cnt"
        echo "$d/command_*_count $d/diag/command_*_count $d/diag/io_errors"
        for c in "$d/device" "$d/device/nvme[0-9]*"; do
            echo "$c/device/current_link_* $c/device/max_link_* $c/hwmon*/temp1_max $c/hwmon/hwmon*/temp1_max"
            echo "$c/reset_count $c/diag/reset_count $c/device/aer_dev_correctable $c/device/../aer_dev_correctable"
        done
        shift 3
    done
}
users() {
    echo '==opened'
    staying "$@"
    echo '=='
}
if [ "$when" = before ]; then
    users "$@"
    warmth "$@"
    placement "$@"
    echo '==names'
    names "$@"
    echo '=='
    kernel
fi
# shellcheck disable=SC2046  # words, which are expanded
counters $(files "$@")
if [ "$when" = after ]; then
    names="$names $(names "$@")"
    kernel
    users "$@"
    warmth "$@"
fi
echo '==end'
