"""Numbers in what a machine prints: decimal digits of ASCII, as many as a 64-bit counter has."""

from __future__ import annotations

import re

DECIMAL = re.compile(r"\d{1,20}", re.ASCII)


def decimal(text: str | None) -> int | None:
    """Return the number; None for anything else."""
    return int(text) if text is not None and DECIMAL.fullmatch(text) else None


def count(text: str) -> int:
    """Return the number; ``ValueError`` for anything else."""
    if (found := decimal(text)) is None:
        raise ValueError(f"{text[:40]!r} is no number")
    return found


def bytes_of(text: str) -> list[int] | None:
    """Return the bytes of ``od -An -v -tu1``; None if it printed something else."""
    numbers = [found for word in text.split() if (found := decimal(word)) is not None and found < 256]
    return numbers if len(numbers) == len(text.split()) else None
