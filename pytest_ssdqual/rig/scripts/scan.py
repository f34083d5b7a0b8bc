# Reads ranges of a device and looks for data that begin each 16 bytes with known ones, by Python 3.6 or later; see
# scan.pl. Only the checksum is another one. Arguments, output and exit status: see there.

import mmap
import os
import sys
import zlib

known, path, *words = sys.argv[1:]
device = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_DIRECT)
# O_DIRECT wants memory that begins on a page.
memory = mmap.mmap(-1, 1 << 20)
while words:
    begin, length, *words = words
    read, old, checksum = 0, "-", 0
    fills = set()
    os.lseek(device, int(begin), os.SEEK_SET)
    while read < int(length):
        try:
            # os.preadv is Python 3.7's; RHEL 8's platform-python is 3.6.
            got = os.readv(device, [memoryview(memory)[: int(length) - read]])
        except OSError:
            break
        if not got:
            break
        data = memory[:got]
        at = data.find(bytes.fromhex(known))
        if at >= 0 and old == "-":
            old = str(int(begin) + read + at)
        fills.add(data[0] if data.count(data[:1]) == got else "-")
        checksum = zlib.crc32(data, checksum)
        read += got
    print(read, old, fills.pop() if len(fills) == 1 else "-", checksum)
