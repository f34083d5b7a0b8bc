"""Periodicity of a series: garbage collection, cache flushes and scans recur at regular intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.units import format_duration

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

#: Fewest cycles; fewer may be chance, or the curvature of a drift.
CYCLES = 3
#: Fewest values of a period; faster ones are noise at this step.
SHORTEST = 4
#: Most values that are analysed; longer series are averaged over neighbours.
LONGEST = 10_000
#: False-alarm probability for a known background; with the estimated one it is a few per cent.
_CHANCE = 0.002
#: Numbers of harmonics that are summed: one for a sine, many for short dips.
_HARMONICS = (1, 2, 4, 8, 16, 32, 64)
#: Trial frequencies to a Fourier frequency: the 64th multiple of the nearest one is then half a bin off at most.
_FINE = 64
#: Of a train of short dips every second or third line of the spectrum does as well as all of them: how many times
#: longer the true period may be.
_LONGER = (1, 2, 3, 4)
#: Most harmonics of a fitted pattern.
_MOST_WAVES = 128
#: Least share of the variance that a reported pattern explains.
_LEAST_STRENGTH = 0.02
#: Fewest Fourier frequencies that a level of the background is the median of.
_BACKGROUND = 12
#: Least background, as a share of the mean power.
_FLOOR = 1e-3
#: Fourier frequencies: a tone of too few cycles has a lesser peak 1.4 of them higher.
_LOBES = 2
#: Share of a pattern's energy that suffices to represent it.
_NEARLY = 0.8
#: Share of the mean cycle's pattern that the median cycle must have. Single events appear in only a few cycles.
_PERSISTENCE = 0.5


@frozen
class Rhythm:
    """A period of a series."""

    period_s: float
    #: Share of the detrended variance that the repeated pattern explains, 0…1.
    strength: float
    #: Half of the pattern's height, as a share of the mean.
    amplitude_percent: float

    def describe(self) -> str:
        return f"repeats every {format_duration(self.period_s)} (±{self.amplitude_percent:.2g} % of the mean)"


def period(values: Sequence[float], step_s: float) -> Rhythm | None:
    """Dominant period of a series with one value every ``step_s``; None if there is none.

    The series is detrended by a straight line and whitened by its first autocorrelation, and its periodogram is divided
    by a smooth background, so that red noise has no preferred frequency. The sum over the harmonics of one frequency is
    then Gamma distributed (Z²ₙ: Buccheri et al. 1983; H test: de Jager et al. 1989; against red noise: Schulz &
    Mudelsee 2002, REDFIT). Dips of a few seconds every minute have many harmonics, a swing has one: the least likely
    number is taken, corrected for all that were tried. The pattern must be present in most cycles, because a few stalls
    have a common measure, too. An irregular pattern is reported with the part of its height that is periodic.
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
    # Cycles that hold the whole pattern are similar. Fewer cycles are more similar by chance, hence the factor.
    longer = min(_LONGER, key=lambda each: each**1.5 * _unevenness(shown[each]))
    # One stall, or a step, could dominate the sum.
    if np.median(shown[longer]) <= _PERSISTENCE * shown[longer].mean():
        return None
    cycles_per_value, harmonics = found[0] / longer, min(_MOST_WAVES, found[1] * longer)
    shorter = _common(_coefficients(flat, _waves(flat.size, cycles_per_value, harmonics)))
    alone = cycles_per_value * shorter, max(1, harmonics // shorter)
    return _rhythm(flat, *alone, float(series.mean()), joined * step_s)


def _rhythm(flat: Floats, cycles_per_value: float, harmonics: int, mean: float, step_s: float) -> Rhythm | None:
    waves = _waves(flat.size, cycles_per_value, harmonics)
    coefficients = _coefficients(flat, waves)
    pattern = waves @ coefficients
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
    """Residuals of the first-order autoregression."""
    phi = float((flat[1:] @ flat[:-1]) / (flat @ flat))
    white: Floats = flat[1:] - phi * flat[:-1]
    return white - float(white.mean())


def _best(white: Floats) -> tuple[float, int] | None:
    """Most unlikely frequency, in cycles per value, and its number of harmonics; None if chance explains it."""
    import numpy as np

    size = white.size
    power = np.abs(np.fft.rfft(white, _FINE * size)) ** 2
    power = power / _background(power[::_FINE], np.arange(power.size) / _FINE)
    last, summed, before = _FINE * size // SHORTEST, np.zeros(_FINE * size), 0
    best, unlikely = None, math.log(_CHANCE / len(_HARMONICS))
    for harmonics in _HARMONICS:
        trials = np.arange(_FINE, min(last, (power.size - 1) // harmonics) + 1)
        few = (CYCLES - 1) * _FINE
        if trials.size <= few:
            break
        # Of the lower harmonics the sum is known.
        summed = summed[: trials.size]
        for multiple in range(before + 1, harmonics + 1):
            summed += power[trials[0] * multiple : trials[-1] * multiple + 1 : multiple]
        before = harmonics
        highest = few + int(summed[few:].argmax())
        if summed[max(0, highest - _LOBES * _FINE) : highest].max() > summed[highest]:
            continue
        # The highest harmonic determines how many of the trial frequencies are independent.
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
    """Level of the noise at each of the frequencies ``at``: medians over an octave each, joined by lines."""
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
    # A pure tone has no background but rounding errors.
    floored: Floats = np.maximum(level, _FLOOR * power.mean())
    return floored


def _waves(size: int, cycles_per_value: float, harmonics: int) -> Floats:
    """Cosines, then sines, of the harmonics of one frequency up to two values per cycle."""
    import numpy as np

    many = max(1, min(harmonics, _MOST_WAVES, math.ceil(0.5 / cycles_per_value) - 1))
    angles = 2 * np.pi * cycles_per_value * np.outer(np.arange(size), np.arange(1, many + 1))
    return np.asarray(np.hstack([np.cos(angles), np.sin(angles)]), dtype=np.float64)


def _coefficients(series: Floats, waves: Floats) -> Floats:
    """Least-squares coefficients of the waves in a series."""
    import numpy as np

    return np.asarray(np.linalg.lstsq(waves.T @ waves, waves.T @ series, rcond=None)[0], dtype=np.float64)


def _common(coefficients: Floats) -> int:
    """Largest common factor of the harmonics with energy: leakage adds subharmonics to a pure tone."""
    energy = (coefficients.reshape(2, -1) ** 2).sum(axis=0)
    common = [step for step in range(1, energy.size + 1) if energy[step - 1 :: step].sum() >= _NEARLY * energy.sum()]
    return max(common)


def _shown(white: Floats, cycles_per_value: float, harmonics: int) -> Floats:
    """Projection of each whole cycle on the pattern."""
    import numpy as np

    waves = _waves(white.size, cycles_per_value, harmonics)
    pattern = waves @ _coefficients(white, waves)
    cycle = np.floor(np.arange(white.size) * cycles_per_value).astype(int)
    shown = np.bincount(cycle, weights=white * pattern)[: int(white.size * cycles_per_value)]
    return shown.astype(np.float64)


def _unevenness(shown: Floats) -> float:
    """Coefficient of variation of the cycles' projections; infinite with too few cycles."""
    if shown.size < CYCLES or shown.mean() <= 0:
        return math.inf
    return float(shown.std(ddof=1) / shown.mean())
