# Which commands the machine lacks.
#
# Arguments: $1... names of commands.
# Output: the names of those that are missing, a line each.
# Exit status: 0.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

for c; do
    command -v "$c" && continue
    # Python 3 runs what perl does, also the one that RHEL 8 keeps for its own tools.
    [ "$c" = perl ] && { command -v python3 || command -v /usr/libexec/platform-python; } && continue
    echo "$c" >&3
done 3>&1 >/dev/null 2>&1
