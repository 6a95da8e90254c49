"""Control flow graph: 64-bit divisions, reconvergence, dominators."""

from __future__ import annotations

import pytest
from simtbed.compiled.control_flow import Graph, graph
from simtbed.compiled.expanded_cfg import ExpandedCfg
from simtbed.engines.cuda.sass import Instruction
from tests.compiled.reconvergence import executions


def sass(*texts: str) -> Graph:
    return graph(tuple(Instruction(16 * n, text) for n, text in enumerate(texts)))


def dividing(conversion: str, callee: str) -> Graph:
    """Blocks: 0 tests high words, 1 calls, 2 returns, 3 divides narrow numbers, 4 continues, 5 is the callee."""
    return sass(
        "ISETP.NE.U32.AND P0, PT, R9, RZ, PT",
        "@!P0 BRA 0x50",
        "CALL.REL.NOINC 0x90",
        "MOV R2, R9",
        "BRA 0x70",
        conversion,
        "MUFU.RCP R9, R9",
        "STG.E [R2], R1",
        "EXIT",
        callee,
        "RET.REL.NODEC R12 0x0",
    )


def test_a_64_bit_division_is_no_slow_path() -> None:
    whole = dividing("I2F.U32.RP R9, R8", "I2F.U64.RP R10, R8")
    assert whole.long_division_callees == {5}
    assert whole.narrow_divisions == {3}


def test_no_other_callee_is_usual() -> None:
    whole = dividing("I2F.U32.RP R9, R8", "MUFU.RSQ R10, R8")
    assert not whole.long_division_callees and not whole.narrow_divisions
    assert not dividing("FADD R9, R8, R8", "I2F.U64.RP R10, R8").narrow_divisions


@pytest.mark.parametrize("barrier", ["BAR.SYNC.DEFER_BLOCKING 0x0", "WARPSYNC.ALL"])
def test_a_barrier_reconverges_a_warp(barrier: str) -> None:
    whole = sass("@P0 BRA 0x20", "MOV R1, R2", barrier, "STG.E [R2], R1", "EXIT")
    assert [whole.is_barrier(block) for block in range(len(whole.blocks))] == [False, False, True, False]
    nodes = ExpandedCfg(whole)
    result = executions(nodes, [(20, [0, 1, 2, 3]), (12, [0, 2, 3])])
    assert result == {0: (1, 32), 1: (1, 20), 2: (2, 32), 3: (1, 32)}


def test_other_barriers_split_no_block() -> None:
    assert len(sass("BAR.ARV 0x1, 0x40", "STG.E [R2], R1", "EXIT").blocks) == 1


def test_who_left_is_not_waited_for_at_a_barrier() -> None:
    whole = sass("@P0 EXIT", "@P1 BRA 0x30", "MOV R1, R2", "BAR.SYNC 0x0", "EXIT")
    nodes = ExpandedCfg(whole)
    result = executions(nodes, [(5, [0]), (20, [0, 1, 2, 3, 4]), (7, [0, 1, 3, 4])])
    assert [warps for _, (warps, _) in sorted(result.items())] == [1, 1, 1, 2, 1]


def test_dominators_do_not_depend_on_layout() -> None:
    """The entry jumps over an arm to its dominator, which jumps back."""
    result = sass("MOV R0, 0x1", "BRA 0x50", "MOV R2, R1", "MOV R3, R2", "EXIT", "MOV R1, R0", "BRA 0x20")
    arm = next(block for block, (first, _) in enumerate(result.blocks) if first == 2)
    assert [one.text for one in result.instructions_before(3, arm)] == [
        "MOV R2, R1",
        "BRA 0x20",
        "MOV R1, R0",
        "BRA 0x50",
        "MOV R0, 0x1",
    ]
