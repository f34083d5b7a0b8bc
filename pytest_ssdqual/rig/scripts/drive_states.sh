# State of drives after a measurement has failed: whether the kernel still has them, and what md holds of them.
#
# A SCSI device that was given up is offline, an NVMe controller dead; both keep their directory for a while. An NVMe
# drive of a subsystem with several controllers is a head (nvme0n1) without a state above hidden paths (nvme0c1n1),
# which have those of their controllers: it is gone when all of them are.
#
# Arguments: $1 the array's kernel name or `-`; $2... the kernel names of the drives, as sysfs spells them.
# Output: of each drive `NAME PRESENCE MODE STATE`: `present` or `gone`, `rw` or `ro`, md's words or `-`; then `end`.
# Exit status: not used; an answer without `end` was cut short.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

blocks=${sys:-/sys}/block
array=$1
shift
is_given_up() {
    paths=0 dead=0
    for f in "$blocks/$1/device/state" "$blocks/${1%n*}"c[0-9]*"n${1##*n}/device/state"; do
        { read -r word <"$f"; } 2>/dev/null || continue
        paths=$((paths + 1))
        case $word in offline | transport-offline | dead | deleting*) dead=$((dead + 1)) ;; esac
    done
    [ "$paths" -gt 0 ] && [ "$dead" -eq "$paths" ]
}
for name; do
    presence=gone mode=rw state=-
    if [ -e "$blocks/$name" ]; then
        is_given_up "$name" || presence=present
        { read -r word <"$blocks/$name/ro"; } 2>/dev/null && [ "$word" = 1 ] && mode=ro
    fi
    { read -r word <"$blocks/$array/md/dev-$name/state"; } 2>/dev/null && state=$word
    echo "$name $presence $mode $state"
done
echo end
