# What a file has from a byte on, packed.
#
# Arguments: $1 the file, $2 the bytes to leave out at its beginning.
# Output: gzip.
# Exit status: gzip's.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

tail -c "+$(($2 + 1))" "$1" | gzip -1 -c
