# What drives hang on: the directories of sysfs from the device up to the bus, and what there is to know of those by
# which things are told apart. A namespace of an NVMe subsystem with several controllers is below none of them (see
# kernel_log.sh), so its controllers are followed, too.
#
# Arguments: $1... kernel names of drives, as sysfs spells them.
# Output: `- boot ID`; of each drive `==drive NAME`, and for each way to it `path DIRECTORY` and lines `NAME FACT
#   VALUE`, from the drive upwards; at last `==end`.
# Exit status: not used; an answer without `==end` was cut short.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

export LC_ALL=C
tell() {
    for f in "$2"/$3; do
        [ ! -r "$f" ] || { read -r value <"$f" && printf '%s %s %s\n' "$1" "$4" "$value"; }
    done 2>/dev/null
}
above() {
    p=$(readlink -f "$1" 2>/dev/null)
    printf 'path %s\n' "$p"
    while [ "${p#/sys/devices/}" != "$p" ]; do
        n=${p##*/}
        case $n in
        *:[0-9a-f][0-9a-f]:[0-9a-f][0-9a-f].[0-7])
            tell "$n" "$p" class class
            tell "$n" "$p" current_link_speed speed
            tell "$n" "$p" current_link_width width
            ;;
        expander-*) tell "$n" "$p" "sas_device/$n/sas_address" sas ;;
        session[0-9]*) tell "$n" "$p" 'connection*/iscsi_connection/connection*/persistent_address' iscsi ;;
        nvme[0-9]*) tell "$n" "$p" transport transport; tell "$n" "$p" address address ;;
        esac
        p=${p%/*}
    done
}
tell - /proc/sys/kernel/random boot_id boot
for kname; do
    printf '==drive %s\n' "$kname"
    above "/sys/block/$kname/device"
    for each in "/sys/block/$kname/device"/nvme[0-9]*; do
        n=${each##*/}
        case ${n#nvme} in *[!0-9]*) ;; *) above "$each" ;; esac
    done
done
echo '==end'
