# Answer lines of names with what the kernel has counted. All of it is built into the shell, so nothing is started
# however often it is asked.
#
# Arguments: none.
# Input: kernel names of block devices, a line for each question.
# Output: of each name the first line of /sys/class/block/NAME/stat, empty if there is none.
# Exit status: 0 when its input ends.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

set -f
while read -r names; do
    for name in $names; do
        s=
        read -r s <"/sys/class/block/$name/stat"
        echo "$s"
    done 2>/dev/null
done
