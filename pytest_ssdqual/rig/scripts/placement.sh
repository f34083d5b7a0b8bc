# Functions for environment.sh and numa_nodes.sh: where drives sit in their host.
#
# A controller is the drive's own PCI device for NVMe and virtio, else the host bus adapter.
#
# Arguments: of placement those of environment.sh from $6 on, of which the names are used; of interrupts a PCI device in
#   sysfs.
# Output: a section `==placement NAME` of each drive, with lines `scheduler`, `nr_requests`, `write_cache`,
#   `numa_node`, and `interrupt CPUS` for each interrupt of its controller; what sysfs does not say is left out. Then `==`.
# Exit status: not used.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

placement() {
    while [ $# -gt 2 ]; do
        echo "==placement $1"
        for f in scheduler nr_requests write_cache; do
            line=
            { read -r line <"/sys/block/$1/queue/$f"; } 2>/dev/null
            [ -z "$line" ] || echo "$f $line"
        done
        pci=/sys/block/$1/device
        # An NVMe namespace has a controller or, above several, a subsystem in between.
        for each in "$pci/device" "$pci"/nvme[0-9]*/device; do
            if [ -e "$each/irq" ]; then pci=$each; fi
        done
        pci=$(cd -P "$pci" 2>/dev/null && pwd)
        while [ -n "$pci" ] && [ ! -e "$pci/irq" ]; do pci=${pci%/*}; done
        [ -z "$pci" ] || interrupts "$pci"
        shift 3
    done
    echo '=='
}
interrupts() {
    node=
    { read -r node <"$1/numa_node"; } 2>/dev/null
    [ -z "$node" ] || echo "numa_node $node"
    # A device with message-signalled interrupts does not use the line in its file irq.
    set -- "$1" "$1"/msi_irqs/[0-9]*
    if [ ! -e "$2" ]; then
        { read -r number <"$1/irq"; } 2>/dev/null
        set -- "$1" "/$number"
    fi
    shift
    for each in "$@"; do
        cpus=
        { read -r cpus <"/proc/irq/${each##*/}/effective_affinity_list"; } 2>/dev/null
        [ -z "$cpus" ] || echo "interrupt $cpus"
    done
}
