"""The lab: a small virtual machine with emulated drives of known speed, for rehearsals.

The rig connects to it over OpenSSH as to any other machine. The package may leave nothing on the host when the machine
has stopped, however it stopped. Its main type is ``vm.Vm``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ssdqual.lab.image.image import Say
    from pytest_ssdqual.lab.vm import Vm


@contextmanager
def start(
    count: int,
    *,
    cache: Path | None = None,
    say: Say = print,
    iops: int = 300,
    bytes_per_s: int = 0,
    size_bytes: int = 256 << 20,
    latency_ns: int = 0,
    first: int = 1,
    slow: int = 0,
    release: str = "",
) -> Iterator[Vm]:
    """Boot a machine with ``count`` drives; stop and remove it when the block is left.

    ``bytes_per_s`` and ``latency_ns`` are those of ``drives.ScaleModel``: with a latency, drives keep no data.
    ``first`` is the number of the first drive, ``slow`` the position of a slow one; ``release`` is a release of Debian
    as in ``image.release``, else the host's. The first call on a host downloads the guest's packages into ``cache``.
    Raises ``ValueError`` for a count that cannot be emulated, ``LabUnavailable`` if this host cannot run the lab,
    ``LabFailed`` if it did not come up.
    """
    from pytest_ssdqual.lab.drives import shelf
    from pytest_ssdqual.lab.host import TO_BOOT, cache_directory, require
    from pytest_ssdqual.lab.image.image import ensure
    from pytest_ssdqual.lab.kvm import accelerator
    from pytest_ssdqual.lab.vm import boot

    drives = shelf(
        count, iops=iops, bytes_per_s=bytes_per_s, size_bytes=size_bytes, latency_ns=latency_ns, first=first, slow=slow
    )
    require(TO_BOOT)
    place = cache or cache_directory()
    image = ensure(place, say, release=release)
    with boot(image, drives, accelerator=accelerator(image, place), say=say) as machine:
        yield machine
