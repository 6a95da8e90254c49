"""Divergence of warps: executions by address of small programs."""

import numpy as np
import pytest
from simtbed.sass.state import ExecutionError

from tests.sass.programs import executions, run

LANE = "S2R R0, SR_LANEID"
HALF = "ISETP.LT.U32.AND P0, PT, R0, 0x10, PT"
WHOLE = (1, 32)
HALVES = (1, 16)


def counted(result: dict[str, tuple[int, int]]) -> list[tuple[int, int]]:
    return list(result.values())


def test_arms_merge_at_bsync() -> None:
    result = executions(LANE, HALF, "BSSY B0, 0x70", "@P0 BRA 0x60", "NOP", "BRA 0x60", "BSYNC B0", "NOP", "EXIT")
    assert counted(result) == [*[WHOLE] * 4, HALVES, HALVES, (2, 32), WHOLE, WHOLE]


def test_arms_without_a_barrier_do_not_reconverge() -> None:
    result = executions(LANE, HALF, "@P0 BRA 0x40", "NOP", "NOP", "EXIT")
    assert counted(result) == [WHOLE, WHOLE, WHOLE, HALVES, (2, 32), (2, 32)]


def test_lanes_that_exit_are_not_awaited() -> None:
    result = executions(LANE, HALF, "BSSY B0, 0x60", "@P0 BRA 0x50", "EXIT", "BSYNC B0", "NOP", "EXIT")
    assert counted(result) == [*[WHOLE] * 4, HALVES, HALVES, HALVES, HALVES]


def test_lanes_that_break_are_not_awaited() -> None:
    result = executions(
        LANE, HALF, "BSSY B0, 0x80", "@P0 BRA 0x70", "BREAK B0", "NOP", "EXIT", "BSYNC B0", "NOP", "EXIT"
    )
    assert counted(result) == [*[WHOLE] * 4, *[HALVES] * 6]


def test_jumping_lanes_run_first() -> None:
    """Lanes with the predicate store 1 first, the others 2 afterwards: the last store remains."""
    out = np.zeros(1, np.uint32)
    _, memory = run(
        LANE, HALF, "LDC.64 R2, c[0x0][0x210]", "@P0 BRA 0x70", "MOV R1, 0x2", "STG.E desc[UR4][R2.64], R1", "EXIT",
        "MOV R1, 0x1", "STG.E desc[UR4][R2.64], R1", "EXIT", arrays={"out": out},
    )  # fmt: skip
    assert memory.array("out").tolist() == [2]


def test_a_loop_with_different_trips() -> None:
    """Lane n has n + 1 iterations; each iteration is executed by the lanes that remain."""
    result = executions(
        LANE, "MOV R1, RZ", "BSSY B0, 0x70", "IADD3 R1, R1, 0x1, RZ", "ISETP.LE.U32.AND P0, PT, R1, R0, PT",
        "@P0 BRA 0x30", "BSYNC B0", "EXIT",
    )  # fmt: skip
    assert result["0x30"] == (32, sum(range(1, 33)))
    assert result["0x60"] == (32, 32) and result["0x70"] == WHOLE


def test_warpsync_waits_for_the_named_lanes() -> None:
    result = executions(LANE, HALF, "MOV R5, 0xffffffff", "@P0 BRA 0x40", "WARPSYNC R5", "NOP", "EXIT")
    assert result["0x40"] == (2, 32) and result["0x50"] == WHOLE


def test_a_divergence_test_jumps_where_lanes_are_missing() -> None:
    texts = (LANE, HALF, "UMOV UR4, 0xffffffff", "{}", "BRA.DIV UR4, 0x60", "EXIT", "NOP", "EXIT")
    assert "0x60" not in executions(*(text.format("@P0 EXIT") for text in texts))
    assert executions(*(text.format("@P0 BRA 0x40") for text in texts))["0x60"] == HALVES


def test_calls_return_to_their_callers() -> None:
    result = executions(
        LANE, HALF, "MOV R20, 0x50", "@P0 CALL.REL.NOINC 0x80", "MOV R20, 0x60", "NOP", "NOP", "EXIT", "NOP",
        "RET.REL.NODEC R20 0x0",
    )  # fmt: skip
    assert result["0x80"] == HALVES and result["0x50"] == (2, 32)


def test_a_block_barrier_orders_warps() -> None:
    """Warp 0 reads what warp 1 stored before the barrier."""
    out = np.zeros(64, np.uint32)
    _, memory = run(
        "S2R R0, SR_TID.X", "SHF.L.U32 R1, R0, 0x2, RZ", "STS [R1], R0", "BAR.SYNC.DEFER_BLOCKING 0x0",
        "LOP3.LUT R2, R1, 0x80, RZ, 0x3c, !PT", "LDS R3, [R2]", "LDC.64 R4, c[0x0][0x210]",
        "IMAD.WIDE.U32 R4, R0, 0x4, R4", "STG.E desc[UR4][R4.64], R3", "EXIT", arrays={"out": out}, block=64,
    )  # fmt: skip
    assert memory.array("out").tolist() == [*range(32, 64), *range(32)]


@pytest.mark.parametrize(("name", "expected"), [("POPC", 16), ("AND", 0), ("OR", 0xFFFFFFFF)])
def test_a_barrier_reduces_predicates(name: str, expected: int) -> None:
    out = np.zeros(1, np.uint32)
    _, memory = run(
        LANE, HALF, f"BAR.RED.{name}.DEFER_BLOCKING 0x0, P0", "B2R.RESULT R1", "LDC.64 R4, c[0x0][0x210]",
        "STG.E desc[UR4][R4.64], R1", "EXIT", arrays={"out": out},
    )  # fmt: skip
    assert memory.array("out").tolist() == [expected]


def test_a_spinning_warp_does_not_starve_the_others() -> None:
    """Warp 0 waits for a flag in shared memory that warp 1 sets."""
    result = executions(
        "S2R R0, SR_TID.X", "ISETP.LT.U32.AND P0, PT, R0, 0x20, PT", "@!P0 BRA 0x60", "LDS R1, [RZ]",
        "ISETP.EQ.AND P1, PT, R1, RZ, PT", "@P1 BRA 0x30", "@!P0 BRA 0x80", "EXIT", "MOV R1, 0x1", "STS [RZ], R1", "EXIT",
        block=64,
    )  # fmt: skip
    assert result["0x70"] == WHOLE and result["0xa0"] == WHOLE


def test_a_yielding_group_runs_last() -> None:
    """The lanes that jump yield; the others store before them."""
    out = np.zeros(1, np.uint32)
    _, memory = run(
        LANE, HALF, "LDC.64 R2, c[0x0][0x210]", "@P0 BRA 0x70", "MOV R1, 0x2", "STG.E desc[UR4][R2.64], R1", "EXIT",
        "YIELD", "MOV R1, 0x1", "STG.E desc[UR4][R2.64], R1", "EXIT", arrays={"out": out},
    )  # fmt: skip
    assert memory.array("out").tolist() == [1]


def test_a_trap_is_an_error() -> None:
    with pytest.raises(ExecutionError, match=r"BPT\.TRAP 0x1"):
        run("BPT.TRAP 0x1", "EXIT")


def test_lanes_branch_to_the_address_of_a_register() -> None:
    """Half of the lanes go to 0x70, the others to 0x80; both follow from 0x80 on."""
    result = executions(
        LANE, HALF, "MOV R1, 0x10", "@P0 MOV R1, RZ", "NOP", "NOP", 'BRX R1 0x0 (*"BRANCH_TARGETS 0x70,0x80"*)', "NOP", "NOP", "EXIT",
    )  # fmt: skip
    assert result["0x60"] == WHOLE and result["0x70"] == HALVES
    assert result["0x80"] == result["0x90"] == (2, 32)


GRID_BARRIER = (
    "ULDC UR5, c[0x0][0x48]", "ULDC UR8, c[0x0][0x44]", "ISETP.NE.U32.AND P0, PT, RZ, UR5, PT",
    "ISETP.NE.AND.EX P0, PT, RZ, UR8, PT, P0", "@P0 BRA 0x60", "BPT.TRAP 0x1", "IMAD.U32 R6, RZ, RZ, UR5",
    "IMAD.U32 R7, RZ, RZ, UR8", "MOV R9, 0x1", "ATOM.E.ADD.STRONG.GPU PT, R9, desc[UR6][R6.64+0x4], R9",
    "LD.E.STRONG.GPU R9, desc[UR6][R6.64+0x4]", "YIELD", "ISETP.NE.AND P0, PT, R9, 0x20, PT", "@P0 BRA 0xa0", "EXIT",
)  # fmt: skip
"""As nvcc's: a counter in the workspace of a cooperative launch, and a trap without a workspace."""


def test_a_grid_barrier_needs_a_cooperative_launch() -> None:
    assert executions(*GRID_BARRIER, cooperative=True)["0xe0"] == (1, 32)
    with pytest.raises(ExecutionError, match=r"the kernel ends in BPT\.TRAP 0x1 at 0x0050"):
        run(*GRID_BARRIER)
