# Write a label: the first MiB of a device becomes what comes in, and zeroes behind it.
#
# Arguments: $1 the device.
# Input: the label's page, 4 KiB.
# Output: none; dd's report on standard error.
# Exit status: dd's.
# Needs dd of coreutils.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

{ cat && head -c 1044480 /dev/zero; } | dd of="$1" bs=1048576 count=1 iflag=fullblock oflag=direct conv=notrunc,fsync
