"""Use of a run's time budget (``--ssd-budget``): what it left out, and what it ended; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.report.run_folder.reader import Record

#: Kinds of records that are read.
KINDS = ("budget", "budget_spent")


@frozen
class BudgetUse:
    """What a budget cost."""

    seconds: float
    #: Measurements that the plan left out.
    left_out: int
    #: Steps that were not begun, or ended undecided.
    cut_short: int

    @classmethod
    def of(cls, records: Iterable[Record]) -> BudgetUse | None:
        """Read the records of a run; of a resumed run the plan of the last session counts. None without a budget.

        Of steps that were not begun only those of the last session count: a step that it asks for is noted again.
        """
        planned, ended, not_begun = None, set[str](), set[str]()
        for each in records:
            if each.kind == "budget":
                planned = each
                not_begun.clear()
            elif each.kind == "budget_spent":
                steps = not_begun if each.facts.get("begun") is False else ended
                steps.add(str(each.facts.get("step")))
        if planned is None:
            return None
        seconds, left_out = planned.fact("seconds", float, None), planned.fact("left_out", list[object], None)
        if seconds is None or left_out is None:
            return None
        return cls(seconds, len(left_out), len(ended) + len(not_begun))

    def __str__(self) -> str:
        """``8 h; 65 measurements left out, 2 steps ended undecided or not begun``."""
        found = [
            f"{number:,} {what}{'' if number == 1 else 's'} {how}"
            for number, what, how in (
                (self.left_out, "measurement", "left out"),
                (self.cut_short, "step", "ended undecided or not begun"),
            )
            if number
        ]
        return f"{format_duration(self.seconds)}; {', '.join(found) or 'it left nothing out and ended nothing'}"

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield names and plain numbers for JUnit."""
        yield "budget_left_out", str(self.left_out)
        yield "budget_cut_short", str(self.cut_short)
