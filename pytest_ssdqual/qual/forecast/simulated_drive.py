"""Settled drives, simulated for forecasts: IOPS over time, with the disturbances that decide how long a verdict takes.

Means are exact in the long run: 1 is the true figure of every drive. The kinds are simpler than those of
``bench/drive_kinds.py``, by which the stopping rule was chosen and by which forecasts are tested. No kind has cycles of
20 min and more (wear levelling, scans of the medium): such drives take two to three times as long (D181).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Series = NDArray[np.float64]
    Random = np.random.Generator

#: Resolution of a series, seconds: fio's reports under the protocol ``sequential``.
STEP_S = 5.0
#: One standard deviation of a second, ÷ mean, and the correlation from second to second.
NOISE, CORRELATION = 0.04, 0.85
#: Slow oscillation: largest amplitude ÷ mean, and its periods in seconds.
AMPLITUDE, OSCILLATION_S = 0.03, (300.0, 1500.0)
#: Slow I/Os come in collections of garbage: mean seconds between two.
CLUSTER_S = 60.0
#: Lengths of dips at random times: Pareto with this exponent, cut off at this number of seconds.
PARETO, LONGEST_DIP_S = 2.0, 300.0


@dataclass(frozen=True, slots=True)
class SimulatedDrive:
    """One drive: what it has done since the beginning of the load, at multiples of ``STEP_S``."""

    #: Seconds of I/O at the drive's true figure, summed up.
    done: Series
    #: Seconds' worth of slow I/Os, summed up.
    slow: Series
    #: Random numbers of 0 to 1, one for each step, for the slowest I/O of a spell.
    ranks: Series

    def between(self, edges_s: Series) -> tuple[Series, Series]:
        """Return I/O and slow I/O between these times, in seconds at the true rates."""
        import numpy as np

        times = STEP_S * np.arange(len(self.done))
        return np.diff(np.interp(edges_s, times, self.done)), np.diff(np.interp(edges_s, times, self.slow))


def drive(kind: str, seed: int, number: int, seconds: float) -> SimulatedDrive:
    """Draw drive ``number`` of a kind of ``KINDS``, for ``seconds`` of load; the same for the same arguments."""
    import numpy as np

    rng = np.random.default_rng([seed, sorted(KINDS).index(kind), number])
    steps = int(seconds / STEP_S) + 1
    rates = KINDS[kind](rng, steps) * _rhythm(rng, steps, 0.0 if kind == STEADY else AMPLITUDE)
    slow = rng.gamma(STEP_S / CLUSTER_S, CLUSTER_S, steps)
    done, slower = (np.concatenate(([0.0], np.cumsum(each))) for each in (STEP_S * rates, slow))
    return SimulatedDrive(done, slower, rng.random(steps))


def _steady(rng: Random, steps: int) -> Series:
    """Nothing but noise: a drive that hides all its work behind spare flash, or whose interface is its limit."""
    import numpy as np

    return np.ones(steps)


def _quiet(rng: Random, steps: int) -> Series:
    """Hardly any collection of garbage, as while only reading."""
    return _dips(rng, steps, rng.uniform(10, 30), rng.uniform(0.5, 2), rng.uniform(0.1, 0.3))


def _flat(rng: Random, steps: int) -> Series:
    """Collections of garbage for a few seconds, once or twice a minute."""
    return _dips(rng, steps, rng.uniform(40, 120), rng.uniform(3, 8), rng.uniform(0.2, 0.5))


def _slow_collection(rng: Random, steps: int) -> Series:
    """Collections of garbage for a minute or two, every 7 to 15 minutes."""
    return _dips(rng, steps, rng.uniform(420, 900), rng.uniform(60, 120), rng.uniform(0.1, 0.3))


def _random(rng: Random, steps: int) -> Series:
    """Dips at random times: most take seconds, a few take minutes."""
    import numpy as np

    gap_s, depth, least_s = rng.uniform(45, 150), rng.uniform(0.3, 0.8), rng.uniform(1, 3)
    beyond = (least_s / LONGEST_DIP_S) ** PARETO
    mean_s = PARETO / (PARETO - 1) * least_s * (1 - least_s / LONGEST_DIP_S) / (1 - beyond)
    count = int(1.5 * steps * STEP_S / (gap_s + mean_s)) + 40
    lengths = least_s * (1 - rng.random(count) * (1 - beyond)) ** (-1 / PARETO)
    return _with_dips(rng, steps, (rng.exponential(gap_s, count), np.asarray(lengths)), (gap_s, mean_s, depth))


#: The kind without a slow oscillation.
STEADY = "steady"
#: The kinds by name.
KINDS: Mapping[str, Callable[[Random, int], Series]] = {
    STEADY: _steady,
    "quiet": _quiet,
    "flat": _flat,
    "slow collection": _slow_collection,
    "random": _random,
}


def _dips(rng: Random, steps: int, period_s: float, dip_s: float, depth: float) -> Series:
    """Dips with a period that varies by ±30 %."""
    count = int(1.5 * steps * STEP_S / period_s) + 40
    gaps, dips = (length_s * rng.uniform(0.7, 1.3, count) for length_s in (period_s - dip_s, dip_s))
    return _with_dips(rng, steps, (gaps, dips), (period_s - dip_s, dip_s, depth))


def _with_dips(rng: Random, steps: int, lengths: tuple[Series, Series], means: tuple[float, float, float]) -> Series:
    """Rate of each step with these gaps and dips, from a random phase on, divided by its mean in the long run."""
    import numpy as np

    gap_s, dip_s, depth = means
    both = np.column_stack(lengths).ravel()
    edges = np.concatenate(([0.0], np.cumsum(both))) - (10 + rng.random()) * (gap_s + dip_s)
    busy = np.zeros(len(edges))
    busy[2::2] = np.cumsum(lengths[1])
    busy[1::2] = busy[0:-1:2]
    inside = np.diff(np.interp(STEP_S * np.arange(steps + 1), edges, busy)) / STEP_S
    return np.asarray((1 - depth * inside) / (1 - depth * dip_s / (gap_s + dip_s)))


def _rhythm(rng: Random, steps: int, amplitude: float) -> Series:
    """Slow oscillation of at most this amplitude, and noise."""
    import numpy as np

    # Independent steps with the variance, in the long run, of correlated seconds.
    noise = rng.standard_normal(steps) * NOISE * np.sqrt((1 + CORRELATION) / (1 - CORRELATION) / STEP_S)
    turns = STEP_S * np.arange(steps) / rng.uniform(*OSCILLATION_S) + rng.random()
    return np.asarray((1 + rng.uniform(0, amplitude) * np.sin(2 * np.pi * turns)) * (1 + noise))
