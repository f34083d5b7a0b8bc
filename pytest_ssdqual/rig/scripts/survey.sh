# What the kernel and the tools of the machine know of its block devices; survey_parse.py reads it.
#
# Values are printed by printf %s alone: the echo of dash expands backslashes, and a serial number \n==mounts once
# opened a section of the answer. Builtins are used where possible: a fork costs 10 ms under emulation.
#
# Arguments: $1 and $2 the texts of probe.pl and probe.py; $3... nodes of drives that may be destroyed.
# Output: records: the kind and then its fields, each ended by NUL. No shell variable, no file of sysfs read here and no
#   name of a process has a NUL in it, so no value can end its field. `blind SOURCE WHY` is a source that cannot answer
#   on this machine (topology.Source), `blind_drive SOURCE NODE WHY` one that cannot answer about this drive; a source
#   that the kernel does not have is not blind. At last `end`.
# Exit status: not used; an answer without `end` was cut short.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

root=
sys=$root/sys proc=$root/proc
export LC_ALL=C
perl_probe=$1 python_probe=$2 loops='' generics=''
shift 2
python=$(command -v python3 || command -v /usr/libexec/platform-python)

tell() { printf '%s\0' "$@"; }
# A value is its file's first line.
say() { [ -r "$3" ] && { read -r line <"$3"; [ -n "$line" ] && tell "$1" "$2" "$line"; } 2>/dev/null; line=; }
probe() {
    if command -v perl >/dev/null; then perl -e "$perl_probe" "$@"
    elif [ -n "$python" ]; then "$python" -I -S -c "$python_probe" "$@"
    fi
}
# $1 columns, then devices; of a device only its name without folders is printed.
signs() { wipefs --no-act --noheadings --output "$@" 2>/dev/null; }
# $1 is the exporter, $2 the path that it was given, $3 yes if it does not use that now, or claims its device. The path
# is one of the exporter's files: a container has others, process 1 most likely the same.
export_of() {
    [ -n "$2" ] || return 0
    tell export "$1" "$2"
    visible=$3
    for place in "$2" "$proc/1/root$2"; do
        [ ! -e "$place" ] || visible=yes
        [ ! -b "$place" ] || stat -L -c '%t %T' "$place" | while read -r major minor; do
            tell exported "$1" "$major" "$minor"
        done
    done
    [ "$visible" ] || tell blind exports "a drive is exported ($1) by the path $2, which is not there"
}

for d in "$sys"/class/block/*; do
    k=${d##*/}
    say dev "$k" "$d/dev"
    say size "$k" "$d/size"
    say ro "$k" "$d/ro"
    for f in "$d/wwid" "$d/device/wwid"; do say wwid "$k" "$f"; done
    for f in "$d/serial" "$d/device/serial"; do say serial "$k" "$f"; done
    say model "$k" "$d/device/model"
    say depth "$k" "$d/device/queue_depth"
    # The PCI device is above the controller; a multipath namespace has its subsystem there, which has controllers.
    for f in "$d"/device/device "$d"/device/nvme[0-9]*/device; do say link "$k" "$f/max_link_speed"; done
    for f in "$d/device/firmware_rev" "$d/device/rev"; do say firmware "$k" "$f"; done
    say zoned "$k" "$d/queue/zoned"
    say mduuid "$k" "$d/md/uuid"
    [ -r "$d/loop/backing_file" ] && say loop "$k" "$d/loop/backing_file" && loops="$loops /dev/$k"
    [ -d "$d/bcache" ] && tell bcache "$k"
    [ -e "$d/partition" ] && cd -P "$d/.." && tell disk "$k" "${PWD##*/}"
    for f in "$d"/holders/*; do [ -L "$f" ] && tell holder "$k" "${f##*/}"; done
    for f in "$d"/slaves/*; do [ -L "$f" ] && tell slave "$k" "${f##*/}"; done
    # A path's namespace has its controller above it, a multipath one its subsystem, which has the controllers in it.
    for f in "$d/device" "$d"/device/nvme[0-9]*; do [ -e "$f/cntlid" ] && say controller "$k" "$f/dev"; done
done
cd /
for f in "$sys"/fs/bcachefs/*/dev-*/block; do
    [ -L "$f" ] && cd -P "$f" && id=${f#"$sys/fs/bcachefs/"} && tell bcachefs "${PWD##*/}" "${id%%/*}"
done
cd /
for f in "$sys"/fs/btrfs/*/devices/*; do
    [ -L "$f" ] && id=${f#"$sys/fs/btrfs/"} && tell btrfs "${f##*/}" "${id%%/*}"
done

# Character devices by which a drive can be written past its block device.
generic() { read -r number <"$1/dev" && tell generic "$number" "$2" && generics="$generics $number"; }
for c in "$sys"/class/scsi_generic/* "$sys"/class/bsg/*; do
    for d in "$c"/device/block/*; do [ -e "$d" ] && generic "$c" "${d##*/}"; done
done
# The kernel gives ng0n1 the numbers of nvme0n1 (drivers/nvme/host/core.c, nvme_add_ns_cdev).
for c in "$sys"/class/nvme-generic/ng*; do [ -e "$c/dev" ] && generic "$c" "nvme${c##*/ng}"; done

# A fresh sysfs, as containers have it, has an empty directory in the place of the host's configfs.
config=$sys/kernel/config
for exporter in nvmet:nvmet target_core_mod:target usb_f_mass_storage:usb_gadget; do
    module=${exporter%:*} directory=$config/${exporter#*:}
    [ ! -d "$sys/module/$module" ] || [ -d "$directory" ] ||
        tell blind exports "$module is loaded, and $directory is not there: mount configfs on $config"
done
# An exporter that is built into the kernel has no directory in /sys/module.
built_in=' (nvmet_register_transport|target_depend_item|fsg_common_create_luns)$'
if [ -d "$config" ] && ! grep -q '/sys/kernel/config .* - configfs ' "$proc/self/mountinfo"; then
    if symbol=$(grep -m 1 -o -E "$built_in" "$proc/kallsyms"); then
        tell blind exports "the kernel has${symbol%%_*} built in, and configfs is not mounted on $config"
    elif ! read -r line <"$proc/kallsyms"; then
        tell blind exports "configfs is not mounted on $config, and $proc/kallsyms does not show what is built in"
    fi
fi 2>/dev/null
for f in "$sys"/kernel/config/nvmet/subsystems/*/namespaces/*/device_path; do
    [ -r "$f" ] || continue
    IFS= read -r line <"$f"
    enabled=''
    read -r enabled <"${f%device_path}enable"
    export_of nvmet "$line" "$([ "$enabled" != 0 ] || echo yes)"
done 2>/dev/null
for f in "$sys"/kernel/config/target/core/*/*/udev_path; do
    [ -r "$f" ] && { IFS= read -r line <"$f"; export_of target "$line" yes; }
done 2>/dev/null
# The USB mass storage gadget opens its file without O_EXCL; the module g_mass_storage shows it in sysfs alone.
for f in "$sys"/kernel/config/usb_gadget/*/functions/mass_storage.*/lun.*/file \
    "$sys"/class/udc/*/device/gadget*/lun*/file; do
    [ -r "$f" ] && { IFS= read -r line <"$f"; export_of gadget "$line"; }
done 2>/dev/null
# Xen's block backend and SCST open a drive without claiming it; both show it in sysfs.
for f in "$sys"/bus/xen-backend/devices/vbd-*/physical_device; do
    [ -r "$f" ] && { read -r number <"$f"; tell exported xen "${number%:*}" "${number#*:}"; }
done 2>/dev/null
for f in "$sys"/kernel/scst_tgt/devices/*/filename; do
    [ -r "$f" ] && { IFS= read -r line <"$f"; export_of scst "$line"; }
done 2>/dev/null
# A link to the block device in sysfs (Documentation/ABI/testing/sysfs-class-rnbd-server).
for d in "$sys"/class/rnbd-server/ctl/devices/*/block_dev; do
    read -r number <"$d/dev" && tell exported rnbd "$(printf %x "${number%:*}")" "$(printf %x "${number#*:}")"
done 2>/dev/null
# "        TCM FILEIO ID: 0        File: /dev/sdX  Size: 1073741824  Mode: O_DSYNC Async: 0"; udev_path is optional.
for f in "$sys"/kernel/config/target/core/fileio_*/*/info; do
    [ -r "$f" ] && while IFS= read -r line; do
        case $line in *' File: '*'  Size: '*) line=${line#*' File: '}; export_of target "${line%'  Size: '*}" ;; esac
    done <"$f"
done 2>/dev/null
for f in "$sys"/kernel/config/nvmet/subsystems/*/passthru/device_path; do
    [ -r "$f" ] || continue
    IFS= read -r line <"$f"
    [ -z "$line" ] || tell passthru "$line" "$([ ! -c "$line" ] || stat -L -c '%t %T' "$line")"
done 2>/dev/null
# shellcheck disable=SC2086  # words
[ -z "$loops" ] || probe loops $loops

# shellcheck disable=SC2034  # the inode is not wanted any more
mounted=$(stat -L -c '%i %n' "$proc"/[0-9]*/ns/mnt 2>/dev/null | sort -u -k1,1 | {
    cat "$proc/1/mountinfo" "$proc/self/mountinfo"
    while read -r inode f; do cat "${f%/ns/mnt}/mountinfo"; done
} 2>/dev/null)
tell mounts "$(printf '%s\n' "$mounted" | grep -E '^[0-9]+ [0-9]+ [1-9]| - [^ ]+ /dev/' | cut -d ' ' -f 3- | sort -u)"
tell swaps "$([ ! -r "$proc/swaps" ] || cat "$proc/swaps")"
tell mdstat "$([ ! -r "$proc/mdstat" ] || cat "$proc/mdstat")"
# Without its module no pool is imported, and zpool fails.
if [ -d "$sys/module/zfs" ] && command -v zpool >/dev/null; then
    pools=$(timeout 20 zpool status -LP 2>/dev/null) || tell blind layers 'zpool status did not answer'
    tell zfs "$(printf '%s\n' "$pools" | grep -o '/dev/[^ ]*')"
fi

# Open files, by the number of the device: names may be those of another mount namespace, or gone. A file of a network
# or FUSE file system is not looked at: stat would wait for its server. Their mounts are known by number.
far='nfs|cifs|smb|ceph|9p|afs|lustre|gfs2|ocfs2|orangefs|coda|fuse|virtiofs|gpfs|beegfs|pvfs2|panfs|wekafs|vboxsf'
remote=$(printf '%s\n' "$mounted" | sed -n -E "s/^([0-9]+) .* - ($far)[^ ]* .*/:\\1:/p")
is_remote() {
    while read -r key value; do [ "$key" != mnt_id: ] || break; done <"$1"
    case $remote in *":$value:"*) return 0 ;; *) return 1 ;; esac
}
# Of these files, those that are drives: the file, the device's number, and how it is open.
handles() {
    [ $# -eq 0 ] || stat -L -c '%f %t %T %n' "$@" 2>/dev/null | while read -r mode major minor f; do
        number=$((0x$major)):$((0x$minor)) access=read flags=
        case $mode in
        6*)
            while read -r key flags; do [ "$key" != flags: ] || break; done <"${f%/fd/*}/fdinfo/${f##*/}"
            case $flags in *[1256]) access='write' ;; esac
            ;;
        *)
            case "$generics " in *" $number "*) access=generic ;; *) continue ;; esac
            ;;
        esac
        printf '%s\n' "$f $number $access"
    done 2>/dev/null
}
# A command line of all files could be longer than the kernel takes.
opened='' files='' count=0
# shellcheck disable=SC2086  # words
handle() {
    opened="$opened
$(handles $files)" files='' count=0
}
# The target of a link in fd cannot be reached without the right to trace the process. A file that was closed and
# another one that was opened between two of these commands look the same, so a suspect is looked at again.
hides() { [ -L "$1" ] && [ ! -e "$1" ] && [ -L "$1" ]; }
still_hides() { sleep 0.1; hides "$1"; }
suspects=''
for p in "$proc"/[0-9]*; do
    for f in "$p"/fd/*; do
        [ -z "$remote" ] || ! is_remote "$p/fdinfo/${f##*/}" || continue
        if [ -b "$f" ] || { [ -n "$generics" ] && [ -c "$f" ]; }; then
            files="$files $f" count=$((count + 1))
            [ $count -lt 500 ] || handle
        elif hides "$f" && [ ${#suspects} -lt 1000 ]; then suspects="$suspects $f"
        fi
    done
done 2>/dev/null
[ $count -eq 0 ] || handle
writers='' users=''
# Those who do not write count if they stay: smartd, lsblk and their like have a node open for a moment. udev has one
# while it handles an event, which took longer than 2.4 s on a busy emulated machine. Forty readings there take 20 s of
# the 60 s that the survey has, and more than 25 s are not spent on them. A process that hangs on a drive (below) may end
# as soon as the drive answers.
case $opened in
*:*)
    writers=$(printf '%s\n' "$opened" | grep ' write$')
    users=$(printf '%s\n' "$opened" | grep -E ' (read|generic)$')
    ;;
esac
# $1 the number of a block device: the requests that it has completed, and those in flight.
requests() {
    reads='' writes='' discards='' flushes='' flying=''
    { read -r reads _ _ _ writes _ _ _ flying _ _ discards _ _ _ flushes _ <"$sys/dev/block/$1/stat"; } 2>/dev/null
    completed=$((${reads:-0} + ${writes:-0} + ${discards:-0} + ${flushes:-0})) flying=${flying:-0}
}
now() { { read -r seconds _ <"$proc/uptime"; } 2>/dev/null; seconds=${seconds%%.*} seconds=${seconds:-0}; }
# A process (a file that it has open, the device's number) waits in the kernel (state D) for a candidate that has
# requests, and has completed less than two a second: the drive is silent, and the process its symptom.
is_hanging() {
    case $earlier in *" $2="*) earliest=${earlier#*" $2="} ;; *) return 1 ;; esac
    { read -r line <"${1%/fd/*}/stat"; } 2>/dev/null || return 1
    line=${line##*') '}
    [ "${line%% *}" = D ] || return 1
    requests "$2"
    [ "$flying" -gt 0 ] && [ $((completed - ${earliest%% *})) -le $((2 * waited)) ]
}
hanging() {
    printf '%s\n' "$writers" "$users" | while read -r f number access; do
        [ "$access" != generic ] && is_hanging "$f" "$number" && printf '%s %s %s\n' "$f" "$number" "$flying"
    done
}
may_end() {
    printf '%s\n' "$users" | while read -r f number access; do
        { [ -n "$f" ] && read -r name <"${f%/fd/*}/comm"; } 2>/dev/null || continue
        case $name in systemd-udevd | '(udev-worker)' | udevd) ;; *) is_hanging "$f" "$number" || exit 1 ;; esac
    done
}
earlier=' ' hung='' waited=0 round=0
if [ -n "$writers$users" ]; then
    now
    began=$seconds
    for f; do
        for d in "$sys/class/block/${f##*/}/dev" "$sys/class/block/${f##*/}"/*/partition; do
            { read -r number <"${d%/*}/dev"; } 2>/dev/null || continue
            requests "$number"
            earlier="$earlier$number=$completed "
        done
    done
    hung=$(hanging)
fi
while [ -n "$users$hung" ] && { [ $round -lt 8 ] || { [ $round -lt 40 ] && [ "$waited" -lt 25 ] && may_end; }; }; do
    sleep 0.3
    # shellcheck disable=SC2046  # paths of /proc have no blanks
    users=$(printf '%s\n' "$users" | grep -Fx -e "$(handles $(printf '%s\n' "$users" | cut -d ' ' -f 1))")
    now
    waited=$((seconds - began)) round=$((round + 1))
    hung=$(hanging)
done
silent=' '
# A drive that does not answer is not opened: whatever reads from it would hang, too, until the survey's time is over.
for number in $(printf '%s\n' "$hung" | cut -s -d ' ' -f 2); do
    cd -P "$sys/dev/block/$number" && { [ ! -e partition ] || cd ..; } && silent="$silent${PWD##*/} "
done 2>/dev/null
cd /
for f; do
    shift
    case $silent in *" ${f##*/} "*) ;; *) set -- "$@" "$f" ;; esac
done
printf '%s\n' "$hung" | while read -r f number flying; do
    p=${f%/fd/*}
    [ -z "$f" ] || tell hanging "${p##*/}" "$number" "$waited" "$flying"
done
printf '%s\n' "$writers" "$users" | while read -r f number access; do
    [ -n "$f" ] || continue
    p=${f%/fd/*} name=
    { read -r name <"$p/comm"; } 2>/dev/null
    tell opened "${p##*/}" "${f##*/}" "$access" "$number" "${name:-unknown}"
done
for f in $suspects; do
    if ! still_hides "$f" || ! still_hides "$f"; then continue; fi
    name=unknown
    p=${f%/fd/*}
    { read -r name <"$p/comm"; } 2>/dev/null
    tell blind openers "files that processes have open cannot be looked at, such as fd ${f##*/} of $name (pid ${p##*/})"
    break
done
# Processes may be hidden as a whole: by hidepid, a user namespace, or a /proc of other processes than one's own.
if ! [ -d "$proc/1/fd" ] || ! [ -x "$proc/1/fd" ] || ! [ -e "$proc/self" ]; then
    tell blind openers "$proc does not show the processes of the machine"
fi
[ ! -e "$proc/self/ns/pid" ] || tell pidns "$(stat -L -c %i "$proc/self/ns/pid")"
tell scanned

if [ $# -gt 0 ]; then
    stat -L -c '%t %T %n' "$@" | while read -r major minor f; do tell number "$f" "$major" "$minor"; done
    probe drives "$@"
    if command -v wipefs >/dev/null; then
        # All at once, as each process takes 80 ms under emulation. It says nothing of any if one cannot be read, and
        # names end at a blank.
        plain=yes
        for f; do case $f in *[!A-Za-z0-9/_.-]*) plain='' ;; esac; done
        if [ "$plain" ] && found=$(signs DEVICE,TYPE,UUID "$@"); then
            printf '%s\n' "$found" | while read -r name kind; do
                for f; do [ "${f##*/}" != "$name" ] || tell signature "$f" "$kind"; done
            done
        else
            for f; do
                found=$(signs TYPE,UUID "$f") || ! head -c 4096 "$f" >/dev/null 2>&1 ||
                    tell blind_drive signatures "$f" "wipefs fails for $f, which can be read"
                [ -z "$found" ] || printf '%s\n' "$found" | while read -r kind; do tell signature "$f" "$kind"; done
            done
        fi
    else tell blind signatures 'wipefs is not there'
    fi
fi
tell end
