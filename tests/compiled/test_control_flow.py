"""Control flow graph: barriers, dominators."""

from __future__ import annotations

import pytest
from simtbed.compiled.control_flow import Graph, graph
from simtbed.engines.cuda.sass import Instruction


def sass(*texts: str) -> Graph:
    return graph(tuple(Instruction(16 * n, text) for n, text in enumerate(texts)))


@pytest.mark.parametrize("barrier", ["BAR.SYNC.DEFER_BLOCKING 0x0", "WARPSYNC.ALL"])
def test_a_barrier_is_a_block(barrier: str) -> None:
    whole = sass("@P0 BRA 0x20", "MOV R1, R2", barrier, "STG.E [R2], R1", "EXIT")
    assert [whole.is_barrier(block) for block in range(len(whole.blocks))] == [False, False, True, False]


def test_other_barriers_split_no_block() -> None:
    assert len(sass("BAR.ARV 0x1, 0x40", "STG.E [R2], R1", "EXIT").blocks) == 1


def test_dominators_do_not_depend_on_layout() -> None:
    """The entry jumps over an arm to its dominator, which jumps back."""
    result = sass("MOV R0, 0x1", "BRA 0x50", "MOV R2, R1", "MOV R3, R2", "EXIT", "MOV R1, R0", "BRA 0x20")
    assert result.dominators == (None, 2, 0)
