# How many bytes of spots of a device are zero. Zeroes are counted, not what differs from them: a spot that cannot be
# read must not look like one that is zero.
#
# Arguments: $1 the device, $2 the bytes of a spot, $3... numbers of spots.
# Output: a number of bytes for each spot, a line each.
# Exit status: 0.
# Needs dd of coreutils.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

dev=$1 size=$2
shift 2
for at; do
    dd if="$dev" bs="$size" skip="$at" count=1 iflag=direct 2>/dev/null | tr -cd '\0' | wc -c
done
