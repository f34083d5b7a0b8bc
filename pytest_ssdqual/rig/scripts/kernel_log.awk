# Pick from the kernel's log the messages about an array, its drives, and what they hang on.
#
# likely: patterns of 64 drives take 160 microseconds a message in mawk, words 3.
#
# Input: /dev/kmsg (form k) or dmesg (form t).
# Arguments: none. Environment: `form`; `since`: `new`, or k and the number of the last message read before, or t and
#   its time stamp; `names`: those of devices, `+` before what other drives may hang on, too; `array`: its kernel name.
# Output: `==kernel MARK MORE LOST`: where the log ends, how many messages were left out, whether some were overwritten;
#   of each message `LEVEL SECONDS TEXT`; nothing if the input has no message.
# Exit status: 0. Runs with mawk, gawk and busybox awk.

BEGIN {
    form = ENVIRON["form"]; fresh = ENVIRON["since"] == "new"; since = substr(ENVIRON["since"], 2) + 0
    sync = "^md: .* of RAID array " ENVIRON["array"] "$"
    words = split(ENVIRON["names"], name, " ")
    for (i = 1; i <= words; i++) {
        word = name[i]; shared = sub(/^[+]/, "", word)
        if (word in known) continue
        known[word] = 1
        start = word; sub(/[^A-Za-z0-9].*/, "", start); begins[start] = 1
        before = word ~ /^[0-9]/ ? "(^|[^A-Za-z0-9_.:])" : "(^|[^A-Za-z0-9_])"
        gsub(/[.]/, "[.]", word)
        pattern[shared] = pattern[shared] "|" before word
    }
    for (i in pattern) pattern[i] = "(" substr(pattern[i], 2) ")($|[^A-Za-z0-9.]|[.]($|[^0-9]))"
}
function anothers(text) {
    while (match(text, /[0-9a-f]+:[0-9a-f][0-9a-f]:[0-9a-f][0-9a-f][.][0-7]/)) {
        if (!(substr(text, RSTART, RLENGTH) in known)) return 1
        text = substr(text, RSTART + RLENGTH)
    }
    return 0
}
function likely(text,    parts, part) {
    parts = split(text, part, /[^A-Za-z0-9]+/)
    for (i = 1; i <= parts; i++) if (part[i] in begins) return 1
    return 0
}
function ours(text) {
    if (!likely(text)) return 0
    return (0 in pattern) && text ~ pattern[0] || (1 in pattern) && text ~ pattern[1] && !anothers(text)
}
form == "k" && /^[0-9]+,[0-9]+,[0-9]+,[^;]*;/ {
    text = substr($0, index($0, ";") + 1)
    split($0, head, ",")
    level = head[1] % 8; mark = head[2]; time = head[3] / 1000000
    missed = read ? mark + 0 != before_it + 1 : mark + 0 > since + 1
}
form == "t" && match($0, /^\[ *[0-9]+[.][0-9]+\](\[ *[TC][0-9]+\])? /) {
    text = substr($0, RLENGTH + 1)
    level = "-"; mark = $0
    sub(/^\[ */, "", mark); sub(/\].*/, "", mark)
    time = mark + 0
    missed = !read && time > since
}
mark == "" { next }
{
    read = 1; before_it = mark + 0; end = mark; mark = ""
    if (fresh || before_it <= since) next
    if (missed) lost = 1
    if (!ours(text)) next
    if (kept >= 40 && !(text ~ sync && kept < 80)) { more++; next }
    line[++kept] = sprintf("%s %.6f %s", level, time, substr(text, 1, 1000))
}
END {
    if (!read) exit
    printf "==kernel %s%s %d %d\n", form, end, more, lost
    for (i = 1; i <= kept; i++) print line[i]
}
