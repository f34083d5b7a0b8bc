# Run a command on drives that were checked, or not at all. In one process, which becomes the command: open the drives
# (fence_open.pl or .py), compare what was opened with what was checked (fence_check.sh), execute the command.
#
# Arguments: $1, $2 and $3 the texts of fence_open.pl, fence_open.py and fence_check.sh; $4 `alone` (open with O_EXCL),
#   `beside` (the command does that itself) or `itself` (of blkdiscard: whichever its version needs; it has --force
#   since it uses O_EXCL, which is util-linux 2.36); $5 the number of drives; of each drive its path, bytes, serial and
#   WWN (or nothing); the command.
# Output: the command's.
# Exit status: the command's; 76 if a drive is not what was checked, or taken, with the reason on standard error.
# Needs perl or Python 3.6.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

perl_hold=$1 python_hold=$2 check=$3; shift 3
if [ "$1" = itself ]; then
    case $(blkdiscard --help 2>&1) in *--force*) how=beside ;; *) how=alone ;; esac
    shift; set -- $how "$@"
fi
command -v perl >/dev/null && exec perl -e "$perl_hold" sh -c "$check" bound "$@"
python=$(command -v python3 || command -v /usr/libexec/platform-python)
[ -z "$python" ] || exec "$python" -I -S -c "$python_hold" sh -c "$check" bound "$@"
echo 'perl or python3 must open the drives before a command changes them; neither is there' >&2
exit 76
