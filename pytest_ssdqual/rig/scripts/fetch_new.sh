# What was written to a file since it was read last, packed. What was read then gives its memory back: /run is a tmpfs,
# and four hours of documents of 24 drives side by side are 1 to 2 GB. fio writes at the position it has come to (its
# file is not opened for appending), so a hole changes nothing for it; where there is no fallocate, or no hole can be
# punched, the file just stays.
#
# Arguments: $1 the file, $2 the bytes that were read before.
# Output: gzip.
# Exit status: gzip's.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

fallocate --punch-hole --offset 0 --length "$2" "$1" 2>/dev/null
tail -c "+$(($2 + 1))" "$1" | gzip -1 -c
