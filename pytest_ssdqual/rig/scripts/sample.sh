# Samples of what is on devices, read with O_DIRECT; nothing is written. See sampling.py.
#
# Arguments: $1 and $2 the texts of sample.pl and sample.py; $3 hundredths of a second for each device; $4 the least
#   number of drawn places; $5 the seed of 52 bits from which they are drawn; of each device its path, its size in
#   bytes, and known places `BEGIN:LENGTH,…` in bytes, or `-`.
# Read are the first MiB, the known places, the last MiB, and drawn pages until the time is over. They are spread evenly
# however many there are: each is one golden ratio of the device behind the one before (Kronecker's sequence).
# What is behind a label is not read after the first MiB: the label says whose it is, or else is foreign data itself. A
# drive in a run is labelled and full, and is looked at before every step.
# A page is blank if all its bytes are equal, and equal to those of other blank pages, or 0x00 or 0xff.
# Output: of each device the records `drive PATH`, `page OFFSET HEAD TAIL` of each page of the first MiB whose bytes
#   differ, `label HEX`, `error OFFSET REASON`, `data OFFSET` of the first page that is not blank, `read COUNT`, each
#   ended by NUL; at last `end`.
# Exit status: not used; an answer without `end` was cut short.
# Needs perl or Python 3.6.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

export LC_ALL=C
perl=$1 python=$2
shift 2
command -v perl >/dev/null && exec perl -e "$perl" "$@"
interpreter=$(command -v python3 || command -v /usr/libexec/platform-python)
[ -z "$interpreter" ] || exec "$interpreter" -I -S -c "$python" "$@"
echo 'neither perl nor python3 is there' >&2
exit 1
