# What drives count of their own writes to flash, one drive after another. Logs of NVMe drives are read raw: the plugins of
# nvme-cli that print them differ between its versions, and know them by name only. A drive without the log of the Open
# Compute Project (C0h, which ends with a GUID) is asked for that of Intel and Solidigm (CAh).
#
# Arguments: of each drive its kernel name, as sysfs spells it, its path, and smartctl's option -d (`none`: not run).
# Output: of each drive `==NAME`, then of an NVMe drive lines of a log's number and its 512 bytes in hexadecimal digits, of
#   another one smartctl's JSON. A log that the drive refuses has no digits.
# Exit status: not used.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

while [ $# -gt 2 ]; do
    echo "==$1"
    if [ "$1" = "${1#nvme}" ]; then
        [ "$3" = none ] || timeout 20 smartctl --json=c -A -d "$3" "$2" </dev/null 2>/dev/null
        echo
        shift 3
        continue
    fi
    for log in c0 ca; do
        hex=$(timeout 20 nvme get-log "$2" --log-id=0x$log --log-len=512 --raw-binary </dev/null 2>/dev/null |
            od -An -v -tx1 | tr -d ' \n')
        echo "$log $hex"
        case $hex in *c5af1028eabff2a49c4f6f7cc914d5af) break ;; esac
    done
    shift 3
done
