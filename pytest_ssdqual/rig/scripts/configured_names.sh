# What configuration files of the machine say: at most the first MiB of each, without NUL.
#
# The image of this program has links to the first files (Containerfile); of the others it has the host's folder.
#
# Arguments: none.
# Output: records `file PATH` and `text TEXT`, each ended by NUL; at last `end`.
# Exit status: not used; an answer without `end` was cut short.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

root=
show() {
    for file; do
        [ -f "$file" ] && [ -r "$file" ] || continue
        printf 'file %s\0text ' "$file"
        head -c 1048576 "$file" | tr -d '\000'
        printf '\0'
    done
}
etc=$root/etc
show "$etc/fstab" "$etc/crypttab" "$etc/mdadm.conf" "$etc/mdadm/mdadm.conf" "$etc"/mdadm.conf.d/*.conf \
    "$etc"/mdadm/mdadm.conf.d/*.conf "$etc/multipath.conf" "$etc"/multipath/conf.d/*.conf \
    "$etc"/libvirt/qemu/*.xml "$etc"/libvirt/storage/*.xml
for etc in "$root/etc" "$root/host/etc"; do
    # Mounts and swap that fstab does not have; guests; replication; exports to other machines.
    show "$etc"/systemd/system/*.mount "$etc"/systemd/system/*.swap "$etc"/auto.* "$etc"/auto.master.d/* \
        "$etc"/pve/qemu-server/*.conf "$etc"/pve/lxc/*.conf "$etc/drbd.conf" "$etc"/drbd.d/* \
        "$etc/target/saveconfig.json" "$etc/rtslib-fb-target/saveconfig.json" "$etc/nvmet/config.json" \
        "$etc"/tgt/*.conf "$etc"/tgt/conf.d/* "$etc/scst.conf" "$etc/nbd-server/config" "$etc"/nbd-server/conf.d/*
done
printf 'end\0'
