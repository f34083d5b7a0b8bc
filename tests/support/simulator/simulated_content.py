"""What ``rig.guard.sampling`` and ``rig.guard.configured_names`` hear of devices that were never there: blank,
labelled, or full of data.
"""

from __future__ import annotations

import gzip
import os
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_ssdqual.rig.drives import answers
from pytest_ssdqual.rig.guard import configured_names, label, sampling


def record(
    path: str, *, page: bytes = b"", data_at: int | None = None, error: str = "", is_member: bool = False
) -> bytes:
    """The sample of one device; ``page`` is its first 4 KiB, ``error`` what the kernel says to every read."""
    said = [f"drive {path}"]
    if error:
        said += [f"error 0 {error}", "read 0"]
        return "".join(f"{each}\0" for each in said).encode()
    if page.strip(b"\0"):
        said += [f"page 0 {page[:16].hex()} {page[-16:].hex()}"]
        said += [f"label {page.hex()}"] if page.startswith(b"pytest-ssdq") else []
    if is_member:
        said.append(f"page 4096 {label.MD_SUPERBLOCK.ljust(32, '0')} {32 * '0'}")
    if data_at is not None:
        said.append(f"data {data_at}")
    said.append("read 194")
    return "".join(f"{each}\0" for each in said).encode()


@dataclass
class Contents:
    """By path; what is not mentioned is blank."""

    #: The first page, where it is not blank.
    pages: dict[str, bytes] = field(default_factory=dict)
    #: Where there is data behind the first MiB.
    data: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    #: Devices that answer no read.
    silent: set[str] = field(default_factory=set)
    #: Of members of an array: the superblock's page, and what is at the array's data offset.
    members: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    #: Configuration files and their text, and the device numbers (``8 10``, hexadecimal) of paths.
    files: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of_environment(cls) -> Contents:
        """``SIMULATED_DATA`` and ``SIMULATED_UNREADABLE`` hold paths: of devices with data, of those that fail."""
        data, unreadable = (os.environ.get(f"SIMULATED_{name}", "").split() for name in ("DATA", "UNREADABLE"))
        return cls(data=dict.fromkeys(data, 1 << 20), errors=dict.fromkeys(unreadable, "Input/output error"))

    def answer(self, argv: Sequence[str], stdin: bytes | None = None) -> bytes | None:
        """What the machine says to one of the scripts; None for any other command."""
        if tuple(argv[:2]) != ("sh", "-c"):
            return None
        script, arguments = argv[2], argv[4:]
        if script == sampling.SCRIPT and argv[3] == "sample":
            return b"".join(map(self._sample, arguments[5::3])) + b"end\0"
        if script == label.SCRIPT:
            self.pages[arguments[0]] = stdin or b""
            return b""
        if script == label.RAW:
            superblock, head = self.members[arguments[0]]
            return gzip.compress(superblock if int(arguments[1]) == sampling.PAGE_BYTES else head[: int(arguments[2])])
        if script == answers.AWAIT:
            silent = [path for path in arguments[1:] if path in self.silent]
            return "".join([*(f"{path} 1\n" for path in silent), f"end {arguments[0] if silent else 0}\n"]).encode()
        if script == configured_names.FILES:
            return "".join(f"file {file}\0text {text}\0" for file, text in self.files.items()).encode() + b"end\0"
        if script == configured_names.RESOLVE:
            return "".join(f"{self.numbers.get(path, '-')}\0" for path in arguments).encode() + b"end\0"
        return None

    def _sample(self, path: str) -> bytes:
        return record(
            path,
            page=self.pages.get(path, b""),
            data_at=self.data.get(path),
            error=self.errors.get(path, ""),
            is_member=path in self.members,
        )

    def wipe(self, path: str) -> None:
        """The whole device is blank again."""
        self.pages.pop(path, None)
        self.data.pop(path, None)


def superblock(uuid: str, chunk_bytes: int = 64 << 10, data_offset_bytes: int = 1 << 20) -> bytes:
    """The page of one of md, version 1.2."""
    page = bytearray(sampling.PAGE_BYTES)
    page[:4], page[16:32] = bytes.fromhex(label.MD_SUPERBLOCK), bytes.fromhex(uuid)
    struct.pack_into("<I", page, 88, chunk_bytes // 512)
    struct.pack_into("<Q", page, 128, data_offset_bytes // 512)
    return bytes(page)


def labelled(paths: Mapping[str, str], filled: Collection[str] = ()) -> Contents:
    """Devices with the label of an owner; ``filled`` ones hold data behind it."""
    pages = {path: label.page(owner) for path, owner in paths.items()}
    return Contents(pages, dict.fromkeys(filled, 1 << 20))
