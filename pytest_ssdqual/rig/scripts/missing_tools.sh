# Which commands the machine lacks.
#
# Arguments: $1... names of commands.
# Output: the names of those that are missing, a line each.
# Exit status: 0.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

for c; do command -v "$c" >/dev/null 2>&1 || echo "$c"; done
