# What drives promise about blocks that were discarded; reads only.
#
# NVM Express: DLFEAT of Identify Namespace, bits 2:0 (1: zeroes, 2: ones). ATA: DRAT and RZAT of IDENTIFY DEVICE, in the
# words of hdparm. SCSI: LBPRZ of the Logical Block Provisioning page, which sysfs has since Linux 5.18 (byte 5, bits 4:2;
# an odd value: zeroes; SBC-4).
#
# Arguments: of each drive its name in sysfs and its path.
# Output: `zeroes`, `ones`, `stable` or `nothing`, a line each.
# Exit status: 0.
# Needs nvme-cli for NVMe drives and hdparm for ATA ones; a drive that cannot be asked promises nothing.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

export LC_ALL=C
sys=${sys:-/sys}
of_nvme() {
    answer=$(nvme id-ns -o json "$1" </dev/null 2>/dev/null)
    case $answer in *'"dlfeat"'*) ;; *) answer='"dlfeat":0,' ;; esac
    dlfeat=${answer#*'"dlfeat"'}
    dlfeat=${dlfeat#*:}
    dlfeat=${dlfeat%%[,\}]*}
    dlfeat=$(printf %s "$dlfeat" | tr -cd 0-9)
    case $((${dlfeat:-0} & 7)) in
    1) echo zeroes ;;
    2) echo ones ;;
    *) echo nothing ;;
    esac
}
of_scsi() {
    page=$(od -An -v -tu1 -j5 -N1 "$sys/class/block/$1/device/vpd_pgb2" 2>/dev/null | tr -cd 0-9)
    if [ $((${page:-0} >> 2 & 1)) = 1 ]; then echo zeroes; else echo nothing; fi
}
while [ $# -gt 1 ]; do
    case $1 in
    nvme*) of_nvme "$2" ;;
    *)
        case $(hdparm -I "$2" </dev/null 2>/dev/null) in
        *'Deterministic read ZEROs after TRIM'*) echo zeroes ;;
        *'Deterministic read data after TRIM'*) echo stable ;;
        *) of_scsi "$1" ;;
        esac
        ;;
    esac
    shift 2
done
