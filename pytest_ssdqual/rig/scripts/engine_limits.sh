# Limits of the kernel that end fio before its first I/O.
#
# kernel.io_uring_disabled: 1 forbids io_uring to users without CAP_SYS_ADMIN or the group, 2 to all (kernel 6.6, RHEL
#   9.3); a container's seccomp profile may forbid it whatever the value is.
#
# cat: a sysctl is read at once or not at all, and read of dash and busybox takes a byte at a time.
#
# Arguments: none.
# Output: `NAME=VALUE` a line: kernel.io_uring_disabled, fs.aio-nr, fs.aio-max-nr, memlock (KiB, or `unlimited`), nofile
#   (open files of a process).
# Exit status: not used.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

for name in kernel.io_uring_disabled fs.aio-nr fs.aio-max-nr; do
    value=$(cat "/proc/sys/${name%%.*}/${name#*.}" 2>/dev/null) && echo "$name=$value"
done
# shellcheck disable=SC3045  # busybox and dash know -l
value=$(ulimit -l 2>/dev/null) && echo "memlock=$value"
value=$(ulimit -n 2>/dev/null) && echo "nofile=$value"
