# What shows that a hypervisor made a drive: the buses on its way, and the vendor of its INQUIRY data.
#
# Arguments: kernel names of drives, as sysfs spells them.
# Output: of each `NAME PATH VENDOR`, the path of its device in sysfs, and its vendor, which may have blanks or be missing.
# Exit status: not used.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

export LC_ALL=C
sys=${sys:-/sys}
for name; do
    d=$sys/class/block/$name/device vendor=''
    { read -r vendor <"$d/vendor"; } 2>/dev/null
    echo "$name $(readlink -f "$d") $vendor"
done
