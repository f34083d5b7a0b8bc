# Remove md arrays that are only a name: a process, mostly udev's, that opened a node when its array had just been
# stopped made the kernel create a new one without members (create_on_open), which stays until the next boot.
#
# They are not opened for that. The kernel says `clear` if an array has no members, no size and no level; a process that
# has the node open keeps it, and can still make an array of it (do_md_stop, drivers/md/md.c).
#
# Arguments: $1... kernel names of arrays.
# Output: the names of those that were removed, a line each.
# Exit status: 0.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

root=
for name; do
    md=$root/sys/block/$name/md state='' disks=''
    { read -r state <"$md/array_state" && read -r disks <"$md/raid_disks"; } 2>/dev/null
    [ "$state" = clear ] && [ "${disks:-0}" = 0 ] || continue
    for member in "$md"/dev-* "$root/sys/block/$name"/slaves/* "$root/sys/block/$name"/holders/*; do
        if [ -e "$member" ] || [ -L "$member" ]; then continue 2; fi
    done
    { echo clear >"$md/array_state"; } 2>/dev/null && echo "$name"
done
exit 0
