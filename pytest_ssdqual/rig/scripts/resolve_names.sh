# The device numbers of what paths lead to.
#
# Arguments: $1... paths.
# Output: of each a record `MAJOR MINOR` in hexadecimal digits, or `-` if it leads to no block device, ended by NUL; at
#   last `end`.
# Exit status: not used; an answer without `end` was cut short.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

for path; do
    number=-
    [ -b "$path" ] && number=$(stat -L -c '%t %T' "$path")
    printf '%s\0' "${number:--}"
done
printf 'end\0'
