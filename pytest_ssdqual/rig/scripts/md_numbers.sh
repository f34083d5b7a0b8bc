# Names of md arrays that exist on the machine, or that its configuration gives to an array.
#
# Arguments: none.
# Output: words, among them `mdN` for each number that is taken. A link /dev/md/7 and `ARRAY /dev/md/7` are `md7`.
# Exit status: 0.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

root=
for f in "$root"/sys/block/*; do echo "${f##*/}"; done
for f in "$root"/dev/md/[0-9]*; do echo "md${f##*/}"; done
cat "$root/proc/mdstat" "$root/etc/mdadm.conf" "$root/etc/mdadm/mdadm.conf" "$root"/etc/mdadm.conf.d/*.conf \
    "$root"/etc/mdadm/mdadm.conf.d/*.conf 2>/dev/null |
    sed -n -e 's/^\(md[0-9][0-9]*\) :.*/\1/p' -e 's:^[Aa][Rr][Rr][^#]*/dev/md/\{0,1\}\([0-9][0-9]*\).*:md\1:p'
exit 0
