"""Warps with given lane paths through blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from simtbed.compiled.expanded_cfg import ExpandedCfg
from simtbed.compiled.reconvergence import LanePath, WarpReconvergence


def executions(nodes: ExpandedCfg, paths: Iterable[tuple[int, Sequence[int]]]) -> dict[int, tuple[int, int]]:
    """Return warp and thread executions by block. paths: number of lanes and blocks of each path."""
    number = {block: node for node, block in enumerate(nodes.blocks)}
    lane_paths, first = list[LanePath](), 0
    for lanes, path in paths:
        lane_paths.append(LanePath(((1 << lanes) - 1) << first, np.array([number[b] for b in path], np.int32)))
        first += lanes
    warps, threads = WarpReconvergence(nodes).executions(lane_paths)
    return {nodes.blocks[n]: (int(warps[n]), int(threads[n])) for n in range(len(nodes.blocks)) if warps[n]}
