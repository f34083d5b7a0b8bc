"""What all rooms' tests share: hypothesis' profiles. The lab's virtual machine is in ``support.lab.rehearsing``."""

from __future__ import annotations

from hypothesis import settings

# A slow machine is not a bug of the code under test.
settings.register_profile("ssdqual", deadline=None, print_blob=True)
settings.load_profile("ssdqual")
