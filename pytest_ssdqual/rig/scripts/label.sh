# The first MiB of $1 becomes what comes in by standard input, a page, and zeroes behind it.
{ cat && head -c 1044480 /dev/zero; } | dd of="$1" bs=1048576 count=1 iflag=fullblock oflag=direct conv=notrunc,fsync
