# What the machine is: kernel, hardware and tools, for the evidence. How fast processors may be, and whether links may
# sleep, is in latencies of microseconds.
#
# Arguments: none.
# Output: lines `KEY VALUE`; what is not there (a tool, a clock that nobody governs) gives no line.
# Exit status: not used.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

export LC_ALL=C
sys=${sys:-/sys}
printf 'hostname %s\n' "$(uname -n)"
printf 'kernel %s\n' "$(uname -srvm)"
# shellcheck disable=SC1091  # a file of the machine under test
[ -r /etc/os-release ] && (. /etc/os-release; printf 'os %s\n' "$PRETTY_NAME")
[ -s /etc/machine-id ] && printf 'machine_id %s\n' "$(cat /etc/machine-id)"
echo "boot_id $(cat /proc/sys/kernel/random/boot_id)"
sed -n 's/^model name[^:]*: /cpu /p' /proc/cpuinfo | head -n 1
echo "cpus $(nproc)"
cat "$sys"/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor 2>/dev/null | sort -u | paste -s -d ' ' |
    sed -n 's/^./governor &/p'
sed -n 's/^0/turbo on/p; s/^1/turbo off/p' "$sys/devices/system/cpu/intel_pstate/no_turbo" 2>/dev/null ||
    sed -n 's/^1/turbo on/p; s/^0/turbo off/p' "$sys/devices/system/cpu/cpufreq/boost" 2>/dev/null
sed -n 's/^1/smt on/p; s/^0/smt off/p' "$sys/devices/system/cpu/smt/active" 2>/dev/null
sed -n 's/.*\[\(.*\)\].*/pcie_aspm \1/p' "$sys/module/pcie_aspm/parameters/policy" 2>/dev/null
sed -n 's/^MemTotal: *\([0-9]*\) kB/memory_kib \1/p' /proc/meminfo
fio --version 2>/dev/null | sed 's/^fio-/fio /'
mdadm --version 2>&1 | sed -n 's/^mdadm - /mdadm /p'
smartctl --version 2>/dev/null | sed -n '1s/^smartctl /smartctl /p'
hdparm -V 2>/dev/null | sed -n 's/^hdparm v/hdparm /p'
nvme version 2>/dev/null | sed -n '1s/^nvme version /nvme /p'
lsblk --version 2>/dev/null | sed 's/^lsblk from util-linux /util-linux /'
