# Erase the md superblock of an array from its members. It is looked for again afterwards: mdadm writes through the page
# cache and does not notice that a drive took nothing (seen with mdadm 4.2, and a drive that had turned read-only).
#
# Arguments: $1 the array's UUID, as mdadm --export spells it; $2... devices.
# Output: the devices that did not bear that superblock, and those that bear it still, a line each.
# Exit status: 0.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

uuid=$1
shift
ours() { mdadm --examine --export "$1" 2>/dev/null | grep -qxF "MD_UUID=$uuid"; }
for d; do
    if ours "$d" && mdadm --zero-superblock "$d" 2>/dev/null && sync "$d" && ! ours "$d"; then :; else echo "$d"; fi
done
