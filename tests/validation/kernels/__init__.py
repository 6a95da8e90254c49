"""Validation kernels, each with inputs from a seed and expected outputs by NumPy.

`records/kernels` has their counters and answers on GPUs, `records/times` their times, `records/batches.toml` their batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from simtbed import DeviceArray
from simtbed.kernels import Launcher
from simtbed.reports.hardware.cases import Case

from . import (
    blocks,
    chances,
    ciphers,
    codes,
    dense,
    factors,
    fields,
    grains,
    graphs,
    grids,
    histograms,
    images,
    joins,
    layers,
    learning,
    machines,
    matter,
    networks,
    numerics,
    panels,
    physics,
    pictures,
    products,
    programs,
    queues,
    rays,
    reductions,
    rows,
    samples,
    scores,
    searches,
    sequences,
    signals,
    sorts,
    stencils,
    suites,
    surfaces,
    tables,
    tails,
    texts,
    views,
    walks,
    waves,
)
from .kernel import ValidationKernel

KERNELS: tuple[ValidationKernel, ...] = (
    *dense.KERNELS, *reductions.KERNELS, *histograms.KERNELS, *sorts.KERNELS, *stencils.KERNELS, *graphs.KERNELS,
    *numerics.KERNELS, *texts.KERNELS, *chances.KERNELS, *images.KERNELS,
    *learning.KERNELS, *codes.KERNELS, *searches.KERNELS,
    *suites.KERNELS, *samples.KERNELS, *fields.KERNELS, *programs.KERNELS, *queues.KERNELS,
    *ciphers.KERNELS, *tables.KERNELS, *signals.KERNELS, *surfaces.KERNELS,
    *matter.KERNELS, *networks.KERNELS,
    *blocks.KERNELS, *grids.KERNELS, *physics.KERNELS, *walks.KERNELS, *layers.KERNELS,
    *scores.KERNELS, *rays.KERNELS, *panels.KERNELS, *waves.KERNELS, *machines.KERNELS, *rows.KERNELS,
    *products.KERNELS, *pictures.KERNELS, *sequences.KERNELS, *tails.KERNELS,
    *views.KERNELS, *factors.KERNELS, *joins.KERNELS, *grains.KERNELS,
)  # fmt: skip


def cases() -> Iterator[Case]:
    """Yield each kernel at its counted size: "validation KERNEL"."""
    for kernel in KERNELS:
        yield Case(f"validation {kernel.name}", partial(launch_counted, kernel))


def launch_counted(kernel: ValidationKernel, launcher: Launcher) -> None:
    """Launch a kernel at its counted size; arrays in the order of threads remain on the device."""
    case = kernel.small
    args = {name: DeviceArray(value) if name in case.unordered else value for name, value in case.make().items()}
    launcher.launch(case.kernel, grid=case.grid, block=case.block, args=args, shared=case.shared)


__all__ = ["KERNELS", "ValidationKernel", "cases"]
