# Around an attachment, on this computer: if the run ends without a word, it says for it that the process shall end. The
# output is the attachment's alone, so that its end is seen when the connection ends: closed by exec, as dash keeps a
# copy of what is redirected for the length of a command.
#
# Arguments: $1... the attachment's command.
# Input: the attachment's; `q` follows it.
# Output: the attachment's.
# Exit status: the attachment's.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

exec 3<&0 4>&1 >/dev/null
( exec 2>/dev/null 4>&-; cat <&3; echo q ) | ( exec >&4 3<&- 4>&- "$@" ) &
exec 3<&- 4>&-
wait "$!"
