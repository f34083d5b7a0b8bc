# Load the kernel's md driver and its levels, or ask whether it could be. mdadm 4.5 does not load md_mod itself (systemd#40533).
#
# A container may lack modprobe or the modules' folder although the kernel of its host loads a module by itself when an
# array needs it, so only a modprobe that has the folder of this kernel can tell that a module does not exist.
#
# Arguments: $1 `-n` to load nothing, or an empty word; $2... names of modules: `raid0`, `raid1`, `raid10`, `raid456`.
# Output: of each module that the kernel does not have a line: its name, a colon, and what modprobe said; nothing after
#   the colon if it is not known whether the kernel has the module.
# Exit status: 0.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

root=
only_ask=$1
shift
mdstat=$root/proc/mdstat
# The level raid5 stands for the module raid456 in /proc/mdstat.
is_loaded() {
    case $1 in
    md_mod) [ -e "$mdstat" ] ;;
    raid456) grep -qs '^Personalities :.*\[raid5\]' "$mdstat" ;;
    *) grep -qs "^Personalities :.*\[$1\]" "$mdstat" ;;
    esac
}
for module in md_mod "$@"; do
    is_loaded "$module" && continue
    said=$(modprobe ${only_ask:+"$only_ask"} "$module" 2>&1) && continue
    is_loaded "$module" && continue
    if [ -d "$root/lib/modules/$(uname -r)" ] && command -v modprobe >/dev/null; then
        printf '%s: %s\n' "$module" "$(printf '%s\n' "$said" | tail -n 1)"
    else printf '%s:\n' "$module"
    fi
done
exit 0
