from __future__ import annotations

import io
import shutil
import stat
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.lab.image.initramfs import (
    Entry,
    FileTree,
    cpio,
    directory,
    normal,
    package_entries,
    regular,
    symlink,
)


@pytest.mark.parametrize(
    ("named", "path"),
    [
        ("./bin/sh", "usr/bin/sh"),
        ("./usr/bin/sh", "usr/bin/sh"),
        ("./lib/x/libc.so", "usr/lib/x/libc.so"),
        ("./library/x", "library/x"),
        ("./etc/fstab", "etc/fstab"),
        ("./usr/", "usr"),
        ("./", "."),
    ],
)
def test_paths_are_as_on_a_merged_system(named: str, path: str) -> None:
    assert normal(named) == path


def test_directories_above_a_file_are_there_unless_they_were() -> None:
    tree = FileTree()
    tree.add("home/tester", directory(0o700, 1000))
    tree.add("home/tester/.ssh/key", regular(b"k", 0o600, 1000))
    assert tree.entries["home"] == directory()
    assert tree.entries["home/tester"] == directory(0o700, 1000)
    assert tree.entries["home/tester/.ssh"] == directory()


def unpacked(archive: bytes) -> dict[str, Entry]:
    """What the kernel would make of it: a reader of the format, independent of the writer."""
    entries: dict[str, Entry] = {}
    place = 0
    while True:
        assert archive[place : place + 6] == b"070701"
        fields = [int(archive[place + 6 + 8 * n : place + 14 + 8 * n], 16) for n in range(13)]
        _, mode, uid, gid, _, _, size, _, _, _, _, name_size, _ = fields
        name = archive[place + 110 : place + 110 + name_size - 1].decode()
        start = (place + 110 + name_size + 3) & ~3
        if name == "TRAILER!!!":
            return entries
        entries[name] = Entry(mode, archive[start : start + size], uid, gid)
        place = (start + size + 3) & ~3


names = st.text("abc/.é", min_size=1, max_size=9)
files = st.builds(regular, st.binary(max_size=9), st.sampled_from([0o644, 0o4755]), st.integers(0, 70_000))


@given(st.dictionaries(names, st.one_of(files, st.builds(symlink, names), st.just(directory()))))
def test_the_archive_holds_what_went_in(entries: dict[str, Entry]) -> None:
    assert unpacked(b"".join(cpio(entries))) == entries


def test_equal_trees_make_equal_archives() -> None:
    forth = {"a": regular(b"1"), "b": regular(b"2")}
    back = dict(reversed(forth.items()))
    assert b"".join(cpio(forth)) == b"".join(cpio(back))


@pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio is not installed")
def test_cpio_reads_the_archive(tmp_path: Path) -> None:
    archive = b"".join(cpio({"d": directory(), "d/f": regular(b"content", 0o600), "l": symlink("d/f")}))
    subprocess.run(["cpio", "-i", "--quiet"], cwd=tmp_path, input=archive, check=True)
    assert (tmp_path / "l").read_bytes() == b"content"
    assert stat.S_IMODE((tmp_path / "d" / "f").stat().st_mode) == 0o600


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with every kind of file, made without dpkg: an ar archive of two tar archives."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, kind, link in (
            ("./bin", tarfile.DIRTYPE, ""),
            ("./bin/su", tarfile.REGTYPE, ""),
            ("./bin/also-su", tarfile.LNKTYPE, "./bin/su"),
            ("./bin/link", tarfile.SYMTYPE, "su"),
            ("./dev/null", tarfile.CHRTYPE, ""),
            ("./usr/share/doc/su", tarfile.REGTYPE, ""),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.mode, member.gid = kind, link, 0o4755, 5
            member.size = 3 if kind == tarfile.REGTYPE else 0
            archive.addfile(member, io.BytesIO(b"abc"))
    control = io.BytesIO()
    with tarfile.open(fileobj=control, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("./control"))
    path = tmp_path / "su.deb"
    members = (("debian-binary", b"2.0\n"), ("control.tar", control.getvalue()), ("data.tar", content.getvalue()))
    path.write_bytes(b"!<arch>\n" + b"".join(ar_member(name, data) for name, data in members))
    return path


def ar_member(name: str, data: bytes) -> bytes:
    return f"{name:16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed")
def test_a_packages_files_keep_owner_and_set_uid_bit(package: Path) -> None:
    assert dict(package_entries(package, lambda path: "share" not in path)) == {
        "usr/bin": Entry(stat.S_IFDIR | 0o4755, b"", 0, 5),
        "usr/bin/su": Entry(stat.S_IFREG | 0o4755, b"abc", 0, 5),
        "usr/bin/also-su": symlink("/usr/bin/su"),
        "usr/bin/link": symlink("su"),
    }


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed")
def test_a_broken_package(tmp_path: Path) -> None:
    path = tmp_path / "broken.deb"
    path.write_bytes(b"!<arch>\nnonsense")
    with pytest.raises((subprocess.CalledProcessError, tarfile.TarError)):
        list(package_entries(path, lambda _: True))
