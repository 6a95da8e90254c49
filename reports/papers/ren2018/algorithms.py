"""Algorithms 1 and 2 of Ren 2018, executed as printed, and the printed lines that differ from the recurrences."""

import numpy as np
import numpy.typing as npt
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.generate import equal_lengths

from ..paper import Figures, Setting
from ..values import solved

Floats = npt.NDArray[np.float64]
READ, HAPLOTYPE = 6, 9
"""Lengths of the computed pair."""
DELTA, ALPHA, ERROR = 1e-3, 1 - 2e-3, 1e-2
"""Probabilities of a gap, of no gap, and of a wrong base."""


def pair() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return a read and a haplotype with equal and different letters."""
    haplotype = np.array([0, 1, 2, 3, 0, 2, 1, 3, 1])
    return haplotype[1 : 1 + READ].copy(), haplotype


def emission(equal: bool, swapped: bool) -> float:
    """Return equation 4: 1 - Q of equal letters, Q / 3 of others; the algorithms print them swapped."""
    return 1 - ERROR if equal != swapped else ERROR / 3


def recurrences(swapped: bool) -> float:
    """Return the likelihood by equations 1 to 3 with the initial values of Algorithm 1."""
    read, haplotype = pair()
    m, n = len(read), len(haplotype)
    M, I, D = (np.zeros((m + 1, n + 1)) for _ in range(3))  # noqa: E741, the names of the paper
    D[0] = 1 / n
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            likelihood = emission(read[i - 1] == haplotype[j - 1], swapped)
            M[i, j] = likelihood * (ALPHA * M[i - 1, j - 1] + 0.9 * I[i - 1, j - 1] + 0.9 * D[i - 1, j - 1])
            I[i, j] = DELTA * M[i - 1, j] + 0.1 * I[i - 1, j]
            D[i, j] = DELTA * M[i, j - 1] + 0.1 * D[i, j - 1]
    return float((M[m, 1:] + I[m, 1:]).sum())


def printed_naive(swapped: bool, resets: bool, adds: bool) -> float:
    """Return the result of Algorithm 2. swapped: its emissions; resets: MN, DN and MID at each row; adds: `result +=`.

    As printed it is swapped, does not reset and does not add.
    """
    read, haplotype = pair()
    m, n = len(read), len(haplotype)
    MM, II, DD = (np.zeros(n + 1) for _ in range(3))
    MN = DN = MID = result = 0.0
    for i in range(1, m + 1):
        if resets:
            MN = DN = MID = 0.0
        for j in range(1, n + 1):
            if i > 1:
                MU, IU, DU = MM[j], II[j], DD[j]
            else:
                MU, IU, DU = 0.0, 0.0, 1 / n
                MID = 0.9 * DU
            likelihood = emission(read[i - 1] == haplotype[j - 1], swapped)
            DN = DELTA * MN + 0.1 * DN
            MN = likelihood * MID
            IN = DELTA * MU + 0.1 * IU
            MID = ALPHA * MU + 0.9 * IU + 0.9 * DU
            MM[j], II[j], DD[j] = MN, IN, DN
            if i == m:
                result = result * adds + MN + IN
    return float(result)


def _error(actual: float, expected: float) -> float:
    return abs(actual / expected - 1)


def gatk(setting: Setting) -> Figures:
    """Algorithm 1."""
    error = _error(recurrences(swapped=True), recurrences(swapped=False))
    return Figures(
        {"results": solved(FAMILY, equal_lengths(3, 8, 32, 64), "intertask-naive", setting.engine), "swapped": error}
    )


def naive(setting: Setting) -> Figures:
    """Algorithm 2. The changes: (swapped, resets, adds)."""
    changes = {
        "corrected": (False, True, True),
        "emissions": (True, True, True),
        "rows": (False, False, True),
        "sum": (False, True, False),
    }
    expected = recurrences(swapped=False)
    return Figures({name: _error(printed_naive(*each), expected) for name, each in changes.items()})
