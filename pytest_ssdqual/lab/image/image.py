"""The guest's kernel and initramfs, built from the distribution's own packages and kept in a cache.

Nothing is installed on the host and nothing needs root. An image is kept by what went into it: the recipe (our
code and files) and the versions of the packages.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pytest_ssdqual.lab.host import KERNELS, TO_BUILD, LabUnavailable, require
from pytest_ssdqual.lab.image import apt, contents
from pytest_ssdqual.lab.image.initramfs import FileTree, cpio, package_entries
from pytest_ssdqual.lab.image.kernel import is_module, vmlinux
from pytest_ssdqual.lab.image.release import Release, apt_sources, os_facts, other_than_host
from pytest_ssdqual.qual.frozen import frozen

#: Receives one sentence for each step.
Say = Callable[[str], None]

_UNUSED_FOR_S = 30 * 24 * 3600.0


#: Packages → the files of an image, in the given directory.
Assemble = Callable[[Iterable[Path], Path], None]


@frozen
class Image:
    """A guest that can be booted."""

    kernel: Path
    initrd: Path
    #: The file system that the initramfs boots into; None: the initramfs is all there is.
    root: Path | None = None


@frozen
class Variant:
    """A guest that has more than the usual one."""

    #: Packages on top.
    packages: tuple[str, ...]
    #: Changes with all else that goes into it.
    digest: str
    assemble: Assemble


def ensure(cache: Path, say: Say, variant: Variant | None = None, release: str = "") -> Image:
    """The image of the current recipe, built now if the cache does not hold it; builders wait for one another.

    ``release`` names a release of Debian; by default the guest has the host's distribution and release. Raises
    ``LabUnavailable`` if this host cannot build one.
    """
    other = other_than_host(release)
    kernel = kernel_package("debian" if other else os_facts().get("ID", ""))
    names = (*contents.PACKAGES, kernel, *(variant.packages if variant else ()))
    digest = contents.recipe_hash(
        (*names, *((variant.digest,) if variant else ()), *((other.codename,) if other else ()))
    )
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / "lock", say):
        directory = _find_or_build(cache, names, digest, say, variant, other)
        directory.touch()
        _sweep(cache, directory)
    root = directory / "root"
    return Image(directory / "kernel", directory / "initrd", root if root.exists() else None)


def kernel_package(distribution: str) -> str:
    """The kernel for virtual machines of a distribution; ``LabUnavailable`` if we know none."""
    if package := KERNELS.get(distribution):
        return package
    known = " or ".join(KERNELS)
    raise LabUnavailable(f"the lab builds its guest from packages of {known}; this host's ID is {distribution!r}")


def image_name(recipe_hash: str, packages: Iterable[apt.Package]) -> str:
    versions = "\n".join(sorted(f"{package.name}={package.version}" for package in packages))
    return f"image-{recipe_hash}-{hashlib.sha256(versions.encode()).hexdigest()[:12]}"


def _find_or_build(
    cache: Path,
    names: tuple[str, ...],
    recipe_hash: str,
    say: Say,
    variant: Variant | None,
    release: Release | None,
) -> Path:
    # Asking apt takes a second or more: it is asked only when the package lists have changed.
    stamp = cache / f"stamp-{recipe_hash}"
    fingerprint = apt.lists_fingerprint()
    if stamp.is_file():
        seen, name = stamp.read_text(encoding="utf-8").split()
        if seen == fingerprint and (cache / name).is_dir():
            return cache / name
    require(TO_BUILD)
    # One state of apt for each release: download needs the lists that resolved the packages.
    state = cache / (f"apt-{release.codename}" if release else "apt")
    try:
        packages = apt.resolve_by(apt_sources(release), names, state) if release else apt.resolve(names, state)
    except LabUnavailable:
        kept = sorted(cache.glob(f"image-{recipe_hash}-*"), key=lambda path: path.stat().st_mtime)
        if not kept:
            raise
        say("the lab's packages cannot be looked up now; the image built before is used")
        return kept[-1]
    directory = cache / image_name(recipe_hash, packages)
    if not directory.is_dir():
        wanted = variant.packages if variant else ()
        used = [each for each in packages if contents.is_used(each.name, wanted)]
        _build(directory, state, used, say, variant.assemble if variant else _assemble)
    stamp.write_text(f"{fingerprint} {directory.name}\n", encoding="utf-8")
    return directory


def _build(directory: Path, state: Path, packages: list[apt.Package], say: Say, assemble: Assemble) -> None:
    cache = directory.parent
    megabytes = sum(package.size_bytes for package in packages) / 1e6
    say(f"the lab's guest: downloading {len(packages)} packages, {megabytes:.0f} MB")
    with tempfile.TemporaryDirectory(dir=cache, prefix="building-") as scratch:
        downloads, result = Path(scratch, "packages"), Path(scratch, "image")
        downloads.mkdir()
        result.mkdir()
        files = apt.download(packages, downloads, state)
        say("the lab's guest: building the image")
        try:
            assemble(files, result)
        except (OSError, subprocess.CalledProcessError) as error:
            raise LabUnavailable(f"the lab's guest cannot be built: {error}") from error
        versions = "".join(f"{package.name} {package.version}\n" for package in packages)
        (result / "packages").write_text(versions, encoding="utf-8")
        result.rename(directory)


def _assemble(packages: Iterable[Path], result: Path) -> None:
    tree, modules = unpacked(packages, result, contents.wanted)
    contents.furnish(tree, contents.module_lists(modules), host_key(result))
    with (result / "initrd").open("wb") as initrd:
        initrd.writelines(cpio(tree.entries))


def unpacked(
    packages: Iterable[Path], result: Path, wanted: Callable[[str], bool]
) -> tuple[FileTree, Mapping[str, bytes]]:
    """The wanted files of packages, and the kernel's modules by their paths; the kernel itself goes into ``result``."""
    tree = FileTree()
    modules: dict[str, bytes] = {}
    for package in packages:
        if package.name.startswith("linux-"):
            # a kernel package is large: only its image and the modules are read out
            for path, entry in package_entries(
                package, lambda path: is_module(path) or path.startswith("boot/vmlinuz")
            ):
                if is_module(path):
                    modules[path] = entry.data
                elif entry.data:
                    (result / "kernel").write_bytes(vmlinux(entry.data))
        else:
            for path, entry in package_entries(package, wanted):
                tree.add(path, entry)
    return tree, modules


def host_key(scratch: Path) -> bytes:
    """A key for the guest's sshd; generating it in the guest would cost every boot a moment."""
    path = scratch / "host_key"
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ssdqual-lab", "-f", str(path)]
    subprocess.run(argv, check=True, capture_output=True)
    key = path.read_bytes()
    path.unlink()
    path.with_suffix(".pub").unlink()
    return key


@contextmanager
def _locked(path: Path, say: Say) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("the lab's guest: waiting for another process that builds it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _sweep(cache: Path, used: Path) -> None:
    """Remove images not booted for a month, and what a killed builder left; the caller holds the lock."""
    for path in cache.glob("building-*"):
        shutil.rmtree(path, ignore_errors=True)
    for path in cache.glob("image-*"):
        if path != used and time.time() - path.stat().st_mtime > _UNUSED_FOR_S:
            shutil.rmtree(path, ignore_errors=True)
