"""hypothesis' profile of all tests. The lab's virtual machine is in ``support.lab.rehearsing``."""

from __future__ import annotations

from contextlib import suppress

# pytest loads this file also for --help and --markers, where the group ``test`` may not be installed.
with suppress(ModuleNotFoundError):
    from hypothesis import settings

    # A slow machine is not a bug of the code under test.
    settings.register_profile("ssdqual", deadline=None, print_blob=True)
    settings.load_profile("ssdqual")
