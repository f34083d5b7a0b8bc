# SMART data of drives, one after another.
#
# Arguments: $1... paths of drives.
# Output: of each drive smartctl's JSON in one line, and an empty line. The exit status of smartctl is in the JSON.
# Exit status: 127 without smartctl.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

command -v smartctl >/dev/null || exit 127
for drive; do smartctl --json=c -x "$drive" </dev/null; echo; done
