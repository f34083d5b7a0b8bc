"""The lab: a small virtual machine with emulated drives of known speed, for rehearsals.

The rig connects to it over OpenSSH as to any other machine. The package may leave nothing on the host when the machine
has stopped, however it stopped. Its main type is ``vm.Vm``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ssdqual.lab.drives import ScaleModel
    from pytest_ssdqual.lab.image.image import Say
    from pytest_ssdqual.lab.vm import Vm


@contextmanager
def start(drives: Sequence[ScaleModel], *, say: Say = print, release: str = "") -> Iterator[Vm]:
    """Boot a machine with these drives; stop and remove it when the block is left.

    ``release`` is a release of Debian as in ``image.release``, else the host's. The first call on a host downloads the
    guest's packages into its cache. Raises ``LabUnavailable`` if this host cannot run the lab, ``LabFailed`` if it did
    not come up.
    """
    from pytest_ssdqual.lab.host import TO_BOOT, cache_directory, require
    from pytest_ssdqual.lab.image.image import ensure
    from pytest_ssdqual.lab.kvm import accelerator
    from pytest_ssdqual.lab.vm import boot

    require(TO_BOOT)
    place = cache_directory()
    image = ensure(place, say, release=release)
    with boot(image, drives, accelerator=accelerator(image, place), say=say) as machine:
        yield machine
