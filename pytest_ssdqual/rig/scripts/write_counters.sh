# What the kernel has counted on drives. An NVMe drive of a subsystem with several controllers is a head (nvme0n1) above
# hidden paths (nvme0c1n1), and kernels before 6.4 count on the paths only. diskseq (since 5.15) tells one appearance of
# a drive from the next.
#
# Arguments: $1... kernel names of drives, as sysfs spells them.
# Output: `boot ID`; of each drive, then of each of its paths `NAME DISKSEQ STAT...` (diskseq is 0 where there is none).
# Exit status: not used.
# Shells: dash, bash, busybox sh.
# shellcheck shell=dash

read -r boot </proc/sys/kernel/random/boot_id && echo "boot $boot"
for k; do
    for d in "/sys/block/$k" "/sys/block/${k%n*}"c[0-9]*"n${k##*n}"; do
        [ -r "$d/stat" ] || continue
        appearance=0
        [ -r "$d/diskseq" ] && read -r appearance <"$d/diskseq"
        read -r counts <"$d/stat" && echo "$k $appearance $counts"
    done
done
