# Write one generation of a pattern after the other, each flushed before the next begins (a stonewalled job starts when
# the one before it has ended), and note the last one whose process has ended. If fio fails, as when the power of the
# drive is cut, the last one is noted that was complete until then: its job wrote all bytes and has no error, a failed
# flush included. Those are fields 47 and 5 of fio's terse output, version 3.
#
# Arguments: $1 the file where to note it, $2 the first generation, $3 the end of them (itself not written), $4 how many
#   one process of fio writes, $5 the pattern as a format of printf, $6... fio and its options.
# Output: none.
# Exit status: 1 as soon as fio fails.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

note=$1 at=$2 end=$3 batch=$4 form=$5; shift 5
keep() { echo "$1" >"$note.part" && mv "$note.part" "$note"; }
for word; do
    case $word in --size=*) kib=$((${word#--size=} / 1024)) ;; esac
done
while [ "$at" -lt "$end" ]; do
    (
        n=$at
        while [ "$n" -lt "$((at + batch))" ]; do
            # shellcheck disable=SC2059  # the format is the parameter
            set -- "$@" "--name=pass-$n" --stonewall "--verify_pattern=$(printf "$form" "$n")%o"
            n=$((n + 1))
        done
        exec "$@" >"$note.fio"
    ) || {
        complete=$(awk -F ';' -v kib="$kib" '
            $1 == 3 { if ($5 != 0 || $47 != kib) exit; complete++ }
            END { print complete + 0 }' "$note.fio")
        [ "$complete" = 0 ] || keep "$((at + complete - 1))"
        rm -f "$note.fio"
        exit 1
    }
    at=$((at + batch))
    keep "$((at - 1))"
done
rm -f "$note.fio"
