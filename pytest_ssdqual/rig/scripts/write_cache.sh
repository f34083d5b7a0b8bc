# The state of a drive's volatile write cache, which is switched if that is asked for.
#
# On SCSI and SATA the kernel's own switch is used: it sends MODE SELECT (which libata makes SET FEATURES), asks the
# drive again, and sends flushes from then on as the drive needs them. A tool past the kernel would leave the kernel in
# the belief that a cache which was switched on needs no flush. The bit for reads (RCD) stays as it is. On NVMe it is
# Set Features 06h without a namespace, because the controller has one cache for all; `nvme set-feature` adds the
# namespace of the path (nvme-cli 1.16 and 2.3), with which a controller must refuse it.
#
# Arguments: $1 the drive's kernel name, as sysfs spells it; $2 its path; $3 smartctl's option -d (`none`: smartctl is
#   not run); $4 `read`, `on` or `off`.
# Output: what the switch printed, in the section `==switch`, between two reports, or one report alone. A report is
#   `==report` and its sections: `==identify` and `==feature` by nvme-cli; or `==drive` by smartctl and `==kernel`, the
#   kernel's cache_type. `==end` ends it all.
# Exit status: not used; an answer without `==end` was cut short.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

export LC_ALL=C
name=$1 path=$2 type=$3 to=$4
set -- "${sys:-/sys}/block/$name/device/scsi_disk"/*/cache_type
file=$1
report() {
    echo '==report'
    case $name in
    nvme*)
        echo '==identify'
        nvme id-ctrl --output-format=json "$path" </dev/null
        echo '==feature'
        nvme get-feature --feature-id=6 "$path" </dev/null
        ;;
    *)
        echo '==drive'
        [ "$type" = none ] || smartctl -g wcache -d "$type" "$path" </dev/null
        echo '==kernel'
        cat "$file"
        ;;
    esac
}
switch() {
    case $name,$to in
    nvme*,on) nvme admin-passthru --opcode=9 --cdw10=6 --cdw11=1 "$path" </dev/null ;;
    nvme*) nvme admin-passthru --opcode=9 --cdw10=6 --cdw11=0 "$path" </dev/null ;;
    *)
        type=
        read -r type <"$file"
        case $type,$to in
        'write back'*read*,on | none,on) type='write back, no read (daft)' ;;
        *,on) type='write back' ;;
        'write back'*read*,off | none,off) type=none ;;
        *) type='write through' ;;
        esac
        echo "$type" >"$file"
        ;;
    esac
}
report 2>/dev/null
if [ "$to" != read ]; then
    echo '==switch'
    switch 2>&1
    report 2>/dev/null
fi
echo '==end'
