# Remove what killed runs left in the directory of run files. Locks of drives stay: a run that waits for one has it
# open. What is as young as a minute may be in the making, before its lock is held.
#
# Arguments: $1 the directory.
# Output: the names of what was removed, a line each.
# Exit status: 0.
# Needs flock of util-linux, find with -mmin.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

cd "$1" 2>/dev/null || exit 0
# shellcheck disable=SC2016  # a script of its own
remove='for file; do rm "$file" 2>/dev/null && echo "$file"; done'
is_old() { [ -n "$(find "$1" -maxdepth 0 -mmin +1 2>/dev/null)" ]; }
# shellcheck disable=SC2015  # each of them is a condition
for lock in run-*.lock; do
    [ -f "$lock" ] && [ ! -L "$lock" ] && is_old "$lock" || continue
    token=${lock#run-} token=${token%.lock}
    # shellcheck disable=SC2035  # behind the name of a script there are no options
    flock --nonblock "$lock" sh -c "$remove" remove *-"$token"-* "$lock"
done
# shellcheck disable=SC2015
for keeper in tether-*; do
    [ -d "$keeper" ] && [ ! -L "$keeper" ] && is_old "$keeper" || continue
    [ ! -e "$keeper/kept" ] || flock --nonblock "$keeper/kept" true || continue
    rm -rf "$keeper" && echo "$keeper"
done
exit 0
