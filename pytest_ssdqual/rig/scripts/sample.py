# Samples of what is on devices, with a child for each device, by Python 3.6 or later; see sample.sh.
#
# Arguments: hundredths of a second, least number of drawn places, seed; of each device path, size and known places.
# Output: see sample.sh.
# Exit status: not 0 if a sample was cut short.

import mmap
import os
import sys
import time

MIB, PAGE, MOST_ERRORS = 1 << 20, 4096, 3
# As in sample.pl, so that both draw the same places.
BITS, STEP = 52, 2783377641436327


def is_uniform(page: bytes) -> bool:
    return page.count(page[:1]) == len(page)


class Sample:
    def __init__(self, path: str, size: int) -> None:
        self.path, self.size = path, size
        self.records: list[bytes] = []
        self.first_found: int | None = None
        self.count = self.errors = 0
        self.filling = b""

    def say(self, text: str) -> None:
        self.records.append(os.fsencode(text) + b"\0")

    def fail(self, at: int, why: object) -> None:
        self.errors += 1
        self.say(f"error {at} {why}")

    def get(self, at: int, length: int) -> bytes:
        try:
            # os.preadv is Python 3.7's; RHEL 8's platform-python is 3.6.
            os.lseek(self.device, at, os.SEEK_SET)
            got = os.readv(self.device, [memoryview(self.memory)[:length]])
        except OSError as problem:
            self.fail(at, problem.strerror)
            return b""
        if got != length:
            self.fail(at, "short read")
            return b""
        self.count += 1
        return self.memory[:length]

    def is_blank(self, page: bytes) -> bool:
        byte = page[:1]
        if not is_uniform(page):
            return False
        if byte not in (b"\0", b"\xff"):
            self.filling = self.filling or byte
        return byte in (b"\0", b"\xff", self.filling)

    def pages(self, at: int, length: int) -> "list[tuple[int, bytes]]":
        """Read a stretch; return its pages that are not blank."""
        stop, found = at + length, []
        while at < stop and self.errors < MOST_ERRORS:
            data = self.get(at, min(stop - at, MIB))
            every = [(at + place, data[place : place + PAGE]) for place in range(0, len(data), PAGE)]
            found += [(place, page) for place, page in every if not self.is_blank(page)]
            at += MIB
        return found

    def keep(self, at: int) -> None:
        self.first_found = at if self.first_found is None else self.first_found

    def look(self, at: int, length: int) -> None:
        for place, _ in self.pages(at, length):
            self.keep(place)

    def head(self, first: int) -> bool:
        """Read the first MiB; return whether it begins with a label."""
        is_labelled = False
        for at, page in self.pages(0, first):
            if is_uniform(page):
                self.keep(at)
                continue
            self.say(f"page {at} {page[:16].hex()} {page[-16:].hex()}")
            if at == 0 and page.startswith(b"pytest-ssdq"):
                is_labelled = True
                self.say("label " + page.hex())
        return is_labelled

    def drawn(self, first: int, last: int, least: int, seed: int, end: float) -> None:
        blocks, place, number = (last - first) // PAGE, seed, 0
        while blocks > 0 and self.first_found is None and self.errors < MOST_ERRORS:
            if number >= least and time.monotonic() >= end:
                return
            place = (place + STEP) % (1 << BITS)
            self.look(first + (place * blocks >> BITS) * PAGE, PAGE)
            number += 1

    def run(self, known: str, end: float, least: int, seed: int) -> None:
        self.say("drive " + self.path)
        try:
            self.device = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_DIRECT)
        except OSError as problem:
            self.fail(0, problem.strerror)
        else:
            # O_DIRECT wants memory that begins on a page.
            self.memory = mmap.mmap(-1, MIB)
            first = min(self.size, MIB)
            if self.head(first):
                self.first_found = None
            else:
                for stretch in [] if known == "-" else known.split(","):
                    self.look(*map(int, stretch.split(":")))
                last = max(self.size - MIB, first)
                self.look(last, self.size - last)
                self.drawn(first, last, least, seed, end)
        if self.first_found is not None:
            self.say(f"data {self.first_found}")
        self.say(f"read {self.count}")


seconds, least, seed = int(sys.argv[1]) / 100, int(sys.argv[2]), int(sys.argv[3])
devices, pipes = sys.argv[4:], []
for path, size, known in zip(devices[::3], devices[1::3], devices[2::3]):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        sample = Sample(path, int(size))
        sample.run(known, time.monotonic() + seconds, least, seed)
        with open(writing, "wb") as pipe:  # noqa: PTH123 (a descriptor)
            pipe.write(b"".join(sample.records))
        os._exit(0)
    os.close(writing)
    pipes.append((child, reading))
for child, reading in pipes:
    with open(reading, "rb") as end_of_pipe:  # noqa: PTH123 (a descriptor)
        records = end_of_pipe.read()
    if os.waitpid(child, 0)[1]:
        sys.exit("a sample was cut short")
    sys.stdout.buffer.write(records)
sys.stdout.buffer.write(b"end\0")
