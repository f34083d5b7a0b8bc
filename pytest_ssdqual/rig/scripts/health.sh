# SMART data of drives, one after another.
#
# Arguments: of each drive smartctl's option -d (`auto`: smartctl chooses), and its path.
# Output: of each drive smartctl's JSON in one line, and an empty line. The exit status of smartctl is in the JSON.
# Exit status: 127 without smartctl.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

command -v smartctl >/dev/null || exit 127
while [ $# -gt 1 ]; do
    smartctl --json=c -x -d "$1" "$2" </dev/null
    echo
    shift 2
done
