"""Entries of a source loop on a warp's path through the compiled kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import language as st
from ..language.hints import Global, i32, i64, u32
from ..native import native
from .expanded_cfg import ExpandedCfg
from .matching import LoopMatcher
from .source_statements import Statement

_MAX_LOOPS = 62
"""Compiled loops per source loop, at most; a bit each."""


class LoopMarks(NamedTuple):
    """By node: whether it is an entry of the source loop; the compiled loops with this header, and with this block, a bit
    each."""

    entries: Global[i32]
    headers: Global[i64]
    bodies: Global[i64]


def loop_marks(statements: Sequence[Statement], matcher: LoopMatcher, nodes: ExpandedCfg) -> LoopMarks:
    """Return the marks of the innermost loop around all statements; empty marks without a common matched loop."""
    entries, headers, bodies = (
        np.zeros(len(nodes.blocks), np.int32),
        np.zeros(len(nodes.blocks), np.int64),
        np.zeros(len(nodes.blocks), np.int64),
    )
    contexts = {one.context.loop for one in statements}
    loop = contexts.pop() if len(contexts) == 1 else None
    if loop is not None and loop.arm == "body":
        match = next((one for one in matcher.loops if loop.site in one.sites), None)
        turning = [] if match is None else matcher.natural_loops(match.place)
        if match is not None and len(turning) <= _MAX_LOOPS:
            first = {one.entry for one in match.regions}
            for node, block in enumerate(nodes.blocks):
                entries[node] = block in first
                headers[node] = sum(1 << n for n, one in enumerate(turning) if one.header == block)
                bodies[node] = sum(1 << n for n, one in enumerate(turning) if block in one.body)
    marks: Any = entries, headers, bodies
    return LoopMarks(*marks)


@st.device
def is_loop_entry(node: i64, before: i64, marks: LoopMarks) -> bool:
    """Return whether lanes from node `before` (-1 for none) enter the loop at a node, rather than start another trip."""
    return marks.entries[node] != 0 and (before < 0 or (marks.headers[node] & marks.bodies[before]) == 0)


@native
def _loop_entry_flags(
    visited: Global[i32], masks: Global[u32], count: i64, mask: u32, marks: LoopMarks, entry_flags: Global[i32]
) -> None:
    before = i64(-1)
    for n in range(count):
        if (masks[n] & mask) != 0:
            node = i64(visited[n])
            entry_flags[n] = i32(is_loop_entry(node, before, marks))
            before = node


def loop_entry_flags(
    visited: npt.NDArray[np.int32], masks: npt.NDArray[np.uint32], mask: int, marks: LoopMarks
) -> npt.NDArray[np.int32]:
    """Return, by visit, whether the lanes of `mask` enter the loop."""
    entry_flags = np.zeros(len(visited), np.int32)
    _loop_entry_flags(visited, masks, len(visited), np.uint32(mask), marks, entry_flags)
    return entry_flags
