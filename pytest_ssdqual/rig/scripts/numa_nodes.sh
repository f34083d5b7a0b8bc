# NUMA nodes of the machine under test, and the node of each drive's controller.
#
# Arguments: the kernel name of each drive, with `!` for `/`.
# Output: a line `node NUMBER CPUS` of each node with CPUs, a line `drive NAME NUMBER` of each drive whose node is known.
# Exit status: 0.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

for d in /sys/devices/system/node/node[0-9]*; do
    cpus=
    { read -r cpus <"$d/cpulist"; } 2>/dev/null
    [ -z "$cpus" ] || echo "node ${d##*/node} $cpus"
done
for name in "$@"; do
    # An NVMe namespace has a controller or, above several, a subsystem in between.
    for each in "/sys/block/$name/device" "/sys/block/$name"/device/nvme[0-9]*; do
        d=$(cd -P "$each" 2>/dev/null && pwd)
        while [ -n "$d" ] && [ ! -e "$d/numa_node" ]; do d=${d%/*}; done
        number=
        { read -r number <"$d/numa_node"; } 2>/dev/null
        # The kernel says -1 where it knows of no node.
        case $number in '' | -*) continue ;; esac
        echo "drive $name $number"
        break
    done
done
exit 0
