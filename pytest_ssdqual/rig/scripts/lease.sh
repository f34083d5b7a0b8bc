# Hold a lease, whose locks this process has already: note the holder in each lock file, say so, and live until the
# tether is cut. Work that must finish on one of the drives, begun by a run that has ended since, is a conflict like any
# other holder.
#
# Arguments: $1 what the name of the second lock file of a drive has before `.lock`, $2 the note, $3... the lock files.
# Output: `held`.
# Exit status: 75 (lease.CONFLICT) if such work goes on; otherwise that of the signal that ends it.
# Needs flock of util-linux.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

unfinished=$1 who=$2
shift 2
for f; do
    printf '%s\n' "$who" >"$f"
    g=${f%.lock}$unfinished.lock
    [ ! -e "$g" ] || flock --shared --nonblock --conflict-exit-code 75 "$g" true || exit
done
echo held
exec sleep 2147483647
