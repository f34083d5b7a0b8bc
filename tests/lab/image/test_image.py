from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pytest_ssdqual.lab.host import LabUnavailable
from pytest_ssdqual.lab.image import apt, image, release
from pytest_ssdqual.lab.image.apt import Package
from pytest_ssdqual.lab.image.image import ensure, image_name, kernel_package

FIO = Package("fio", "3.33-3", 5)


class Archive:
    """What apt offers, and how often an image was put together."""

    def __init__(self) -> None:
        self.packages: tuple[Package, ...] | None = (FIO, Package("debconf", "1", 9))
        self.fetched: list[Package] = []
        self.sources = ""
        self.lists = "monday"
        self.built = 0

    def resolve(self, names: object, state: Path) -> tuple[Package, ...]:
        if self.packages is None:
            raise LabUnavailable("no lists")
        return self.packages

    def resolve_by(self, sources: str, names: object, state: Path) -> tuple[Package, ...]:
        self.sources = sources
        return self.resolve(names, state)

    def download(self, packages: list[Package], into: Path, state: Path) -> list[Path]:
        self.fetched = packages
        return []

    def assemble(self, packages: object, result: Path) -> None:
        self.built += 1
        (result / "kernel").write_bytes(b"k")
        (result / "initrd").write_bytes(b"i")


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch) -> Archive:
    fake = Archive()
    monkeypatch.setattr(apt, "resolve", fake.resolve)
    monkeypatch.setattr(apt, "resolve_by", fake.resolve_by)
    monkeypatch.setattr(image, "apt_sources", lambda release: f"sources of {release.codename}")
    monkeypatch.setattr(release, "host_codename", lambda: "bookworm")
    monkeypatch.setattr(apt, "download", fake.download)
    monkeypatch.setattr(apt, "lists_fingerprint", lambda: fake.lists)
    monkeypatch.setattr(image, "_assemble", fake.assemble)
    monkeypatch.setattr(image, "require", lambda _: None)
    monkeypatch.setattr(image, "os_facts", lambda: {"ID": "debian"})
    return fake


def quiet(_: str) -> None: ...


def test_an_image_is_built_once(archive: Archive, tmp_path: Path) -> None:
    said: list[str] = []
    first, second = ensure(tmp_path, said.append), ensure(tmp_path, said.append)
    assert first == second
    assert first.kernel.read_bytes() == b"k"
    assert archive.built == 1
    assert ["downloading 1" in said[0], "building" in said[1]] == [True, True]
    assert archive.fetched == [FIO]


@pytest.mark.parametrize(
    ("packages", "built"),
    [((Package("fio", "3.34-1", 5),), 2), ((FIO, Package("debconf", "1", 9)), 1), (None, 1)],
    ids=["newer packages", "newer lists", "offline"],
)
def test_only_newer_packages_make_a_new_image(
    archive: Archive, tmp_path: Path, packages: tuple[Package, ...] | None, built: int
) -> None:
    first = ensure(tmp_path, quiet)
    archive.lists, archive.packages = "tuesday", packages
    assert (ensure(tmp_path, quiet) == first) is (built == 1)
    assert archive.built == built


def test_offline_without_an_image(archive: Archive, tmp_path: Path) -> None:
    archive.packages = None
    with pytest.raises(LabUnavailable, match="no lists"):
        ensure(tmp_path, quiet)


def test_image_of_another_release_is_another_image(archive: Archive, tmp_path: Path) -> None:
    own = ensure(tmp_path, quiet)
    assert ensure(tmp_path, quiet, release="debian12") == own, "the release of this host"
    assert archive.sources == ""
    other = ensure(tmp_path, quiet, release="debian13")
    assert own != other
    assert archive.sources == "sources of trixie"
    assert ensure(tmp_path, quiet, release="debian13") == other
    assert archive.built == 2


def test_a_build_that_fails_leaves_no_image(archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(image, "_assemble", fail)
    with pytest.raises(LabUnavailable, match="built: disk full"):
        ensure(tmp_path, quiet)
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_images_nobody_boots_are_removed_after_a_month(archive: Archive, tmp_path: Path) -> None:
    def aged(name: str, days: float) -> Path:
        path = tmp_path / name
        path.mkdir()
        then = time.time() - days * 86400
        os.utime(path, (then, then))
        return path

    old, recent, killed = aged("image-a-b", 31), aged("image-c-d", 29), aged("building-x", 0)
    kept = ensure(tmp_path, quiet).kernel.parent
    assert (old.exists(), recent.exists(), killed.exists(), kept.exists()) == (False, True, False, True)


def test_the_name_depends_on_versions_not_on_their_order() -> None:
    one, other = Package("a", "1", 1), Package("b", "2", 1)
    assert image_name("r", [one, other]) == image_name("r", [other, one])
    assert image_name("r", [one]) != image_name("r", [Package("a", "2", 1)])


def test_every_supported_distribution_has_a_kernel() -> None:
    assert kernel_package("ubuntu") == "linux-image-virtual"
    with pytest.raises(LabUnavailable, match="ID is 'fedora'"):
        kernel_package("fedora")
