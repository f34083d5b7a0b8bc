"""Tests of a run folder that failed or ended without a verdict, and that nothing later replaced; pure.

A run with these is not green, whatever its last session ran. A failure is that of one claim on one array: a test that
judges fewer claims than before, or is skipped, resolves nothing.
"""

from __future__ import annotations

from collections.abc import Collection

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.run_summary.errors import troubles


@frozen
class Unresolved:
    """Ids of tests, each once."""

    failed: tuple[str, ...]
    #: Inconclusive, or ended in an error.
    undecided: tuple[str, ...]


def unresolved(
    story: RunReader, *, tests: Collection[str] = (), subjects: Collection[object] = (), inconclusive: bool = True
) -> Unresolved:
    """Return what is open in ``story``, without what the present session reports itself.

    ``tests`` are those that it judged or ended in an error, ``subjects`` what its verdicts are about.
    ``inconclusive``: verdicts without a result count (``ssd_inconclusive``).
    """
    failed, undecided = dict[str, None](), dict[str, None]()
    for judged in story.judged:
        if judged.subject in subjects or judged.is_expected:
            continue
        if judged.outcome is Finding.FAIL:
            failed[judged.test] = None
        elif inconclusive and judged.outcome is Finding.INCONCLUSIVE:
            undecided[judged.test] = None
    for trouble in troubles(story):
        of_kind = failed if trouble.is_failure else undecided
        of_kind.update({test: None for test in trouble.tests if test not in tests})
    return Unresolved(tuple(failed), tuple(undecided))
