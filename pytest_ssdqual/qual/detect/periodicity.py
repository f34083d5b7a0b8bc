"""Whether a series repeats itself: garbage collection, cache flushes and scans come round like clockwork."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_ssdqual.qual.units import format_duration

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

#: What came round fewer times may be chance, or the bend of a drift.
CYCLES = 3
#: Values to a period, at least: what is faster than that is noise to a series of this step.
SHORTEST = 4
#: How many values are looked at; of longer series the means of neighbours are.
LONGEST = 10_000
#: Chance of a false alarm if the background were known. It is estimated as well, and a few per cent come of it.
_CHANCE = 0.002
#: How many multiples of a frequency are looked at together: one for a sine, many for short dips.
_HARMONICS = (1, 2, 4, 8, 16, 32, 64)
#: Trial frequencies to a Fourier frequency: the 64th multiple of the nearest one is then half a bin off at most.
_FINE = 64
#: Of a train of short dips every second or third line of the spectrum does as well as all of them: how many times
#: longer the true period may be.
_LONGER = (1, 2, 3, 4)
#: More than so many do not make the pattern of a long period clearer than it has to be.
_MOST_WAVES = 128
#: A pattern that explains less of the variance is nothing to tell.
_LEAST_STRENGTH = 0.02
#: Fewest Fourier frequencies that a level of the background is the median of.
_BACKGROUND = 12
#: Least background, as a share of the mean power.
_FLOOR = 1e-3
#: Fourier frequencies: a tone of too few cycles has a lesser peak 1.4 of them higher.
_LOBES = 2
#: Of the energy of a pattern, that it may be told without the rest.
_NEARLY = 0.8
#: Share of the mean cycle's pattern that the median cycle has to show. Single events show it in a few cycles only.
_PERSISTENCE = 0.5


@dataclass(frozen=True, slots=True)
class Rhythm:
    """What comes round in a series."""

    period_s: float
    #: Share of the variance that the repeated pattern explains, 0…1; of what is left without a straight line.
    strength: float
    #: Half of the pattern's height, as a share of the mean.
    amplitude_percent: float

    def describe(self) -> str:
        return f"repeats every {format_duration(self.period_s)} (±{self.amplitude_percent:.2g} % of the mean)"


def period(values: Sequence[float], step_s: float) -> Rhythm | None:
    """The period that stands out of a series, one value every ``step_s``; None if none does.

    After a straight line is taken off, the series is whitened by its first autocorrelation, and its periodogram
    divided by a smooth background, so that red noise has no preferred frequency. The sum over the multiples of one
    frequency is then Gamma distributed (Z²ₙ: Buccheri et al. 1983; H test: de Jager et al. 1989; against red noise:
    Schulz & Mudelsee 2002, REDFIT). Dips of a few seconds every minute have many multiples, a swing has one: the
    number that is least likely by chance is taken, corrected for all that were tried. The pattern must be there in
    most cycles: a few stalls have a common measure, too. What comes round irregularly is told with the part of its
    height that keeps time.
    """
    import numpy as np

    series = np.asarray(values, dtype=float)
    joined = max(1, math.ceil(series.size / LONGEST))
    series = series[series.size % joined :].reshape(-1, joined).mean(axis=1)
    if series.size < CYCLES * SHORTEST or series.mean() <= 0:
        return None
    flat = _without_line(series)
    if flat.std() <= 1e-9 * series.mean():
        return None
    white = _whitened(flat)
    found = _best(white)
    if found is None:
        return None
    shown = {longer: _shown(white, found[0] / longer, found[1] * longer) for longer in _LONGER}
    # Cycles that hold the whole pattern are alike. Fewer of them are more alike by chance, hence the factor.
    longer = min(_LONGER, key=lambda each: each**1.5 * _unevenness(shown[each]))
    # One stall, or a step, would do for the sum.
    if np.median(shown[longer]) <= _PERSISTENCE * shown[longer].mean():
        return None
    cycles_per_value, harmonics = found[0] / longer, min(_MOST_WAVES, found[1] * longer)
    shorter = _common(_coefficients(flat, cycles_per_value, harmonics))
    alone = cycles_per_value * shorter, max(1, harmonics // shorter)
    return _rhythm(flat, *alone, float(series.mean()), joined * step_s)


def _rhythm(flat: Floats, cycles_per_value: float, harmonics: int, mean: float, step_s: float) -> Rhythm | None:
    coefficients = _coefficients(flat, cycles_per_value, harmonics)
    pattern = _waves(flat.size, cycles_per_value, harmonics) @ coefficients
    left = float(((flat - pattern) ** 2).sum()) / max(1, flat.size - coefficients.size - 1)
    strength = 1 - left / (float((flat**2).sum()) / (flat.size - 1))
    if strength < _LEAST_STRENGTH:
        return None
    return Rhythm(step_s / cycles_per_value, strength, 50 * float(pattern.max() - pattern.min()) / mean)


def _without_line(series: Floats) -> Floats:
    import numpy as np

    at = np.arange(series.size) - (series.size - 1) / 2
    centred = series - series.mean()
    flat: Floats = centred - at * float((at @ centred) / (at @ at))
    return flat


def _whitened(flat: Floats) -> Floats:
    """What the value before does not tell of each."""
    phi = float((flat[1:] @ flat[:-1]) / (flat @ flat))
    white: Floats = flat[1:] - phi * flat[:-1]
    return white - float(white.mean())


def _best(white: Floats) -> tuple[float, int] | None:
    """The most unlikely frequency, in cycles per value, and its number of multiples; None if chance will do."""
    import numpy as np

    size = white.size
    power = np.abs(np.fft.rfft(white, _FINE * size)) ** 2
    power = power / _background(power[::_FINE], np.arange(power.size) / _FINE)
    last = _FINE * size // SHORTEST
    best, unlikely = None, math.log(_CHANCE / len(_HARMONICS))
    for harmonics in _HARMONICS:
        trials = np.arange(_FINE, min(last, (power.size - 1) // harmonics) + 1)
        few = (CYCLES - 1) * _FINE
        if trials.size <= few:
            break
        summed = sum((power[trials * multiple] for multiple in range(1, harmonics + 1)), np.zeros(trials.size))
        highest = few + int(summed[few:].argmax())
        if summed[max(0, highest - _LOBES * _FINE) : highest].max() > summed[highest]:
            continue
        # The highest multiple decides how many of the trial frequencies are different ones.
        chances = trials.size * harmonics / _FINE
        found = _log_chance(float(summed[highest]), harmonics) + math.log(chances)
        if found < unlikely:
            best, unlikely = (float(trials[highest]) / (_FINE * size), harmonics), found
    return best


def _log_chance(summed: float, harmonics: int) -> float:
    """Chernoff's bound of the upper tail of the Gamma distribution; the tail itself is too small for a float."""
    if summed <= harmonics:
        return 0.0
    return harmonics - summed + harmonics * math.log(summed / harmonics)


def _background(power: Floats, at: Floats) -> Floats:
    """The level that noise has at each of the frequencies ``at``: medians over an octave each, joined by lines."""
    import numpy as np

    edges = [1]
    while edges[-1] < power.size:
        edges.append(max(edges[-1] + _BACKGROUND, 2 * edges[-1]))
    if len(edges) > 2 and power.size - edges[-2] < _BACKGROUND:
        del edges[-2]
    pieces = [power[low:high] for low, high in pairwise(edges)]
    middles = [(low * min(high, power.size)) ** 0.5 for low, high in pairwise(edges)]
    # The median of an exponential distribution is ln 2 of its mean.
    levels = [np.log(max(float(np.median(each)), 1e-300) / np.log(2)) for each in pieces]
    level = np.exp(np.interp(np.log(np.maximum(at, 1e-9)), np.log(middles), levels))
    # A pure tone has no background but the last bits of its floats.
    floored: Floats = np.maximum(level, _FLOOR * power.mean())
    return floored


def _waves(size: int, cycles_per_value: float, harmonics: int) -> Floats:
    """The cosines, then the sines of the multiples of one frequency that two values to a cycle can tell."""
    import numpy as np

    many = max(1, min(harmonics, _MOST_WAVES, math.ceil(0.5 / cycles_per_value) - 1))
    angles = 2 * np.pi * cycles_per_value * np.outer(np.arange(size), np.arange(1, many + 1))
    return np.asarray(np.hstack([np.cos(angles), np.sin(angles)]), dtype=np.float64)


def _coefficients(series: Floats, cycles_per_value: float, harmonics: int) -> Floats:
    """Of the waves in a series, by least squares."""
    import numpy as np

    waves = _waves(series.size, cycles_per_value, harmonics)
    return np.asarray(np.linalg.lstsq(waves.T @ waves, waves.T @ series, rcond=None)[0], dtype=np.float64)


def _common(coefficients: Floats) -> int:
    """The largest number that all multiples of note are multiples of: leakage lends a pure tone subharmonics."""
    energy = (coefficients.reshape(2, -1) ** 2).sum(axis=0)
    common = [step for step in range(1, energy.size + 1) if energy[step - 1 :: step].sum() >= _NEARLY * energy.sum()]
    return max(common)


def _shown(white: Floats, cycles_per_value: float, harmonics: int) -> Floats:
    """How much of the pattern each whole cycle shows."""
    import numpy as np

    pattern = _waves(white.size, cycles_per_value, harmonics) @ _coefficients(white, cycles_per_value, harmonics)
    cycle = np.floor(np.arange(white.size) * cycles_per_value).astype(int)
    shown = np.bincount(cycle, weights=white * pattern)[: int(white.size * cycles_per_value)]
    return shown.astype(np.float64)


def _unevenness(shown: Floats) -> float:
    """How much the cycles differ in showing the pattern, over how much they show it."""
    if shown.size < CYCLES or shown.mean() <= 0:
        return math.inf
    return float(shown.std(ddof=1) / shown.mean())
