"""The exact interval of a probability, from how often something was seen (Clopper & Pearson 1934)."""

from __future__ import annotations


def interval(count: float, of: float, tail: float) -> tuple[float, float]:
    """Both ends of a probability of which ``count`` of ``of`` were seen, each wrong with a probability of ``tail``.

    Neither has to be whole: of events that depend on each other there are fewer than were counted.

    ValueError unless 0 <= count <= of, and of > 0.
    """
    from scipy.special import betaincinv

    if not 0 <= count <= of or not of:
        raise ValueError(f"{count} of {of} is no share")
    low = float(betaincinv(count, of - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, of - count, 1 - tail)) if count < of else 1.0
    return low, high
