# What drives report about themselves, and what the kernel reports about them; reads only. smartctl and nvme-cli open a
# drive for reading, with O_NONBLOCK, so a drive in use can be inspected, too.
#
# Arguments: of each drive its kernel name, as sysfs spells it, its path, and smartctl's option -d (`auto`: smartctl
#   chooses; `none`: smartctl is not run).
# Output: of each drive `==drive NAME`, then sections `==smart` (JSON), of NVMe `==id-ctrl` and `==id-ns` (JSON),
#   `==sanitize`, `==self-test` and `==discovery` (of TCG; bytes as decimal numbers), of ATA `==ata-sanitize` (text of
#   hdparm), `==sysfs` (lines `FILE VALUE`); `==end` after the last one.
# Exit status: not used; an answer without `==end` was cut short.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

export LC_ALL=C
sys=${sys:-/sys}
files() {
    for f; do
        { read -r value <"$f"; } 2>/dev/null && echo "${f##*/} $value"
    done
}
links() {
    for f in current_link_speed current_link_width max_link_speed max_link_width; do
        { read -r value <"$1/$f"; } 2>/dev/null && echo "$2$f $value"
    done
}
of_sysfs() {
    d=$sys/class/block/$1
    files "$d/size" "$d/ro" "$d/queue/logical_block_size" "$d/queue/physical_block_size" "$d/queue/write_cache" \
        "$d/metadata_bytes" "$d/device/queue_depth"
    for c in "$d/device/device" "$d"/device/nvme[0-9]*/device; do
        [ -e "$c/current_link_speed" ] || continue
        links "$c" ''
        links "$c/.." slot_
        break
    done
    n=0
    for f in "$d"/device/nvme*n[0-9]*; do
        # A path of a namespace (nvme0c1n1) is not another namespace.
        case ${f##*/} in *c*n*) ;; *) [ -e "$f" ] && n=$((n + 1)) ;; esac
    done
    echo "namespaces $n"
    at=$(readlink -f "$d/device")
    case $at in
    */ata[0-9]*/*)
        n=${at#*/ata}
        n=${n%%/*}
        files "$sys/class/ata_link/link$n/sata_spd" "$sys/class/ata_link/link$n/hw_sata_spd_limit"
        ;;
    esac
}
# True if Identify Controller, as nvme-cli's JSON $1, has the command Security Receive (OACS bit 0).
has_security_receive() {
    oacs=${1#*'"oacs"'}
    oacs=${oacs#*:} oacs=${oacs%%,*}
    oacs=${oacs# }
    case $oacs in '' | *[!0-9]*) return 1 ;; esac
    [ $((oacs & 1)) = 1 ]
}
while [ $# -gt 2 ]; do
    echo "==drive $1"
    smart=$([ "$3" = none ] || smartctl --json=c -x -d "$3" "$2" </dev/null 2>/dev/null)
    printf '==smart\n%s\n' "$smart"
    case $(readlink -f "$sys/class/block/$1/device"),$smart in
    */usb[0-9]*) ;;
    *'"protocol":"ATA"'*)
        # hdparm asks the drive only if it has the feature.
        echo '==ata-sanitize'
        command -v hdparm >/dev/null && hdparm --sanitize-status "$2" </dev/null 2>/dev/null
        ;;
    esac
    if [ "$1" != "${1#nvme}" ] && command -v nvme >/dev/null; then
        printf '\n==id-ctrl\n'
        controller=$(nvme id-ctrl -o json "$2" </dev/null 2>/dev/null)
        printf '%s\n' "$controller"
        printf '\n==id-ns\n'
        nvme id-ns -o json "$2" </dev/null 2>/dev/null
        printf '\n==sanitize\n'
        nvme get-log "$2" --log-id=0x81 --log-len=512 --raw-binary </dev/null 2>/dev/null | od -An -v -tu1
        printf '\n==self-test\n'
        nvme get-log "$2" --log-id=6 --log-len=564 --raw-binary </dev/null 2>/dev/null | od -An -v -tu1
        # locking.sh says why a drive without the command is not asked.
        if has_security_receive "$controller"; then
            printf '\n==discovery\n'
            nvme security-recv "$2" --secp=1 --spsp=1 --nssf=0 --size=2048 --al=2048 --raw-binary </dev/null \
                2>/dev/null | od -An -v -tu1 -N 2048
        fi
    fi
    printf '\n==sysfs\n'
    of_sysfs "$1"
    shift 3
done
echo '==end'
