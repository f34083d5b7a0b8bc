"""A distribution's kernel package → what the lab boots: an uncompressed kernel and only the modules it needs."""

from __future__ import annotations

import lzma
import re
import shutil
import struct
import subprocess
import zlib
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from pytest_ssdqual.qual.frozen import frozen

_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")
_ALIAS = re.compile(rb"\0alias=([^\0]+)(?=\0)")
_SUFFIX = re.compile(r"\.ko(\.gz|\.xz|\.zst)?$")


@frozen
class Module:
    """One kernel module, uncompressed."""

    name: str
    #: Where it lies in the package, without the suffix of a compression.
    path: str
    image: bytes

    @property
    def depends(self) -> tuple[str, ...]:
        found = _DEPENDS.search(self.image)
        return tuple(part.decode() for part in found[1].split(b",") if part) if found else ()

    @property
    def aliases(self) -> tuple[str, ...]:
        return tuple(alias.decode() for alias in _ALIAS.findall(self.image))


def is_module(path: str) -> bool:
    return _SUFFIX.search(path) is not None


def load_order(packed: Mapping[str, bytes], wanted: Iterable[str]) -> tuple[Module, ...]:
    """The wanted modules and all they depend on, each after its dependencies.

    ``packed`` maps paths to the files of the kernel package. A wanted module that the package does not have is
    left out: it is built in, or of another processor.
    """
    paths = {_SUFFIX.sub("", PurePosixPath(path).name).replace("-", "_"): path for path in packed if is_module(path)}
    order: dict[str, Module] = {}

    def visit(name: str) -> None:
        path = paths.get(name.replace("-", "_"))
        if path is None or name in order:
            return
        module = Module(name, _SUFFIX.sub(".ko", path), inflate(packed[path]))
        for dependency in module.depends:
            visit(dependency.replace("-", "_"))
        order[name] = module

    for name in wanted:
        visit(name.replace("-", "_"))
    return tuple(order.values())


def dependency_table(modules: Iterable[Module], root: str) -> bytes:
    """The text of ``modules.dep``, for busybox's modprobe, which the kernel calls by itself."""
    by_name = {module.name: module for module in modules}

    def closure(module: Module) -> list[str]:
        found: list[str] = []
        for dependency in module.depends:
            below = by_name[dependency.replace("-", "_")]
            found += [below.path.removeprefix(root), *closure(below)]
        return list(dict.fromkeys(found))

    lines = [f"{module.path.removeprefix(root)}: {' '.join(closure(module))}".rstrip() for module in by_name.values()]
    return "".join(f"{line}\n" for line in lines).encode()


def alias_table(modules: Iterable[Module]) -> bytes:
    """The text of ``modules.alias``: ``md-level-5`` and ``dm-crypt`` are asked for by such names."""
    return "".join(f"alias {alias} {module.name}\n" for module in modules for alias in module.aliases).encode()


def vmlinux(image: bytes) -> bytes:
    """The kernel inside a bzImage if it can be unpacked here and booted directly, else the bzImage itself.

    Decompression is the slowest part of an emulated boot. The payload's place is in the setup header
    (Documentation/arch/x86/boot.rst); all compressions but gzip have the unpacked size appended. QEMU can start
    an ELF kernel only through its PVH entry point.
    """
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    payload = image[start : start + length]
    try:
        kernel = inflate(payload if payload.startswith(b"\x1f\x8b") else payload[:-4])
    except (OSError, subprocess.CalledProcessError, lzma.LZMAError, zlib.error):
        return image
    return kernel if has_pvh_entry(kernel) else image


def inflate(data: bytes) -> bytes:
    """Decompress what begins like a compressed file; anything else is returned as it is.

    Raises ``OSError`` if the tool for the format is not installed.
    """
    if data.startswith(b"\x1f\x8b"):
        return zlib.decompress(data, wbits=31)
    if data.startswith(b"\xfd7zXZ"):
        return lzma.decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        return _piped("zstd", data)
    if data.startswith((b"\x02\x21\x4c\x18", b"\x04\x22\x4d\x18")):
        return _piped("lz4", data)
    return data


def _piped(tool: str, data: bytes) -> bytes:
    found = shutil.which(tool)
    if found is None:
        raise FileNotFoundError(tool)
    return subprocess.run([found, "-dc"], input=data, capture_output=True, check=True).stdout


def has_pvh_entry(kernel: bytes) -> bool:
    """Whether an ELF kernel has the note XEN_ELFNOTE_PHYS32_ENTRY (18), owner "Xen"."""
    if not kernel.startswith(b"\x7fELF\x02\x01"):
        return False
    (table,) = struct.unpack_from("<Q", kernel, 32)
    size, count = struct.unpack_from("<HH", kernel, 54)
    for number in range(count):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", kernel, table + number * size)
        note = kernel[offset : offset + length] if kind == 4 else b""
        if re.search(re.escape(struct.pack("<I", 4)) + rb"....\x12\0\0\0Xen\0", note, re.DOTALL):
            return True
    return False
