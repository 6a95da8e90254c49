"""Probabilities of waits for far L2, L2 and device memory, from the sampled accesses of a site."""

import numpy as np
import numpy.typing as npt

from .traffic import Column

Words = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_MIN_BURST_LIFT = 1.5
"""Lift over independence above which consecutive L2 waits are modeled as a burst."""


def wait_fractions(sampled: Words, lines: float, stride: int) -> tuple[Floats, Floats]:
    """Return fractions of sampled lines, and of accesses with such, that wait for device memory, for far L2 or it, and
    for L2 at all.

    Requests of other warps in flight are waited for as well, so more lines wait than are requested.
    """
    accesses = np.minimum(
        1.0, sampled[[Column.DRAM_WAITS, Column.FAR_WAITS, Column.L2_WAITS]] / max(1, sampled[Column.ACCESSES])
    )
    unsampled = unsampled_fraction(lines, stride)
    independent = stride * (1 - (unsampled + (1 - accesses) * (1 - unsampled)) ** (1 / max(1.0, lines)))
    answered = np.cumsum(sampled[[Column.MISSES, Column.FAR_HITS, Column.NEAR_HITS]].astype(np.float64))
    expected = answered / max(1.0, answered[-1]) * sampled[Column.L2_REQUESTS] / max(1, sampled[Column.LINES])
    result: Floats = np.clip(expected, np.minimum(independent, accesses), accesses)
    return result, accesses


def unsampled_fraction(lines: float, stride: int) -> float:
    """Return the fraction of accesses without a sampled line."""
    return float((1 - 1 / stride) ** max(1.0, lines))


def line_correlation(sampled: Words, lines: float, stride: int) -> Floats:
    """Return the correlation of waits among the lines of an access: 0 independent, 1 all together."""
    of_lines, of_accesses = wait_fractions(sampled, lines, stride)
    unsampled = unsampled_fraction(lines, stride)
    independent = 1 - ((1 - of_lines / stride) ** max(1.0, lines) - unsampled) / (1 - unsampled)
    span = independent - of_lines
    result: Floats = np.clip(np.divide(independent - of_accesses, span, out=np.zeros(3), where=span > 1e-6), 0.0, 1.0)
    return result


def any_line_waits(single: Floats, lines: float, correlation: Floats) -> Floats:
    """Return the probability that any of an access's lines waits."""
    result: Floats = (1 - correlation) * (1 - (1 - single) ** max(1.0, lines)) + correlation * single
    return result


def burst_rate(sampled: Words) -> float:
    """Return 1 / length of bursts of L2 waits of a warp; 0 if waits are independent."""
    waits, repeated = sampled[Column.L2_WAITS], sampled[Column.REPEATED_WAITS]
    if not waits or repeated < _MIN_BURST_LIFT * waits * waits / max(1, sampled[Column.ACCESSES]):
        return 0.0
    return float((waits - repeated) / waits)


def max_wait_fraction(total: Floats) -> float:
    """Return an upper bound of loads that wait for L2: those to other sectors than the warp's last load, and additional
    requests."""
    if not total[Column.ACCESSES]:
        return 1.0
    lines, same = total[Column.LINES] / total[Column.ACCESSES], total[Column.SAME_SECTORS] / total[Column.ACCESSES]
    extra_requests = max(0.0, total[Column.L2_REQUESTS] / total[Column.ACCESSES] - (1 - same) * lines)
    miss_probability = min(1.0, extra_requests / max(1e-9, same * lines))
    return float(1 - same * (1 - miss_probability) ** max(1.0, lines))
