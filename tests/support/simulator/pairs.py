"""Pairs of names and values in an environment variable: ``SIMULATED_LEFT="SSDQ0001=purge SSDQ0002=discard"``."""

from __future__ import annotations

import os


def pairs(variable: str) -> dict[str, str]:
    return pairs_of(os.environ.get(variable, ""))


def pairs_of(text: str) -> dict[str, str]:
    return dict(word.split("=") for word in text.replace(",", " ").split())
