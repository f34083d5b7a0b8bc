# Wait until no sanitize is in process in an ATA drive.
#
# Arguments: $1 the drive, $2 seconds between two looks.
# Output: none.
# Exit status: 0.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

while hdparm --sanitize-status "$1" 2>&1 | grep -q SD2; do sleep "$2"; done
