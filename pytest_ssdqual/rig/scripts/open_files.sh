# Functions for environment.sh and open_files_asked.sh: the processes that have a drive open by any of its nodes. ls reads
# the links in /proc without following them: a file of a network file system would wait for its server. The links' own
# modes say how the files are open (proc_pid_fd(5)).
#
# Arguments: of each drive its kernel name, as sysfs spells it, and two more words that are not used.
# Output: `NAME PID ACCESS PROGRAM` for each process and drive; ACCESS is read, write or generic: through a character
#   device (sg, bsg, ng or an NVMe controller), whose I/O the kernel does not count.
# Exit status: not used.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

# Words NODE=NAME=KIND.
nodes() {
    while [ $# -gt 2 ]; do
        d=/sys/block/$1
        case $1 in *!*) echo "/dev/${1%%!*}/${1#*!}=$1=block" ;; *) echo "/dev/$1=$1=block" ;; esac
        for f in "$d/$1"*/partition; do [ ! -e "$f" ] || { f=${f%/*}; echo "/dev/${f##*/}=$1=block"; }; done
        for f in "$d"/device/scsi_generic/sg* "$d"/device/nvme[0-9]*; do
            case ${f##*/} in *c[0-9]*n[0-9]* | nvme*n[0-9]*) continue ;; esac
            [ ! -e "$f" ] || echo "/dev/${f##*/}=$1=generic"
        done
        for f in "$d"/device/bsg/*; do [ ! -e "$f" ] || echo "/dev/bsg/${f##*/}=$1=generic"; done
        case $1 in nvme*n*) echo "/dev/ng${1#nvme}=$1=generic /dev/${1%n*}=$1=generic" ;; esac
        shift 3
    done
}
opened() {
    # By the environment: the option -v takes no lines in gawk --posix and original-awk.
    # shellcheck disable=SC2012  # find of busybox prints no modes and no targets; names of /proc are numbers
    ls -ln /proc/[0-9]*/fd 2>/dev/null | nodes=$(nodes "$@") awk '
        BEGIN {
            count = split(ENVIRON["nodes"], words, /[ \n]+/)
            for (i = 1; i <= count; i++) { split(words[i], part, "="); of[part[1]] = part[2]; kind[part[1]] = part[3] }
        }
        /^\/.*\/fd:$/ { pid = $0; sub(/\/fd:$/, "", pid); sub(/.*\//, "", pid); next }
        (at = index($0, " -> ")) {
            node = substr($0, at + 4)
            if (!(node in of)) next
            access = kind[node] == "generic" ? "generic" : substr($0, 3, 1) == "w" ? "write" : "read"
            if (seen[of[node], pid, access]++) next
            comm = "/proc/" pid "/comm"; program = "unknown"
            getline program <comm; close(comm)
            print of[node], pid, access, program
        }'
}
# Those that stay: smartd, lsblk and their like have a node open for a moment.
staying() {
    found=$(opened "$@") round=0
    while [ -n "$found" ] && [ $round -lt 3 ]; do
        sleep 1
        found=$(printf '%s\n' "$found" | grep -Fx -e "$(opened "$@")")
        round=$((round + 1))
    done
    [ -z "$found" ] || printf '%s\n' "$found"
}
