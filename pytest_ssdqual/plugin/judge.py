"""``sla``: the promises of the spec, as a test asks for them.

Not called ``sla.py``: as a submodule it would take the fixture's name in the package, and a second session in the
same process (``pytest.main()`` twice) would have no such fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.qual.claim import Claim
from pytest_ssdqual.rig.machine import InvalidMeasurement

if TYPE_CHECKING:
    from pytest_ssdqual.qual.measurement import Measured
    from pytest_ssdqual.qual.spec import Spec
    from pytest_ssdqual.qual.verdict import Verdict


class Inconclusive(InvalidMeasurement):
    """The interval straddles the limit: neither kept nor broken, and never green."""


class Sla:
    """Judges what was measured by the promises of the spec, and remembers every verdict as evidence."""

    def __init__(self, spec: Spec, inconclusive: str, note: Callable[[Verdict, Sequence[Measured]], None]) -> None:
        """``inconclusive`` says what becomes of an undecided verdict: ``error`` or ``skip``."""
        self._spec = spec
        self._inconclusive = inconclusive
        self._note = note

    def judge(self, claim: str, subject: Measured | Sequence[Measured]) -> Verdict:
        """The verdict on ``claim`` about a run, or about a sweep for claims that compare widths.

        Skips the test if the spec promises nothing of the kind. Raises ``Inconclusive`` (a JUnit ``<error>``) when
        the evidence decides neither way, ``InvalidMeasurement`` when there is too little of it.
        """
        from pytest_ssdqual.qual.estimate import TooFew
        from pytest_ssdqual.qual.judgement import OF_RUN, OF_SWEEP
        from pytest_ssdqual.qual.measurement import Measured
        from pytest_ssdqual.qual.verdict import Outcome, Subject, judge

        claim = Claim(claim)
        sweep = [subject] if isinstance(subject, Measured) else sorted(subject, key=lambda each: each.geometry)
        about = Subject(tuple(each.geometry for each in sweep), (sweep[0].workload,))
        limit = self._spec.limit(claim, sweep[-1].geometry, sweep[0].workload)
        if limit is None:
            pytest.skip(self._spec.why_no_limit(claim, sweep[-1].geometry, sweep[0].workload))
        try:
            estimate = OF_RUN[claim](sweep[0]) if claim in OF_RUN else OF_SWEEP[claim](sweep)
        except TooFew as error:
            raise InvalidMeasurement(f"{claim.label} of {about} cannot be judged: {error}") from error
        verdict = judge(claim, about, estimate, limit)
        self._note(verdict, sweep)
        if verdict.outcome is Outcome.INCONCLUSIVE:
            if self._inconclusive == "skip":
                pytest.skip(repr(verdict))
            raise Inconclusive(repr(verdict))
        return verdict
