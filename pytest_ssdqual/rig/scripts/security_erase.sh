# Erase an ATA drive by its Security feature set, and leave it without a password. Its keeper sends it no signal; those
# of others it ignores, but for KILL.
#
# Arguments: $1 the drive, $2 the password, $3 the option of hdparm that erases.
# Output: a line, and what hdparm said:
#   refused  no password was set, and nothing erased;
#   erased   the password was set, and the drive has taken it off: which it does when it has erased itself;
#   failed   it was not erased; the password was set and is off again;
#   locked   the password may still be set.
# Exit status: 0.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

trap '' HUP INT TERM PIPE
drive=$1 password=$2 erase=$3
security() {
    hdparm -I "$drive" 2>/dev/null |
        sed -n 's/^[[:space:]]*not[[:space:]]*enabled[[:space:]]*$/off/p; s/^[[:space:]]*enabled[[:space:]]*$/on/p'
}
said=$(hdparm --user-master u --security-set-pass "$password" "$drive" 2>&1)
outcome=refused
if [ "$(security)" != off ]; then
    said=$(hdparm --user-master u "$erase" "$password" "$drive" 2>&1) && outcome=erased || outcome=failed
    if [ "$(security)" != off ]; then
        outcome=failed
        hdparm --user-master u --security-disable "$password" "$drive" >/dev/null 2>&1
        [ "$(security)" = off ] || outcome=locked
    fi
fi
echo "$outcome"
printf '%s\n' "$said"
