# Functions of environment.sh, in front of which this text is put: the names of drives in the kernel's messages, and the
# messages that have them. They read $array, $since, $names and $pick (see there).
#
# above: the directories in between that are no devices (nvme, platform) have no number; a root bus is everybody's.
# libata's name of a drive is its port's with port multiplier plus device number, which are channel and target of its
# SCSI address; mpt3sas, mpi3mr and Fusion MPT call themselves by their own number, which is the host's unique_id.
# 2-1 is a USB device at port 1 of bus 2, 2-1.4 one at port 4 of a hub there; their interfaces (2-1:1.0) are no names.
# driver_words: libsas, mvsas, pm80xx, megasas and aacraid have messages without any number of a device, which hold for
# all their controllers.
# ring: a read of /dev/kmsg is one message, and fails when the log was overtaken; the next one goes on behind.
#
# Arguments: of above a directory of sysfs; of driver_words one of a PCI device, and the host's number; of names those of
#   environment.sh from $6 on; of kernel none.
# Output: of above, driver_words and names a name a line, `+` before it if other drives may hang on it, too; of kernel
#   the section `==kernel` of kernel_log.awk, and `==`, if the log could be read.
# Exit status: not used.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

driver_words() {
    d=$(readlink -f "$1/driver" 2>/dev/null)
    case ${d##*/} in
    mvsas) printf '%s\n' +sas: +mvs_abort_task +mv_sas.c ;;
    pm80xx) printf '%s\n' +sas: +pm80xx +pm80xx0 +pm80xx1 ;;
    isci | aic94xx | hisi_sas*) echo +sas: ;;
    megaraid_sas) echo +megasas: ;;
    aacraid) echo +aacraid: ;;
    arcmsr) echo "arcmsr$2" ;;
    esac
}
above() {
    p=$(readlink -f "$1" 2>/dev/null) shared='' address=0:0:0:0 number=''
    while [ "${p#/sys/devices/}" != "$p" ]; do
        n=${p##*/} p=${p%/*}
        case $n in
        pci????*:??) ;;
        *:[0-9a-f][0-9a-f]:[0-9a-f][0-9a-f].[0-7])
            printf '%s\n' "$shared$n"
            [ -n "$shared" ] || driver_words "$p/$n" "$number"
            shared=+
            ;;
        [0-9]*:*:*:*) printf '%s\n' "$shared$n"; address=$n ;;
        [0-9]*:*) ;;
        [0-9]*-[0-9]*) printf '%s\n' "$n" ;;
        ata[0-9]*)
            target=${address#*:}
            channel=${target%%:*} target=${target#*:}
            printf '%s\n%s.%02d\n' "$n" "$n" $((channel + ${target%%:*}))
            ;;
        host[0-9]*)
            printf '%s\n' "$n"
            number=${n#host} h=/sys/class/scsi_host/$n
            [ -r "$h/unique_id" ] && [ -r "$h/proc_name" ] || continue
            read -r id <"$h/unique_id"
            read -r driver <"$h/proc_name"
            case $driver in
            mptsas | mptspi | mptfc) echo "ioc$id" ;;
            mpt*) printf '%s\n' "${driver}_cm$id" "$driver$id" ;;
            mpi3mr) echo "$driver$id" ;;
            esac
            ;;
        *[!0-9.:-]*) [ "${n#*[0-9]}" = "$n" ] || printf '%s\n' "$shared$n" ;;
        esac
    done
}
names() {
    [ "$array" = - ] || echo "$array"
    while [ $# -gt 2 ]; do
        echo "$1"
        for each in "/sys/block/${1%n*}"c[0-9]*"n${1##*n}"; do
            [ ! -e "$each" ] || echo "${each##*/}"
        done
        above "/sys/block/$1/device"
        for each in "/sys/block/$1/device"/nvme[0-9]*; do
            n=${each##*/}
            case ${n#nvme} in *[!0-9]*) ;; *) above "$each" ;; esac
        done
        shift 3
    done
}
ring() {
    # shellcheck disable=SC2034  # counts only
    { for again in 1 2 3; do dd iflag=nonblock bs=8192; done </dev/kmsg; } 2>/dev/null
}
# shellcheck disable=SC2154  # environment.sh sets it
kernel() {
    told=
    export array since names
    case $since in k* | new) told=$(ring | form=k awk "$pick" 2>/dev/null) ;; esac
    case $since in
    t* | new) [ -z "$told" ] && log=$(dmesg 2>/dev/null) &&
        told=$(printf '%s\n' "$log" | form=t awk "$pick" 2>/dev/null) ;;
    esac
    [ -z "$told" ] || printf '%s\n==\n' "$told"
}
