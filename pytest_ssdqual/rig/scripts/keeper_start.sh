# Start a keeper and its process; the text of keeper_attach.sh follows this one, and attaches to it.
#
# Arguments: $1 the directory of keepers, $2 token, $3 seconds of silence allowed, $4 the first signal (empty: the
#   process must finish), $5 to $7 what keeper_attach.sh has as $2 to $4, $8 the text of keeper.sh, $9 and $10 the lock
#   files of what must finish, with blanks between them, and what is noted in them (or nothing), $11... the command.
# Descriptors: 7 is locked as long as the keeper lives. Keeper and process both inherit 8, so the lock files of what must
#   finish are locked while either lives: they are links to one file. The run holds the leases of these names, and no such
#   work went on when it took them, so nobody holds the files that are replaced. Other runs that only ask for a lock have it for a moment (hence --timeout).
# Output: none.
# Exit status: 1 if nothing was started, with the reason on standard error.
# Needs flock and setsid of util-linux.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

base=$1 token=$2 limit=$3 gently=$4 eof=$5 first=$6 most=$7 keeper=$8 locks=$9 note=${10}; shift 10
lock=${locks%% *}
dir=$base/tether-$token
# shellcheck disable=SC2174  # the only directory that may be missing
mkdir -p -m 0700 "$base" || exit 1
if [ "$lock" ]; then
    exec 8>>"$lock" || exit 1
    flock --timeout 10 8 || { echo "$lock is locked by another process" >&2; exit 1; }
    printf '%s\n' "$note" >"$lock"
    for other in $locks; do
        [ "$other" -ef "$lock" ] || ln -f "$lock" "$other" || exit 1
    done
fi
mkdir -m 0700 "$dir" && mkfifo -m 0600 "$dir/beat" || exit 1
# A full file system would store no line of the process, and the caller would wait for the first one in vain.
printf '%65536s' '' 2>/dev/null >"$dir/room" || {
    rm -rf "$dir"
    echo "no space is left in $base of this machine, so ${1##*/} was not started" >&2
    exit 1
}
rm "$dir/room"
exec 7>"$dir/kept"; flock 7
exec 9>"$dir/lock"; flock 9
set -- sh -c "$keeper" keeper "$dir" "$token" "$limit" "$gently" "$@"
[ "$gently" ] || set -- env -i "PATH=$PATH" LC_ALL=C "$@"
setsid "$@" </dev/null >/dev/null 2>&1 &
exec 7>&- 8>&- 9>&-
set -- "$dir" "$eof" "$first" "$most"
