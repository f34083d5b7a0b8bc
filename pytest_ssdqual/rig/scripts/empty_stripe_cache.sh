# Empty the stripe cache of an array, and give it its size back. One command, so that a lost connection leaves neither.
#
# Arguments: $1 the array's kernel name; $2 the fewest stripes that md keeps.
# Output: none.
# Exit status: 0; 1 if the cache does not have its former size afterwards, with the reason on standard error.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

trap '' HUP INT TERM
size=/sys/block/$1/md/stripe_cache_size now=
read -r was <"$size" || exit 1
emptied=1
if echo "$2" >"$size"; then emptied=0; fi
echo "$was" >"$size"
read -r now <"$size"
[ "$now" = "$was" ] || { echo "the stripe cache has $now stripes, not the $was that it had" >&2; exit 1; }
exit $emptied
