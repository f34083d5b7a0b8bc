# Samples of what is on devices, with a thread for each device, by Python 3.6 or later; see sample.sh.
#
# Arguments: the number of spots; of each device its path and its size in bytes.
# Output: see sample.sh.
# Exit status: not 0 if a sample was cut short.

import mmap
import os
import sys
import threading

MIB, PAGE, MOST_ERRORS = 1 << 20, 4096, 3


class Sample:
    def __init__(self, path: str, size: int) -> None:
        self.path, self.size = path, size
        self.records: list[bytes] = []
        self.first_found: int | None = None
        self.count = self.errors = 0
        self.done = False

    def say(self, text: str) -> None:
        self.records.append(os.fsencode(text))

    def fail(self, at: int, why: object) -> None:
        self.errors += 1
        self.say(f"error {at} {why}")

    def get(self, at: int, length: int) -> "bytes | None":
        try:
            # os.preadv is Python 3.7's; RHEL 8's platform-python is 3.6.
            os.lseek(self.device, at, os.SEEK_SET)
            got = os.readv(self.device, [memoryview(self.memory)[:length]])
        except OSError as problem:
            self.fail(at, problem.strerror)
            return None
        if got != length:
            self.fail(at, "short read")
            return None
        self.count += 1
        return self.memory[:length]

    def pages(self, at: int, length: int) -> "list[tuple[int, bytes]]":
        data = self.get(at, length) or b""
        every = [(at + place, data[place : place + PAGE]) for place in range(0, len(data), PAGE)]
        return [(place, page) for place, page in every if page.count(page[:1]) != len(page)]

    def head(self, first: int) -> bool:
        """Read the first MiB; return whether it begins with a label."""
        is_labelled = False
        for at, page in self.pages(0, first):
            self.say(f"page {at} {page[:16].hex()} {page[-16:].hex()}")
            if at == 0 and page.startswith(b"pytest-ssdq"):
                is_labelled = True
                self.say("label " + page.hex())
        return is_labelled

    def look(self, at: int, length: int) -> None:
        for place, _ in self.pages(at, length):
            self.first_found = place if self.first_found is None else self.first_found

    def rest(self, first: int, spots: int) -> None:
        last = max(self.size - MIB, first)
        blocks, random = (last - first) // PAGE, 1
        for number in range(spots if blocks > 0 else 0):
            if self.errors >= MOST_ERRORS:
                return
            random = (random * 1103515245 + 12345) % 2147483648
            self.look(first + (number * 65536 + random // 32768) * blocks // (spots * 65536) * PAGE, PAGE)
        if self.size > last and self.errors < MOST_ERRORS:
            self.look(last, self.size - last)

    def run(self, spots: int) -> None:
        self.say("drive " + self.path)
        try:
            self.device = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_DIRECT)
        except OSError as problem:
            self.fail(0, problem.strerror)
        else:
            # O_DIRECT wants memory that begins on a page.
            self.memory = mmap.mmap(-1, MIB)
            first = min(self.size, MIB)
            if not self.head(first):
                self.rest(first, spots)
        if self.first_found is not None:
            self.say(f"data {self.first_found}")
        self.say(f"read {self.count}")
        self.done = True


spots, devices = int(sys.argv[1]), sys.argv[2:]
samples = [Sample(path, int(size)) for path, size in zip(devices[::2], devices[1::2])]
threads = [threading.Thread(target=sample.run, args=(spots,)) for sample in samples]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for sample in samples:
    if not sample.done:
        sys.exit("a sample was cut short")
    for record in sample.records:
        sys.stdout.buffer.write(record + b"\0")
sys.stdout.buffer.write(b"end\0")
