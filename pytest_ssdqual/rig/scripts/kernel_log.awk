# Pick from the kernel's log the messages about an array, its drives, what they hang on, and faults of the whole host.
#
# likely: patterns of 64 drives take 160 microseconds a message in mawk, words 3.
# canonical: the IOMMU, aacraid and arcmsr spell addresses in forms of their own; sysfs' spelling is added to the text.
# rank: of a flood the most severe are kept, and of messages that differ only in numbers the first REPEATS before the
#   rest: 60 corrected PCIe errors have the severity of one NVMe timeout.
# host: faults of the host that name no device, the patterns of qual/validity/fault_signatures.py; one that names a PCI
#   device counts only for our own.
# record: firmware's error records (GHES) have many lines of one number; all are kept unless one names another device.
#
# Input: /dev/kmsg (form k) or dmesg (form t).
# Arguments: none. Environment: `form`; `since`: `new`, or k and the number of the last message read before, or t and
#   its time stamp; `names`: those of devices, `+` before what other drives may hang on, too; `array`: its kernel name.
# Output: `==kernel MARK MORE LOST`: where the log ends, how many messages were left out, whether some were overwritten;
#   of each message `LEVEL SECONDS TEXT`, in the order of the log; nothing if the input has no message.
# Exit status: 0. Runs with mawk, gawk and busybox awk.

BEGIN {
    MOST = 40; REPEATS = 3; LAST_RANK = 9
    form = ENVIRON["form"]; fresh = ENVIRON["since"] == "new"; since = substr(ENVIRON["since"], 2) + 0
    sync = "^md: .* of RAID array " ENVIRON["array"] "$"
    hung = "^INFO: task .* blocked .*for more than [0-9]+ seconds"
    firmware = "^[{][0-9]+[}]\\[Hardware Error\\]: "
    host = "@HOST@"
    iommu = "DMAR: ?\\[.*\\] Request device \\[|AMD-Vi: Event logged \\["
    words = split(ENVIRON["names"], name, " ")
    # md's message about a failed superblock names no array.
    if (ENVIRON["array"] != "-") name[++words] = "+super_written"
    for (i = 1; i <= words; i++) {
        word = name[i]; shared = sub(/^[+]/, "", word)
        if (word in known) continue
        known[word] = 1
        start = word; sub(/[^A-Za-z0-9].*/, "", start); begins[start] = 1
        before = word ~ /^[0-9]/ ? "(^|[^A-Za-z0-9_.:])" : "(^|[^A-Za-z0-9_])"
        if (split(word, part, ":") == 4) target[part[1] " " part[3] " " part[4]] = 1
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
# The text with sysfs' spelling of addresses; empty if an address of another device's is recognised.
function canonical(text,    part, host) {
    if (text ~ iommu && match(text, /(\[|device=)[0-9a-f][0-9a-f]:[0-9a-f][0-9a-f][.][0-7]/)) {
        host = substr(text, RSTART, RLENGTH); sub(/.*[=[]/, "", host)
        return text " 0000:" host
    }
    if (text ~ /^aacraid: / && match(text, /\([0-9]+,[0-9]+,[0-9]+,[0-9]+\)/)) {
        host = substr(text, RSTART + 1, RLENGTH - 2); gsub(/,/, ":", host)
        return host in known ? text : ""
    }
    if (match(text, /^arcmsr[0-9]+: .*scsi id = [0-9]+ lun = [0-9]+/)) {
        split(text, part, /[^0-9]+/)
        return (part[2] " " part[3] " " part[4]) in target ? text : ""
    }
    return text
}
function ours(text) {
    if (text ~ hung) return 1
    text = canonical(text)
    if (text ~ host && !anothers(text)) return 1
    if (!likely(text)) return 0
    return (0 in pattern) && text ~ pattern[0] || (1 in pattern) && text ~ pattern[1] && !anothers(text)
}
function rank(level, text,    shape) {
    if (text ~ sync) return 0
    shape = text; gsub(/[0-9a-f]*[0-9][0-9a-f]*/, "#", shape)
    if (++repeated[shape] > REPEATS) return LAST_RANK
    if (text ~ hung || text ~ iommu || text ~ firmware || text ~ host) return 1
    if (level != "-") return level + 1
    if (text ~ /[Ee]rror|[Ff]ail|FAIL|[Tt]imeout|[Aa]bort|exception|reset|fault/) return 4
    return 7
}
# md's own messages have places of their own, because checks read them.
function keep(position, level, time, text,    at) {
    matching++
    at = rank(level, text)
    if (held[at] >= MOST) return
    line[at, ++held[at]] = sprintf("%s %.6f %s", level, time, substr(text, 1, 1000))
    order[at, held[at]] = position
}
function record(    j) {
    for (j = 1; j <= lines && !foreign; j++) keep(at_line[j], at_level[j], at_time[j], at_text[j])
    lines = 0; foreign = 0; number = ""
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
    if (text ~ firmware) {
        if (substr(text, 1, index(text, "}")) != number) record()
        number = substr(text, 1, index(text, "}"))
        if (lines < MOST) {
            at_line[++lines] = NR; at_level[lines] = level; at_time[lines] = time; at_text[lines] = text
        }
        if (anothers(text)) foreign = 1
        next
    }
    if (!ours(text)) next
    keep(NR, level, time, text)
}
END {
    if (!read) exit
    record()
    left = MOST
    for (at = 0; at <= LAST_RANK; at++) {
        for (j = 1; j <= held[at] && (at == 0 || left-- > 0); j++) { kept++; chosen[order[at, j]] = line[at, j] }
    }
    printf "==kernel %s%s %d %d\n", form, end, matching - kept, lost
    for (j = 1; j <= NR; j++) if (j in chosen) print chosen[j]
}
