"""Consents for drives by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_ssdqual.rig.guard.consent import Consent, Risk


def wiped(*names: str) -> frozenset[Consent]:
    """To destroy any content."""
    return of((Risk.CONTENT,), *names)


def all_risks(*names: str) -> frozenset[Consent]:
    return of(Risk, *names)


def of(risks: Iterable[Risk], *names: str) -> frozenset[Consent]:
    return frozenset(Consent(risk, name) for risk in risks for name in names)


def unmarked(text: str) -> str:
    """A refusal whose options consent to any content."""
    return re.sub(r"@[0-9a-f]{8}\b", "", text)
