"""How far out every look at growing data has to be, so that all looks together err no more often than stated.

The constant boundary of Pocock (Biometrika 64, 1977, 191-199), for looks at unequal times, by the recursive numerical
integration of Armitage, McPherson and Rowe (J. R. Statist. Soc. A 132, 1969, 235-244). For mean values of data whose
information grows with time; what is not normal or not independent about them is ``blocks``' concern.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

#: Points of the grid on which densities are held: 2 % finer or coarser moves the level by less than 1e-6.
GRID = 301


@lru_cache(maxsize=32)
def level(times: tuple[float, ...], confidence: float) -> float:
    """Two-sided confidence of each of the looks at ``times`` at which all of them hold together at ``confidence``.

    ValueError without a look, or if times do not grow.
    """
    from scipy.optimize import brentq
    from scipy.stats import norm

    if not times or any(after <= before for before, after in pairwise(times)):
        raise ValueError(f"looks have to be at growing times, not at {times}")
    # At least as wide as one look alone, at most as wide as for looks that know nothing of each other.
    narrow, wide = (float(norm.isf((1 - confidence) / 2 / count)) for count in (1, len(times)))
    if len(times) == 1:
        return confidence
    bound = brentq(lambda width: staying_inside(times, width) - confidence, narrow, wide, xtol=1e-7)
    return float(1 - 2 * norm.sf(bound))


def staying_inside(times: tuple[float, ...], bound: float) -> float:
    """Chance that a mean without any effect is within ``bound`` standard errors at every one of the looks."""
    import numpy as np
    from scipy.stats import norm

    grid = np.linspace(-bound, bound, GRID)
    # Simpson's rule.
    weights = np.full(GRID, 2.0)
    weights[1::2] = 4.0
    weights[[0, -1]] = 1.0
    weights *= (grid[1] - grid[0]) / 3
    density = norm.pdf(grid)
    for before, after in pairwise(times):
        # The mean at the later look, in its standard errors, given that at the earlier one.
        share = (before / after) ** 0.5
        spread = (1 - share**2) ** 0.5
        density = norm.pdf((grid[:, None] - share * grid[None, :]) / spread) / spread @ (weights * density)
    return float(weights @ density)
