# Begins or ends a self-test of drives. A self-test reads; it changes no data.
#
# Arguments: `short` or `extended` begin one, or `end`; of each drive its kernel name, its path, and smartctl's option -d.
# Output: of each drive a line, which is empty, or what the tool said if it refused.
# NVMe drives need nvme-cli, which the program requires of them.
# Exit status: not used.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

export LC_ALL=C
case $1 in
short) nvme_code=1 smartctl_option='-t short' ;;
extended) nvme_code=2 smartctl_option='-t long' ;;
end) nvme_code=0xf smartctl_option=-X ;;
esac
shift
while [ $# -gt 2 ]; do
    if [ "$1" != "${1#nvme}" ]; then
        said=$(nvme device-self-test "$2" --self-test-code="$nvme_code" </dev/null 2>&1) || (exit 1)
    else
        # shellcheck disable=SC2086 # two words
        said=$(smartctl -d "$3" $smartctl_option "$2" </dev/null 2>&1)
    fi
    # smartctl's other bits are findings about the drive.
    status=$(($? & 7))
    [ $status = 0 ] && said= || said="refused with exit status $status: $said"
    printf '%s\n' "$said" | tr '\n' ' '
    echo
    shift 3
done
