"""Serial numbers that are placeholders: makers of bridges, controllers and cheap drives leave them as they are."""

from __future__ import annotations

import re

#: Shortest placeholders: of one character, and of consecutive ones; a real number may be as regular if it is shorter.
SHORTEST_REPEATED, SHORTEST_COUNTED = 4, 8
#: Consecutive characters, with and without zero, and twice, since a placeholder may go round: ``123456789012``.
_COUNTED = (
    2 * "0123456789",
    2 * "123456789",
    2 * "9876543210",
    2 * "0123456789abcdef",
    2 * "123456789abcdef",
    2 * "1234567890abcdef",
    "abcdefghijklmnopqrstuvwxyz",
)
#: A counter that never counted: zeros and one more character.
_ZEROS = re.compile(r"0{7,}[0-9a-f]")


def is_generic(serial: str) -> bool:
    """Return whether many drives may have this serial number: ``0000…``, ``0000…1``, ``123456789…``."""
    plain = re.sub(r"[^0-9a-z]", "", serial.casefold())
    if len(plain) >= SHORTEST_REPEATED and len(set(plain)) == 1:
        return True
    if len(plain) >= SHORTEST_COUNTED and any(plain in counted for counted in _COUNTED):
        return True
    return _ZEROS.fullmatch(plain) is not None
