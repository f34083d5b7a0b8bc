"""Names in a sentence: their number, an enumeration of them, and the one that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def counted(number: int, word: str) -> str:
    """Return ``1 drive``, ``1,024 drives``."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def named(names: Sequence[object], most: int, separator: str = ", ") -> str:
    """Return at most ``most`` names and the number of the others: ``dut1, dut2 and 3 more``."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return separator.join(map(str, names[:most])) + more


def choice(wrong: str, known: Iterable[str], kind: str) -> str:
    """Return what to write instead of a wrong name: ``did you mean 'raid5'?``, or all names of that kind."""
    names = [str(name) for name in known]
    near = nearest(wrong, names)
    return f"did you mean {near!r}?" if near else f"the {kind} are {', '.join(names)}"


def nearest(wrong: str, known: Iterable[str]) -> str:
    """Return the name that was probably meant; empty if none is similar."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(wrong, list(known), 1)), "")


def listed(names: Iterable[str]) -> str:
    """Return all names, at least one: ``a, b and c``."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
