# Samples of what is on devices, read with O_DIRECT; nothing is written. See sampling.py.
#
# Arguments: $1 and $2 the texts of sample.pl and sample.py; $3 the number of spots; of each device its path and its
#   size in bytes.
# What is behind a label is not read after the first MiB: the label says whose it is, or else is foreign data itself. A
# drive in a run is labelled and full, and is looked at before every step.
# Output: of each device the records `drive PATH`, `page OFFSET HEAD TAIL` of each page of the first MiB that is not
#   blank, `label HEX`, `error OFFSET REASON`, `data OFFSET COUNT`, `read COUNT`, each ended by NUL; at last `end`.
# Exit status: not used; an answer without `end` was cut short.
# Needs perl, Python 3.6, or dd of coreutils.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

export LC_ALL=C
perl=$1 python=$2
shift 2
command -v perl >/dev/null && exec perl -e "$perl" "$@"
interpreter=$(command -v python3 || command -v /usr/libexec/platform-python)
[ -z "$interpreter" ] || exec "$interpreter" -I -S -c "$python" "$@"

# With neither, one dd a spot: an eighth of them, and only 0x00 and 0xff count as blank.
spots=$((($1 + 7) / 8))
shift
mib=1048576
said() { printf '%s\0' "$1"; }
# $1 device, $2 offset, $3 bytes; to standard output.
bytes() { dd if="$1" bs="$3" iflag=direct,skip_bytes,count_bytes skip="$2" count="$3" 2>/dev/null; }
hex() { od -An -v -tx1 | tr -d ' \n'; }
# Sets state to blank, data or an error. What cannot be read is read again for its message.
look() {
    zeroes=$(bytes "$1" "$2" "$3" | tr -cd '\000' | wc -c)
    ones=0
    [ "$zeroes" -gt 0 ] || ones=$(bytes "$1" "$2" "$3" | tr -cd '\377' | wc -c)
    state=data
    if [ "$zeroes" -eq "$3" ] || [ "$ones" -eq "$3" ]; then state=blank; fi
    [ "$state" = blank ] || [ "$(bytes "$1" "$2" "$3" | wc -c)" -eq "$3" ] || state=error
}
why() {
    text=$(dd if="$1" bs="$3" iflag=direct,skip_bytes,count_bytes skip="$2" count="$3" 2>&1 >/dev/null | head -n 1)
    case $text in *": "*) text=${text##*: } ;; *) text='short read' ;; esac
    said "error $2 $text"
}
sample() {
    said "drive $1"
    count=0 found=0 at='' failed=0 labelled=
    first=$mib
    [ "$2" -ge "$first" ] || first=$2
    look "$1" 0 "$first"
    case $state in
    error) why "$1" 0 "$first"; failed=1 ;;
    data)
        page=0
        while [ "$page" -lt "$first" ]; do
            length=4096
            [ $((first - page)) -ge 4096 ] || length=$((first - page))
            look "$1" "$page" "$length"
            if [ "$state" = data ]; then
                all=$(bytes "$1" "$page" "$length" | hex)
                said "page $page $(printf %.32s "$all") ${all#"${all%????????????????????????????????}"}"
                [ "$page" -gt 0 ] || said "label $all"
                # Only behind a label it matters what else is there.
                case $page/$all in 0/7079746573742d73736471*) labelled=yes ;; 0/*) break ;; esac
            fi
            page=$((page + length))
        done
        ;;
    esac
    count=$((count + 1))
    [ -z "$labelled" ] || { said "read $count"; return; }
    last=$(($2 - mib)) random=1 number=0
    [ "$last" -ge "$first" ] || last=$first
    blocks=$(((last - first) / 4096))
    [ "$blocks" -gt 0 ] || spots=0
    while [ "$number" -le "$spots" ] && [ "$failed" -eq 0 ]; do
        length=4096
        if [ "$number" -eq "$spots" ]; then
            spot=$last length=$(($2 - last))
            [ "$length" -gt 0 ] || break
        else
            random=$(((random * 1103515245 + 12345) % 2147483648))
            # shellcheck disable=SC2017  # whole pages
            spot=$((first + (number * 65536 + random / 32768) * blocks / (spots * 65536) * 4096))
        fi
        look "$1" "$spot" "$length"
        case $state in
        error) why "$1" "$spot" "$length"; failed=1 ;;
        data) found=$((found + 1)); at=${at:-$spot} ;;
        esac
        count=$((count + 1)) number=$((number + 1))
    done
    [ -z "$at" ] || said "data $at $found"
    said "read $count"
}
while [ $# -gt 0 ]; do
    sample "$1" "$2"
    shift 2
done
said end
