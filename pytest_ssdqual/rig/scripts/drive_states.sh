# State of drives after a measurement has failed: whether the kernel still has them, and what md holds of them.
#
# A SCSI device that was given up is offline, an NVMe controller dead; both keep their directory for a while.
#
# Arguments: $1 the array's kernel name or `-`; $2... the kernel names of the drives, as sysfs spells them.
# Output: of each drive `NAME PRESENCE MODE STATE`: `present` or `gone`, `rw` or `ro`, md's words or `-`; then `end`.
# Exit status: not used; an answer without `end` was cut short.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

array=$1
shift
for name; do
    presence=gone mode=rw state=- word=''
    if [ -e "/sys/block/$name" ]; then
        presence=present
        { read -r word <"/sys/block/$name/device/state"; } 2>/dev/null
        case $word in offline | transport-offline | dead | deleting*) presence=gone ;; esac
        { read -r word <"/sys/block/$name/ro"; } 2>/dev/null && [ "$word" = 1 ] && mode=ro
    fi
    { read -r word <"/sys/block/$array/md/dev-$name/state"; } 2>/dev/null && state=$word
    echo "$name $presence $mode $state"
done
echo end
