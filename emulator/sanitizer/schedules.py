"""Schedules: random orders of blocks, and of warps between two barriers, in place of the ascending order, with few preemptions.

A preempted warp waits until the other warps of the running blocks have ended or wait, and the blocks that have not started have run.
Points of preemption are behind atomic operations, volatile accesses and fences. Most errors of an interleaving need one or two.

A program gives the same results under all schedules if it has no race and if no decision depends on the order of threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import Diagnostic
from ..ir import nodes as ir
from ..ir.effects import performed, written_array
from ..ir.walk import effect, statements
from ..language.intrinsics import WARP_SIZE
from ..language.types import Array, Scalar
from .elements import Forms, element
from .places import Dim3, coordinates

ROWS = 64
"""Number of orders of warps; phase p of block b has order (p + b) mod ROWS."""
MAX_PREEMPTIONS = 2
MAX_INTERLEAVED_WARPS = 1024
"""Warps of a launch that an emulator interleaves for a schedule: each has a thread."""
RELATIVE = {"float16": 1e-2, "bfloat16": 1e-1, "float32": 1e-5, "float64": 1e-12}
"""Relative difference allowed in sums of floats made by atomic operations, whose order is undefined."""


@dataclass(frozen=True)
class Schedule:
    """An order of execution. blocks: int64[blocks]. warps: int64[ROWS, 32], the first columns of which are the warps of a block.
    preemptions: the points at which a warp is preempted, counted over the launch."""

    blocks: npt.NDArray[np.int64]
    warps: npt.NDArray[np.int64]
    preemptions: frozenset[int]

    @staticmethod
    def from_seed(seed: int, grid: Dim3, block: Dim3) -> Schedule:
        """Return the schedule of a seed and a launch's shape."""
        random = np.random.default_rng(seed)
        blocks = random.permutation(grid[0] * grid[1] * grid[2])
        if (np.diff(blocks) > 0).all():
            blocks = blocks[::-1]  # ascending, which is the order of the first run
        warps = -(-block[0] * block[1] * block[2] // WARP_SIZE)
        orders = np.zeros((ROWS, 32), np.int64)
        orders[:, :warps] = [random.permutation(warps) for _ in range(ROWS)]
        points = 1 << random.integers(1, 9)
        preemptions = frozenset(random.integers(points, size=MAX_PREEMPTIONS).tolist())
        return Schedule(blocks.astype(np.int64), orders, preemptions)

    def of_clusters(self, clusters: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return blocks by cluster and rank, int64[clusters, blocks], the clusters in the order of their first blocks."""
        return clusters[np.argsort(self.places[clusters[:, 0]])]

    @cached_property
    def places(self) -> npt.NDArray[np.int64]:
        """The place of each block in the order."""
        return np.argsort(self.blocks)

    def of_phase(self, block: int, phase: int, warps: int) -> list[int]:
        """Return the order of a block's warps."""
        order: list[int] = self.warps[(block + phase) % ROWS, :warps].tolist()
        return order


def difference(
    kernel: ir.Function,
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    seed: int,
    grid: Dim3,
    block: Dim3,
    forms: Forms,
) -> Diagnostic | None:
    """Return a diagnostic of the first element that differs between the ascending order and that of a seed, or None."""
    sums = {
        e.array
        for s in statements(kernel.body)
        if isinstance(e := effect(s), ir.Atomic) and isinstance(e.type, Scalar) and e.type.is_float
    }
    for name, ascending in first.items():
        other = second[name]
        differs = ascending.view(f"u{ascending.dtype.itemsize}") != other.view(f"u{other.dtype.itemsize}")
        if name in sums:
            wide = (ascending.astype(np.float64), other.astype(np.float64))
            differs &= ~np.isclose(*wide, RELATIVE[ascending.dtype.name], 0, equal_nan=True)
        if not differs.any():
            continue
        at = tuple(int(n) for n in np.argwhere(differs)[0])
        type = next(p.type for p in kernel.params if p.name == name)
        assert isinstance(type, Array)
        place = element(name, type, at[0], forms) + (f".{'xyzw'[at[1]]}" if len(at) > 1 else "")
        message = f"{place} depends on the order of warps and blocks: {ascending[at]} or {other[at]}"
        return Diagnostic(
            "schedule", message, _writer(kernel, name), tuple(_orders(seed, grid, block)), int(differs.sum())
        )
    return None


def _writer(kernel: ir.Function, array: str) -> Any:
    """Return the span of the first write to an array."""
    for stmt in statements(kernel.body):
        if written_array(stmt) == array:
            return performed(stmt).span
    return kernel.span


def _orders(seed: int, grid: Dim3, block: Dim3) -> list[str]:
    schedule = Schedule.from_seed(seed, grid, block)
    blocks = [str(coordinates(int(b), grid)) for b in schedule.blocks[:8]]
    more = ", ..." if len(schedule.blocks) > 8 else ""
    warps = -(-block[0] * block[1] * block[2] // WARP_SIZE)
    of_first = ", ".join(map(str, schedule.of_phase(int(schedule.blocks[0]), 0, warps)))
    return [
        "the first value with blocks and warps in ascending order",
        f"the second with schedule={seed}: blocks {', '.join(blocks)}{more}; warps of the first one {of_first}",
    ]
