"""Spectrum over all sites: the expected number of sites with 0, 1, ... 2N minor alleles."""

from __future__ import annotations

import numpy as np

from ...files import temporary_file
from .exponentials import exponentials
from .problem import Floats, Mode

TOLERANCE = 1e-8
"""Convergence criterion: maximum change of a share of sites."""
MAX_ITERATIONS = 1000
ROWS_AT_ONCE = 1 << 22
"""Values per slice of rows."""


class Spectrum:
    """Collects the answers of all sites in batches. A temporary file stores rows that are needed several times.

    saf: the shares with maximum likelihood, by expectation maximisation as in realSFS. product and gama: the sum of the normalised
    distributions of the sites. Closing it removes the file.
    """

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self.sites, self.width = 0, 0
        self.total: Floats = np.zeros(0)
        self.rows = temporary_file() if mode == "saf" else None

    def __enter__(self) -> Spectrum:
        return self

    def __exit__(self, *error: object) -> None:
        if self.rows:
            self.rows.close()

    def add(self, answer: Floats) -> None:
        """Add the values of some sites, as returned by `solve`. Impossible sites are ignored."""
        if self.mode == "gama":
            values = answer
        else:
            largest = answer.max(axis=1, keepdims=True, initial=-np.inf)
            values = exponentials(answer - np.where(np.isfinite(largest), largest, 0.0))
        values = values[values.sum(axis=1) > 0]
        self.sites, self.width = self.sites + len(values), answer.shape[1]
        if self.rows:
            self.rows.write(np.ascontiguousarray(values).data)
        else:
            total = (values / values.sum(axis=1, keepdims=True)).sum(axis=0)
            self.total = total if not len(self.total) else self.total + total

    def result(self) -> Floats:
        """Return (2N + 1,) numbers of sites. Their sum is the number of sites."""
        if not self.rows:
            return self.total
        if not self.sites:
            return np.zeros(self.width)
        self.rows.flush()
        rows = np.memmap(self.rows, np.float64, "r", shape=(self.sites, self.width))
        share = np.full(self.width, 1 / self.width)
        step = max(1, ROWS_AT_ONCE // self.width)
        for _ in range(MAX_ITERATIONS):
            total = np.zeros(self.width)
            for start in range(0, self.sites, step):
                posterior = rows[start : start + step] * share
                total += (posterior / posterior.sum(axis=1, keepdims=True)).sum(axis=0)
            previous, share = share, total / self.sites
            if np.abs(share - previous).max() < TOLERANCE:
                break
        return share * self.sites
