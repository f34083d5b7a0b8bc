"""``--ssd-baseline``: from the name of a run to the figures that promises are held against; or a usage error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ssdqual.report.compare.baseline import Baseline, NoBaseline
from pytest_ssdqual.report.run_folder.find import NoSuchRun, find

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.options.settings import Settings
    from pytest_ssdqual.plugin.session.state import Qualification


def asked_for(settings: Settings) -> Baseline | None:
    """The earlier run; None if none is named. ``pytest.UsageError`` if it cannot be read.

    It is looked for before this run has a folder: ``last`` is the one before.
    """
    if settings.baseline is None:
        return None
    try:
        return Baseline.read(find(settings.baseline, settings.run_root))
    except (NoBaseline, NoSuchRun) as error:
        raise pytest.UsageError(f"--ssd-baseline: {error}") from error


def told(given: Mapping[str, Any]) -> Baseline | None:
    """On an xdist worker: the one that the controller found."""
    return Baseline.read(Path(given["baseline"])) if given.get("baseline") else None


def require(run: Qualification) -> None:
    """That it is of the same product, measured in the same way; ``pytest.UsageError`` with everything that is not.

    What else differs is told in the header. A run that is resumed keeps the baseline that it began with.
    """
    baseline = run.baseline
    found = baseline.refusals(run.present) if baseline else []
    record = baseline.to_record() if baseline else None
    if run.resumed and (was := run.resumed.past.manifest.baseline) != record:
        before = was["run"] if was else "none"
        found.append(f"the run that is resumed was begun with {before}, and keeps it")
    if found:
        raise pytest.UsageError("--ssd-baseline: " + "\n--ssd-baseline: ".join(found))
    if baseline:
        run.bay = replace(run.bay, remarks=(*run.bay.remarks, *baseline.remarks(run.present)))
