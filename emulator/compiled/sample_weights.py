"""Weights of warps that stand for all warps of a launch, so that together they did what is known that all did.

The calibration estimator of Deville and Särndal (1992): of all weights by which the sample has the known totals those that are
nearest to the given ones. What follows from what is known is then right whichever warps were drawn.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

EACH = 8
"""Warps that must tell of each direction of what warps did in which weights change: fewer would follow chance."""
_NEAR = 1e-9
"""Of the largest: directions of what warps did in which they differ less than that tell nothing."""

Floats = npt.NDArray[np.float64]


def calibrated(weights: Floats, did: Floats, totals: Floats) -> Floats:
    """weights: float64[n], of warps. did: float64[n, m], how much of each of m things a warp did. totals: float64[m], what all did. The
    weights, none below 0, and together what they were; the given ones where these have the totals already. A weight that comes to 0
    stays there, and the others change on."""
    known = totals > 0
    each, found = did[:, known] / totals[known], weights
    while True:
        some = found > 0
        changed = _changed(found[some], each[some])
        if changed is None:
            return found
        found = np.zeros(len(weights))
        found[some], reached = changed
        if reached:
            return found


def _changed(weights: Floats, each: Floats) -> tuple[Floats, bool] | None:
    """Weights above 0, changed as far as the first one comes to 0, and whether none did. each: float64[n, m], the parts of the totals that
    a warp did. None where nothing is missing, or nothing tells how to change them."""
    missing = 1.0 - weights @ each
    if not len(missing) or not np.abs(missing).max() > _NEAR:
        return None
    unlike = each - weights @ each / weights.sum()
    sizes, ways = np.linalg.eigh(unlike.T @ (unlike * weights[:, None]))  # the smallest first
    most = max(len(weights) // EACH, 1)
    kept = (sizes > _NEAR * max(sizes[-1], _NEAR)) & (np.arange(len(sizes)) >= len(sizes) - most)
    if not kept.any():
        return None
    change = unlike @ (ways[:, kept] @ ((ways[:, kept].T @ missing) / sizes[kept]))
    least = float(change.min())
    if least >= -1.0:
        return weights * (1.0 + change), True
    found: Floats = weights * (1.0 - change / least)
    found[np.argmin(change)] = 0.0
    return found, False
