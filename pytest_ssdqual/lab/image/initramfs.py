"""Debian packages → one initramfs, in memory: no root, nothing installed, no mknod.

Reading the packages' tar streams and writing the cpio archive ourselves keeps owners and set-uid bits right
for an ordinary user; ``dpkg-deb -x`` would need fakeroot for that, and the guest's sudo refuses to run then.
"""

from __future__ import annotations

import io
import stat
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from pytest_ssdqual.qual.frozen import frozen

#: Root-level directories that every supported release has merged into /usr; older packages still name them.
MERGED = ("bin", "sbin", "lib", "lib64")


@frozen
class Entry:
    """One file, directory or symbolic link of the guest."""

    #: With the file-type bits.
    mode: int
    #: A file's content, a symbolic link's target.
    data: bytes = b""
    uid: int = 0
    gid: int = 0


def directory(mode: int = 0o755, uid: int = 0) -> Entry:
    return Entry(stat.S_IFDIR | mode, uid=uid, gid=uid)


def regular(data: bytes, mode: int = 0o644, uid: int = 0) -> Entry:
    return Entry(stat.S_IFREG | mode, data, uid=uid, gid=uid)


def symlink(target: str) -> Entry:
    return Entry(stat.S_IFLNK | 0o777, target.encode())


def normal(path: str) -> str:
    """The path without leading ``./`` and with /usr merged: ``./bin/sh`` → ``usr/bin/sh``."""
    bare = str(PurePosixPath(path.removeprefix("./")))
    first, _, _ = bare.partition("/")
    return f"usr/{bare}" if first in MERGED else bare


@dataclass(slots=True)
class FileTree:
    """The guest's files by normal path; later additions replace earlier ones."""

    entries: dict[str, Entry] = field(default_factory=dict)

    def add(self, path: str, entry: Entry) -> None:
        """Add an entry and the directories above it, unless they are there already."""
        for parent in reversed(PurePosixPath(path).parents[:-1]):
            self.entries.setdefault(str(parent), directory())
        self.entries[path] = entry


def package_entries(package: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Entry]]:
    """The wanted files of a package; a hard link becomes a symbolic link to its first name.

    Raises ``subprocess.CalledProcessError`` if the package cannot be read.
    """
    argv = ["dpkg-deb", "--fsys-tarfile", str(package)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as unpacker:
        stream = unpacker.stdout or io.BytesIO()
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                path = normal(member.name)
                if path == "." or not wanted(path):
                    continue
                entry = _entry(archive, member)
                if entry is not None:
                    yield path, entry
        # tar pads its last record; dpkg-deb must not die of a closed pipe
        while stream.read(1 << 16):
            pass
    if unpacker.returncode:
        raise subprocess.CalledProcessError(unpacker.returncode, argv)


def _entry(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Entry | None:
    if member.isdir():
        return Entry(stat.S_IFDIR | member.mode, b"", member.uid, member.gid)
    if member.issym():
        return symlink(member.linkname)
    if member.islnk():
        return symlink("/" + normal(member.linkname))
    if not member.isfile():
        return None
    content = archive.extractfile(member)
    return Entry(stat.S_IFREG | member.mode, content.read() if content else b"", member.uid, member.gid)


def cpio(entries: Mapping[str, Entry]) -> Iterator[bytes]:
    """The archive in the kernel's "newc" format (Documentation/driver-api/early-userspace/buffer-format.rst).

    Sorted and without times, so that equal inputs give equal bytes.
    """
    for number, path in enumerate(sorted(entries), start=1):
        yield from _record(number, path, entries[path])
    yield from _record(0, "TRAILER!!!", Entry(0))


def _record(number: int, path: str, entry: Entry) -> Iterator[bytes]:
    name = path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    #         inode, mode, uid, gid, links, mtime, size, device ×4, name size, checksum
    fields = (number, entry.mode, entry.uid, entry.gid, links, 0, len(entry.data), 0, 0, 0, 0, len(name), 0)
    header = b"070701" + b"".join(b"%08X" % value for value in fields)
    yield header + name + bytes(-(len(header) + len(name)) % 4)
    yield entry.data
    yield bytes(-len(entry.data) % 4)
