"""Textbook kernels, each with inputs drawn from a seed and an answer by NumPy: what counters and times are held to."""

from __future__ import annotations

from . import dense, graphs, histograms, numerics, reductions, sorts, stencils, texts
from .textbook import Textbook

KERNELS: tuple[Textbook, ...] = (
    *dense.KERNELS, *reductions.KERNELS, *histograms.KERNELS, *sorts.KERNELS, *stencils.KERNELS, *graphs.KERNELS,
    *numerics.KERNELS, *texts.KERNELS,
)  # fmt: skip

__all__ = ["KERNELS", "Textbook"]
