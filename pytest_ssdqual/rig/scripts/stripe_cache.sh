# Answer each line with the size of an array's stripe cache and the number of stripes in use. All of it is built into
# the shell, so nothing is started however often it is asked.
#
# Arguments: $1 the array's kernel name.
# Input: a line, its text does not matter, for each question.
# Output: `SIZE ACTIVE`; an empty line if the array has no stripe cache.
# Exit status: 0 when its input ends.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

md=/sys/block/$1/md
while read -r _; do
    size='' active=''
    { read -r size <"$md/stripe_cache_size" && read -r active <"$md/stripe_cache_active"; } 2>/dev/null
    echo "$size${active:+ $active}"
done
