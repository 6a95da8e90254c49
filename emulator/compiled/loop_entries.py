"""Where lanes come anew to a loop of the source, on their way through the compiled kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .. import language as st
from ..language.hints import Global, i32, i64, u32
from ..native import native
from .expanded_cfg import ExpandedCfg
from .matching import LoopMatcher
from .source_statements import Statement

_LOOPS = 62
"""Compiled loops, a bit each, at most."""

Marks = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""By node: whether all lanes come to a loop of the source there; the compiled loops that it is whose headers, and whose blocks, lie there,
a bit each."""


def marks_of(statements: Sequence[Statement], matcher: LoopMatcher, nodes: ExpandedCfg) -> Marks:
    """Of the loop in whose body all of some statements lie; of none where it is not one, or was not found."""
    entries, headers, bodies = (
        np.zeros(len(nodes.blocks), np.int32),
        np.zeros(len(nodes.blocks), np.int64),
        np.zeros(len(nodes.blocks), np.int64),
    )
    contexts = {one.context.loop for one in statements}
    loop = contexts.pop() if len(contexts) == 1 else None
    if loop is not None and loop.arm == "body":
        match = next((one for one in matcher.loops if loop.site in one.sites), None)
        turning = [] if match is None else matcher.natural(match.place)
        if match is not None and len(turning) <= _LOOPS:
            first = {one.entry for one in match.regions}
            for node, block in enumerate(nodes.blocks):
                entries[node] = block in first
                headers[node] = sum(1 << n for n, one in enumerate(turning) if one.header == block)
                bodies[node] = sum(1 << n for n, one in enumerate(turning) if block in one.body)
    return entries, headers, bodies


@st.device
def begins(node: i64, before: i64, entries: Global[i32], headers: Global[i64], bodies: Global[i64]) -> bool:
    """Whether lanes that come to a node from another one, -1 for none, come to the loop anew: not by another turn."""
    return entries[node] != 0 and (before < 0 or (headers[node] & bodies[before]) == 0)


@native
def _begun(
    visited: Global[i32], by: Global[u32], count: i64, mask: u32, entries: Global[i32], headers: Global[i64], bodies: Global[i64],
    anew: Global[i32],
) -> None:  # fmt: skip
    before = i64(-1)
    for n in range(count):
        if (by[n] & mask) != 0:
            node = i64(visited[n])
            anew[n] = i32(begins(node, before, entries, headers, bodies))
            before = node


def begun(visited: npt.NDArray[np.int32], by: npt.NDArray[np.uint32], mask: int, marks: Marks) -> npt.NDArray[np.int32]:
    """By visit of a warp, whether lanes come to the loop anew there."""
    anew = np.zeros(len(visited), np.int32)
    _begun(visited, by, len(visited), np.uint32(mask), *marks, anew)
    return anew
