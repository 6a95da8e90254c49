"""Atomic operations on shared memory that no instruction makes: nvcc writes a loop for each, in which lanes whose element somebody has
changed try again (`machine.shared_atomic_loops`). The source makes each of them once; the loop repeats as the addresses say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..machine import shared_atomic_loops
from ..profiler.trace import ENTRY
from .control_flow import RECONVERGE_OPCODE
from .instruction_counts import InstructionCount
from .kernel_launches import KernelLaunches
from .source_statements import Place, Statement

_SWAP, _KIND = "ATOMS.CAST", "shared_atomic"


@dataclass(frozen=True)
class RetryCost:
    """Of operations, for each time that a warp makes one: rounds of the warp and of each of its lanes, wavefronts of swaps and of reads,
    and conflicts of these."""

    rounds: float
    lanes: float
    swaps: float
    loads: float
    conflicts: float


_ALL = 0.9
"""The part of the source's lanes that must swap for none of them to act for others."""
_ALONE = RetryCost(1.0, 1.0, 2.0, 1.0, 0.0)
"""Of a lane that acts for all."""


def expand_cas_loops(
    instructions: Sequence[InstructionCount], statements: Mapping[Place, Sequence[Statement]], launched: KernelLaunches
) -> tuple[tuple[InstructionCount, ...], dict[Place, RetryCost]]:
    """The instructions, with those of such loops as often as their lanes try, and what these cost by place. Loops that lanes may leave
    before they swap, as they would not change anything, are left as they are."""
    blocks: dict[int, list[int]] = defaultdict(list)
    for n, one in enumerate(instructions):
        blocks[one.block].append(n)
    found, known = list(instructions), dict[Place, RetryCost]()
    for numbers in blocks.values():
        swap = next((one for one in (instructions[n] for n in numbers) if _swaps(one)), None)
        first, last = instructions[numbers[0]].instruction, instructions[numbers[-1]].instruction
        if swap is None or last.opcode != "BRA" or first.offset not in last.targets or not swap.warps:
            continue
        operations = [one for one in statements.get(swap.place, ()) if one.site.kind == _KIND]
        lanes = sum(one.threads for one in instructions if _swaps(one) and one.place == swap.place)
        alone = lanes < _ALL * sum(one.lanes for one in operations)
        each = known.get(swap.place) or (_ALONE if alone else _tries(operations, launched))
        if each is None:
            continue
        known[swap.place] = each
        for n in numbers:
            found[n] = _oftener(found[n], each.rounds, each.lanes)
        behind = numbers[-1] + 1
        if (
            behind < len(found) and found[behind].instruction.opcode == RECONVERGE_OPCODE
        ):  # they leave one round after the other
            found[behind] = _oftener(found[behind], each.rounds, 1.0)
    return tuple(found), known


def _swaps(one: InstructionCount) -> bool:
    return one.instruction.operation.startswith(_SWAP)


def _oftener(one: InstructionCount, warps: float, threads: float) -> InstructionCount:
    return replace(
        one, warps=warps * one.warps, threads=threads * one.threads, least=warps * one.least, most=warps * one.most
    )


def _tries(operations: Sequence[Statement], launched: KernelLaunches) -> RetryCost | None:
    """None where their addresses were not kept."""
    kept = launched.decisions.accesses if launched.decisions is not None else []
    if not operations or not all("shared" in one.spaces for one in kept):
        return None
    device, size, numbers = launched.request.device, operations[0].site.size, [one.number for one in operations]
    total, warps, lanes = np.zeros(5), 0.0, 0.0
    for (blocks, _), accesses in zip(launched.shapes, kept, strict=False):
        own = [entries[np.isin(entries["site"], numbers)] for entries in accesses.by_warp.values()]
        made = np.concatenate(own) if own else np.zeros(0, ENTRY)
        active = (made["mask"][:, None] >> np.arange(32, dtype=np.uint32) & 1).astype(np.bool_)
        out, weight = np.zeros(5, np.int64), blocks / max(1, len({block for block, _ in accesses.by_warp}))
        shared_atomic_loops.count(made["index"], active, size, device, out)
        total += weight * out
        warps += weight * len(made)
        lanes += weight * float(active.sum())
    if not warps:
        return None
    rounds, tried, swaps, loads, conflicts = total.tolist()
    return RetryCost(rounds / warps, tried / lanes, swaps / warps, loads / warps, conflicts / warps)
