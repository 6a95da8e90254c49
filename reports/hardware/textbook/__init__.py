"""Textbook kernels, each with inputs drawn from a seed and an answer by NumPy: what counters and times are held to."""

from __future__ import annotations

from . import (
    blocks,
    chances,
    ciphers,
    codes,
    dense,
    fields,
    finance,
    geometry,
    graphs,
    grids,
    histograms,
    images,
    layers,
    learning,
    machines,
    matter,
    networks,
    numerics,
    packing,
    panels,
    particles,
    physics,
    programs,
    queues,
    rays,
    reductions,
    rows,
    samples,
    scores,
    searches,
    signals,
    simulation,
    solvers,
    sorts,
    stencils,
    suites,
    surfaces,
    tables,
    texts,
    tiled,
    walks,
    waves,
)
from .textbook import Textbook

KERNELS: tuple[Textbook, ...] = (
    *dense.KERNELS, *reductions.KERNELS, *histograms.KERNELS, *sorts.KERNELS, *stencils.KERNELS, *graphs.KERNELS,
    *numerics.KERNELS, *texts.KERNELS, *simulation.KERNELS, *chances.KERNELS, *solvers.KERNELS, *images.KERNELS,
    *learning.KERNELS, *codes.KERNELS, *searches.KERNELS,
    *suites.KERNELS, *samples.KERNELS, *fields.KERNELS, *particles.KERNELS, *programs.KERNELS, *queues.KERNELS,
    *ciphers.KERNELS, *packing.KERNELS, *tables.KERNELS, *signals.KERNELS, *surfaces.KERNELS, *geometry.KERNELS,
    *matter.KERNELS, *networks.KERNELS,
    *tiled.KERNELS, *blocks.KERNELS, *grids.KERNELS, *physics.KERNELS, *finance.KERNELS, *walks.KERNELS, *layers.KERNELS,
    *scores.KERNELS, *rays.KERNELS, *panels.KERNELS, *waves.KERNELS, *machines.KERNELS, *rows.KERNELS,
)  # fmt: skip

__all__ = ["KERNELS", "Textbook"]
