# Whether drives are locked, by their own report; reads only.
#
# NVMe: TCG's Level 0 Discovery, by Security Receive with protocol 1 and ComID 1, only if Identify Controller (OACS bit
#   0) has that command, because a command that a drive does not know adds an entry to its error log.
# ATA: the Security feature set, as smartctl reports it.
#
# Arguments: of each drive its kernel name, as sysfs spells it, its path, and smartctl's option -d (`none`: not run).
# Output: of each drive at most one line, `NAME discovery` and bytes as decimal numbers, or `NAME security` and JSON.
# Exit status: not used; a drive without a line is unknown.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

export LC_ALL=C
# True if Identify Controller, as nvme-cli's JSON $1, has the command Security Receive (OACS bit 0).
has_security_receive() {
    oacs=${1#*'"oacs"'}
    oacs=${oacs#*:} oacs=${oacs%%,*}
    oacs=${oacs# }
    case $oacs in '' | *[!0-9]*) return 1 ;; esac
    [ $((oacs & 1)) = 1 ]
}
while [ $# -gt 2 ]; do
    case $1 in
    nvme*)
        has_security_receive "$(timeout 20 nvme id-ctrl -o json "$2" </dev/null 2>/dev/null)" &&
            echo "$1 discovery" "$(timeout 20 nvme security-recv "$2" --secp=1 --spsp=1 --nssf=0 --size=2048 --al=2048 \
                --raw-binary </dev/null 2>/dev/null | od -An -v -tu1 -N 2048 | tr '\n' ' ')"
        ;;
    *)
        [ "$3" = none ] ||
            echo "$1 security" "$(timeout 20 smartctl --json=c -g security -d "$3" "$2" </dev/null 2>/dev/null)"
        ;;
    esac
    shift 3
done
