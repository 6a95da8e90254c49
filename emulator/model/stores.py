"""Which loads of a compiled kernel stand between its stores: what L1 sends of stores before goes to L2 without those behind."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import numpy.typing as npt

from ..compiled.classes import EFFECTS
from ..compiled.control_flow import Graph, graph
from ..compiled.kernel import CompiledKernel


def between_stores(compiled: CompiledKernel) -> npt.NDArray[np.float64]:
    """By site of the source, how often each of its accesses ends a run of stores: 1 where the compiled kernel makes one access at a
    time between two stores, a part of that where it makes several together, 0 where it makes none there."""
    whole = graph(tuple(one.instruction for one in compiled.instructions))
    block_of = np.repeat(np.arange(len(whole.blocks)), [past - first for first, past in whole.blocks])
    kinds = [
        "constant_load" if one.instruction.opcode == "LDC" else EFFECTS.get(one.instruction.opcode, "")
        for one in compiled.instructions
    ]
    behind = _behind(whole)
    stores = [n for n, kind in enumerate(kinds) if kind == "global_store"]

    def leads(one: int, other: int) -> bool:
        """Whether what comes after an instruction may be another one."""
        at, its = block_of[one], block_of[other]
        return bool((at == its and one < other) or its in behind[at])

    between: dict[tuple[object, str], list[int]] = defaultdict(list)
    for n, kind in enumerate(kinds):
        loads = (kind.startswith("global") and kind != "global_store") or kind == "constant_load"
        if loads and any(leads(one, n) for one in stores) and any(leads(n, one) for one in stores):
            between[compiled.instructions[n].place, kind].append(sum(one < n for one in stores))
    found = np.zeros(len(compiled.launched.request.prepared.sites))
    for statement in compiled.source.statements.values():
        gaps = between.get((statement.place, statement.site.kind), [])
        together = len(gaps) // max(1, len(set(gaps)))  # accesses between two stores
        found[statement.number] = 1 / together if together else 0.0
    return found


def _behind(whole: Graph) -> list[set[int]]:
    """By block, those that may be executed after it: itself too where it is in a loop."""
    found: list[set[int]] = []
    for block in range(len(whole.blocks)):
        seen, left = set[int](), list(whole.successors[block])
        while left:
            one = left.pop()
            if one not in seen:
                seen.add(one)
                left += whole.successors[one]
        found.append(seen)
    return found
