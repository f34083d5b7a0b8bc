# A part of a device, packed.
#
# Arguments: $1 the device, $2 the offset, $3 how much, both in bytes.
# Output: gzip; of less than was asked for if it cannot be read.
# Exit status: gzip's.
# Needs dd of coreutils.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

dd if="$1" bs=65536 iflag=direct,skip_bytes,count_bytes skip="$2" count="$3" 2>/dev/null | gzip -1 -c
