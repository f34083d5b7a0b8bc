# Compare opened drives with what was checked, and become the command; see fence.sh.
#
# sysfs has what needs no udev; lsblk has what udev found out, as it had when the drive was checked, unless sysfs says
# otherwise. The number of a descriptor may have two digits, which dash cannot redirect, so descriptors are reached
# through /proc.
#
# Arguments: $1 `alone` or `beside`, not used here; $2 the number of drives; of each drive its path, with the
#   descriptor's number and a colon in front if it is open, its bytes, serial and WWN (or nothing), of an array
#   `MD_UUID=` and its UUID instead of a WWN; the command.
# Output: the command's.
# Exit status: the command's; 76 if a drive is not what was checked, with the reason on standard error.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

refuse() { printf '%s is not the drive that was checked: %s\n' "$path" "$1" >&2; exit 76; }
# shellcheck disable=SC2086  # words, so that blanks between them count once
squeezed() { set -f; set -- $1; said=$*; set +f; }
is() { squeezed "$2"; [ "$said" = "$1" ] || [ "$said" = "naa.${1#0x}" ]; }
bears() {
    squeezed "$1"; wanted=$said other=
    for file in "$sys/serial" "$sys/device/serial" "$sys/wwid" "$sys/device/wwid"; do
        line=
        [ -r "$file" ] && { read -r line <"$file"; is "$wanted" "$line"; } 2>/dev/null && return
        contradicts "$2" "${file##*/}" || continue
        other=yes
    done
    [ -z "$other" ] && is "$wanted" "$(lsblk --nodeps --noheadings --output "$2" "$path" 2>/dev/null)"
}
# Letters and digits of a name, in $alphanumeric; nothing if a shell cannot take it apart.
letters() {
    rest=$1 alphanumeric=
    while [ -n "$rest" ]; do
        more=${rest#?}
        [ "$more" != "$rest" ] || { alphanumeric=; return; }
        case ${rest%"$more"} in [0-9A-Za-z]) alphanumeric=$alphanumeric${rest%"$more"} ;; esac
        rest=$more
    done
}
# Whether $line of the kernel can only be another drive's; see udev_names.py. udev's database may still have the names of
# the drive that was here before, so lsblk is not asked then.
contradicts() {
    case $1:$2 in
    SERIAL:serial)
        case ${real##*/} in nvme* | vd*) ;; *) return 1 ;; esac
        letters "$line"; kernel=$alphanumeric
        letters "$wanted"
        [ -n "$kernel" ] || return 1
        case $alphanumeric in *"$kernel"*) return 1 ;; esac
        ;;
    WWN:wwid)
        case $wanted in *[ABCDEF]*) return 1 ;; 0x*) name=naa.${wanted#0x} ;; *) name=$wanted ;; esac
        case $name:$line in
        nvme.*:nvme.*) ;;
        eui.*:eui.* | uuid.*:uuid.*) [ ${#name} -eq ${#line} ] ;;
        naa.*:naa.*)
            case $real in */usb[0-9]*) return 1 ;; esac
            # The first digit is the kind of the name.
            [ ${#name} -eq ${#line} ] && [ "${name%"${name#?????}"}" = "${line%"${line#?????}"}" ]
            ;;
        *) return 1 ;;
        esac
        ;;
    *) return 1 ;;
    esac
}
# The kernel's UUID, or mdadm's where the kernel is too old to report one; they are spelled differently. The array cannot
# be stopped after the comparison, because it is open.
is_array() {
    line=
    { read -r line <"$sys/md/uuid"; } 2>/dev/null ||
        line=$(mdadm --detail --export "$path" 2>/dev/null | sed -n 's/^MD_UUID=//p')
    [ -n "$(digits "$line")" ] && [ "$(digits "$line")" = "$(digits "$1")" ]
}
digits() { printf %s "$1" | tr -d ' :-'; }
left=$2; shift 2
while [ "$left" -gt 0 ]; do
    case $1 in /*) fd='' path=$1 ;; *) fd=${1%%:*} path=${1#*:} ;; esac
    bytes=$2 serial=$3 wwn=$4 left=$((left - 1)) sectors=; shift 4
    number=$(stat -L -c '%t:%T' "$path" ${fd:+"/proc/self/fd/$fd"} 2>/dev/null) || refuse 'it is gone'
    first=${number%%[!0-9a-f:]*}
    [ -z "$fd" ] || [ "$number" = "$first
$first" ] || refuse 'another device has its name'
    sys=/sys/dev/block/$((0x${first%:*})):$((0x${first#*:}))
    real=$(cd -P "$sys" 2>/dev/null && printf %s "$PWD")
    { read -r sectors <"$sys/size"; } 2>/dev/null
    has=$((${sectors:-0} * 512))
    [ "$has" = "$bytes" ] || refuse "it has $has bytes where $bytes were checked"
    [ -z "$serial" ] || bears "$serial" SERIAL || refuse "its serial is not $serial"
    case $wwn in
        '') ;;
        MD_UUID=*) is_array "${wwn#*=}" || refuse "its UUID is not ${wwn#*=}" ;;
        *) bears "$wwn" WWN || refuse "its WWN is not $wwn" ;;
    esac
done
exec "$@"
