"""hypothesis' profile of all tests, and a fixture of tests of signals.

The lab's virtual machine is in ``support.lab.rehearsing``.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import suppress

import pytest

# pytest loads this file also for --help and --markers, where the group ``test`` may not be installed.
with suppress(ModuleNotFoundError):
    from hypothesis import settings

    # A slow machine is not a bug of the code under test.
    settings.register_profile("ssdqual", deadline=None, print_blob=True)
    settings.load_profile("ssdqual")


@pytest.fixture
def hangup() -> Iterator[None]:
    """Whatever runs these tests may have SIGHUP ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
