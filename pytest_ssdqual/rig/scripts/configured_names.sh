# What configuration files of the machine say: at most the first MiB of each, without NUL.
#
# Arguments: none.
# Output: records `file PATH` and `text TEXT`, each ended by NUL; at last `end`.
# Exit status: not used; an answer without `end` was cut short.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

for file in /etc/fstab /etc/crypttab /etc/mdadm.conf /etc/mdadm/mdadm.conf /etc/mdadm.conf.d/*.conf \
    /etc/mdadm/mdadm.conf.d/*.conf /etc/multipath.conf /etc/multipath/conf.d/*.conf \
    /etc/libvirt/qemu/*.xml /etc/libvirt/storage/*.xml; do
    [ -f "$file" ] && [ -r "$file" ] || continue
    printf 'file %s\0text ' "$file"
    head -c 1048576 "$file" | tr -d '\000'
    printf '\0'
done
printf 'end\0'
