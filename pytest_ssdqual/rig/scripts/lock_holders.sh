# Which locks are held by other processes. They are asked for, not taken: several who ask at once can have a shared
# lock, but not while the drive is held.
#
# Arguments: $1 what the name of the second lock file of a drive has before `.lock`: the lock of work that must finish;
#   $2... the first lock file of each drive, or a directory: all second lock files in it.
# Output: of each lock that is held a line `FILE TAB AGE TAB NOTE`: the argument (of a directory, the lock file), the
#   seconds since the holder wrote into the file, and the first 2000 bytes of what it wrote, without tabs and newlines.
# Exit status: 0. Whoever takes a lease is told what else may be wrong with a file.
# Needs flock of util-linux. 75 is lease.CONFLICT.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

unfinished=$1
shift
report() {
    [ -f "$2" ] || return 0
    flock --shared --nonblock --conflict-exit-code 75 "$2" true
    [ $? -eq 75 ] || return 0
    age=$(($(date +%s) - $(stat -c %Y "$2")))
    printf '%s\t%s\t%s\n' "$1" "$age" "$(head -c 2000 "$2" | tr '\n\t' '  ')"
}
for f; do
    if [ -d "$f" ]; then
        for g in "$f"/*"$unfinished".lock; do report "$g" "$g"; done
    else
        report "$f" "$f"
        report "$f" "${f%.lock}$unfinished.lock"
    fi
done
