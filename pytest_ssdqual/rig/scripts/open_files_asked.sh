# Answer each line with the processes that have drives open; open_files.sh is put in front of it.
#
# Arguments: those of open_files.sh.
# Input: a line, its text does not matter, for each question.
# Output: one line: `open`, and what open_files.sh prints, each after a tab.
# Exit status: 0 when its input ends.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

export LC_ALL=C
while read -r _; do
    opened "$@" | awk 'BEGIN { printf "open" } { gsub(/\t/, " "); printf "\t%s", $0 } END { print "" }'
done
