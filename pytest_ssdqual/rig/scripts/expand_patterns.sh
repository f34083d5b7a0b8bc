# The block devices that patterns name. With IFS empty a parameter is not split; its expansion is globbed and nothing
# else: no command substitution, no quote removal, no further expansion.
#
# Arguments: $1... patterns, absolute paths.
# Output: records `KIND VALUE`, each ended by NUL: `pattern`, then of each path that it names `path`, `kname` (of a
#   block device) and `disk` (of a partition); at last `end `.
# Exit status: not used; an answer without `end ` was cut short.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

IFS=
for pattern; do
    printf 'pattern %s\0' "$pattern"
    if [ -e "$pattern" ] || [ -L "$pattern" ]; then set -f; else set +f; fi
    for path in $pattern; do
        if [ ! -e "$path" ] && [ ! -L "$path" ]; then continue; fi
        kname='' disk=''
        if [ -b "$path" ]; then
            n=$(stat -L -c '%t:%T' "$path")
            if cd -P "/sys/dev/block/$((0x${n%:*})):$((0x${n#*:}))"; then
                kname=${PWD##*/}
                [ -e partition ] && cd -P .. && disk=${PWD##*/}
            fi
            cd /
        fi
        printf 'path %s\0kname %s\0disk %s\0' "$path" "$kname" "$disk"
    done
done
printf 'end \0'
