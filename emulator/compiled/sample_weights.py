"""Calibration estimator of Deville and Särndal (1992): sample weights closest to the given ones that reproduce known totals."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

WARPS_PER_DIRECTION = 8
"""Warps in the sample per direction of adjustment; fewer would fit noise."""
_RELATIVE_TOLERANCE = 1e-9
"""Eigenvalues below this fraction of the largest are ignored."""

Floats = npt.NDArray[np.float64]


def calibrate(weights: Floats, amounts: Floats, totals: Floats) -> Floats:
    """Return adjusted weights. weights: float64[n]. amounts: float64[n, m], per warp. totals: float64[m], of all warps.

    Weights remain at least 0 and keep their sum. A weight at 0 is fixed, and the others are adjusted again.
    """
    nonzero = totals > 0
    fractions, weights_new = amounts[:, nonzero] / totals[nonzero], weights
    while True:
        positive = weights_new > 0
        adjusted = _adjust(weights_new[positive], fractions[positive])
        if adjusted is None:
            return weights_new
        weights_new = np.zeros(len(weights))
        weights_new[positive], complete = adjusted
        if complete:
            return weights_new


def _adjust(weights: Floats, fractions: Floats) -> tuple[Floats, bool] | None:
    """Return positive weights moved up to the first that becomes 0, and whether none did; None without any residual to
    remove. fractions: float64[n, m], of the totals."""
    missing = 1.0 - weights @ fractions
    if not len(missing) or not np.abs(missing).max() > _RELATIVE_TOLERANCE:
        return None
    deviations = fractions - weights @ fractions / weights.sum()
    eigenvalues, directions = np.linalg.eigh(deviations.T @ (deviations * weights[:, None]))  # ascending
    max_directions = max(len(weights) // WARPS_PER_DIRECTION, 1)
    significant = (eigenvalues > _RELATIVE_TOLERANCE * max(eigenvalues[-1], _RELATIVE_TOLERANCE)) & (
        np.arange(len(eigenvalues)) >= len(eigenvalues) - max_directions
    )
    if not significant.any():
        return None
    change = deviations @ (
        directions[:, significant] @ ((directions[:, significant].T @ missing) / eigenvalues[significant])
    )
    min_change = float(change.min())
    if min_change >= -1.0:
        return weights * (1.0 + change), True
    clipped: Floats = weights * (1.0 - change / min_change)
    clipped[np.argmin(change)] = 0.0
    return clipped, False
