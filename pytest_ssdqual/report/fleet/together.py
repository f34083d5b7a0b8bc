"""What all bays of a fleet say together, in one sentence: how many keep their promises, and what is not known; pure.

The rule of the module: a fleet is fit only if every bay that was asked for was measured to its end and is fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.fleet.view import Bay, Seen
from pytest_ssdqual.report.view.fitness import Fitness

#: Bays that are told of one by one; the table has all.
MOST_TOLD = 20
MOST_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Together:
    """The verdict of the page; every bay is in exactly one of the four."""

    fitness: Fitness
    word: str
    sentence: str
    use: str
    acceptance: bool
    kept: tuple[str, ...]
    broken: tuple[str, ...]
    #: Measured, and not all was said that it was made for.
    open: tuple[str, ...]
    never: tuple[str, ...]
    #: What else must be known before it is believed.
    remarks: tuple[str, ...]


def together(seen: Seen) -> Together:
    """Of all bays."""
    of = {fitness: tuple(bay.name for bay in seen.bays if bay.fitness is fitness) for fitness in (*Fitness, None)}
    gaps = tuple(_gaps(seen))
    if of[Fitness.UNFIT]:
        fitness = Fitness.UNFIT
    elif gaps or not of[Fitness.FIT] or of[Fitness.OPEN] or of[None]:
        fitness = Fitness.OPEN
    else:
        fitness = Fitness.FIT
    unsure = [bay.name for bay in seen.begun if bay.standing and not bay.standing.acceptance]
    acceptance = bool(seen.begun) and not unsure
    sentence = _sentence(len(seen.bays), of[Fitness.FIT], of[Fitness.UNFIT])
    remarks = (*gaps, *_each(seen))
    use = _use(fitness, acceptance, unsure)
    return Together(
        fitness, _word(fitness, acceptance), sentence, use, acceptance,
        of[Fitness.FIT], of[Fitness.UNFIT], of[Fitness.OPEN], of[None], remarks,
    )  # fmt: skip


def named(names: Sequence[str], most: int = MOST_TOLD) -> str:
    """``dut1, dut2 and 3 more``."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def bays(number: int) -> str:
    return "1 bay" if number == 1 else f"{number:,} bays"


def _sentence(all_of_them: int, kept: Sequence[str], broken: Sequence[str]) -> str:
    if not all_of_them:
        return "There is no bay in this fleet."
    if broken:
        theirs = "keeps all its promises" if len(kept) == 1 else "keep all their promises"
        rest = f"; {len(kept):,} {theirs}" if kept else ""
        verb = "breaks promises" if len(broken) == 1 else "break promises"
        return f"{len(broken):,} of {bays(all_of_them)} {verb}: {named(broken)}{rest}."
    if len(kept) < all_of_them:
        verb = "keeps" if len(kept) == 1 else "keep"
        return f"{len(kept):,} of {bays(all_of_them)} {verb} every promise, and of the others that is not known."
    return "The one bay keeps all its promises." if all_of_them == 1 else f"All {all_of_them:,} bays keep all promises."


def _gaps(seen: Seen) -> Iterator[str]:
    """Why a fleet's folder does not say all."""
    if seen.complaint:
        yield f"Which bays were asked for is not known: {seen.complaint}."
    elif seen.fleet and not seen.fleet.ended:
        yield "The run has not ended, or was killed: what is missing is not known."


def _each(seen: Seen) -> Iterator[str]:
    """Of bays that do not say all: what is missing, or why there is nothing."""
    told = [*_never(seen.bays), *_open(seen.bays)]
    yield from told[:MOST_TOLD]
    if len(told) > MOST_TOLD:
        yield f"And {len(told) - MOST_TOLD:,} more of the kind: the table of bays has all."


def _never(found: Sequence[Bay]) -> Iterator[str]:
    for bay in found:
        if not bay.standing:
            why = safe_text.line(bay.refused, MOST_CHARACTERS) or "it has no run folder"
            yield f"{bay.name} was never begun: {why}"


def _open(found: Sequence[Bay]) -> Iterator[str]:
    for bay in found:
        if bay.standing and bay.fitness is not Fitness.FIT:
            yield from (f"{bay.name}: {each}" for each in bay.standing.remarks)
            if not bay.standing.remarks and bay.fitness is Fitness.OPEN:
                yield f"{bay.name}: {bay.standing.sentence}"


def _word(fitness: Fitness, acceptance: bool) -> str:
    if fitness is Fitness.OPEN:
        return "Cannot say"
    if acceptance:
        return "Fit" if fitness is Fitness.FIT else "Not fit"
    return "Would be fit" if fitness is Fitness.FIT else "Would not be fit"


def _use(fitness: Fitness, acceptance: bool, unsure: Sequence[str]) -> str:
    if unsure:
        return f"Not for acceptance: the protocol of {named(unsure, 4)} may not decide about a product, or not surely."
    if not acceptance:
        return "Not for acceptance: nothing was measured."
    if fitness is Fitness.OPEN:
        return "Not for acceptance as it is: the protocols may decide about a product, but the run does not."
    what = "all that was judged is kept" if fitness is Fitness.FIT else "a broken promise decides"
    return f"For acceptance: the protocols may decide about a product, and {what}."
