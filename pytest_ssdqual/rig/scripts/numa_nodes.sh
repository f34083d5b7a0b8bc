# NUMA nodes of the machine under test, and where its drives sit; placement.sh is put in front of it.
#
# Arguments: those of placement.
# Output: a line `node NUMBER CPUS` of each node with CPUs, then what placement prints.
# Exit status: 0.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

for d in /sys/devices/system/node/node[0-9]*; do
    cpus=
    { read -r cpus <"$d/cpulist"; } 2>/dev/null
    [ -z "$cpus" ] || echo "node ${d##*/node} $cpus"
done
placement "$@"
exit 0
