"""Executed warps: a simulated warp executes its own path, also with divergence; classes, the longest warp."""

import numpy as np
import pytest
from simtbed import devices
from simtbed.model.executed_warps import ExecutedWarps, executed_warps
from simtbed.model.instruction_stream import PROFILE_WORDS, WORDS, Field, InstructionStream
from simtbed.model.sm_simulator import SimulationResult, SmWorkload, run

from tests.sass import programs
from tests.table_checks import each_row

H200 = devices.H200
LANE, WARP = "S2R R0, SR_LANEID", "S2R R9, SR_TID.X"
HALF = "ISETP.LT.U32.AND P0, PT, R0, 0x10, PT"


def warps_of(*texts: str, block: int = 32, tickets: bool = False) -> ExecutedWarps:
    """Return the warps of an executed program."""
    return executed_warps(programs.run(*texts, block=block)[0], np.zeros(1, np.int64), 1, tickets)


def simulated(warps: ExecutedWarps, *numbers: int) -> SimulationResult:
    """Return warps one after the other on an SM, whose instructions take a cycle each."""
    code = np.zeros((len(warps.ends_run), WORDS), np.int64)
    code[:, Field.STALL], code[:, [Field.WRITES, Field.READS, Field.PIPE]] = 1, -1
    memory = np.zeros((len(warps.executions), len(code), PROFILE_WORDS))
    blocks, length = np.array(numbers)[:, None], float(warps.lengths[[*numbers]].mean())
    return run(SmWorkload(InstructionStream(code, memory, warps), H200, blocks, 1, 1.0, 1, length), {})


def loop(trips: str, *body: str, start: int) -> tuple[str, ...]:
    """Return a loop at an index; `trips` is a register or number of iterations."""
    return ("IADD3 R1, R1, 0x1, RZ", *body, f"ISETP.LT.U32.AND P1, PT, R1, {trips}, PT", f"@P1 BRA {16 * start:#x}")


PROGRAMS = {
    "arms that reconverge": (
        LANE, HALF, "BSSY B0, 0x90", "@P0 BRA 0x60", "NOP", "BRA 0x80", "NOP", "NOP", "BSYNC B0", "NOP", "EXIT",
    ),
    "arms that do not": (LANE, HALF, "@P0 BRA 0x50", "NOP", "EXIT", *loop("0x64", start=5), "EXIT"),
    "an unused loop": (LANE, "@!PT BRA 0x30", "BRA 0x60", *loop("0x4", start=3), "EXIT"),
    "two iterations": (LANE, *loop("0x2", "NOP", start=1), "EXIT"),
    "a loop": (LANE, *loop("0x64", start=1), "EXIT"),
    "lanes that leave a loop in turn": (
        LANE, "IADD3 R2, R0, 0x1, RZ", "BSSY B0, 0x70", *loop("R2", start=3), "BSYNC B0", "EXIT",
    ),
    "lanes that exit": (LANE, HALF, "@P0 EXIT", "NOP", "EXIT"),
    "a branch in every second iteration": (
        LANE, "IADD3 R1, R1, 0x1, RZ", "LOP3.LUT P2, RZ, R1, 0x1, RZ, 0xc0, !PT", "@P2 BRA 0x60", "NOP", "NOP",
        "ISETP.LT.U32.AND P1, PT, R1, 0x28, PT", "@P1 BRA 0x10", "EXIT",
    ),
}  # fmt: skip


@pytest.mark.slow
@each_row(PROGRAMS)
def test_a_simulated_warp_executes_its_program(name: str) -> None:
    warps = warps_of(*PROGRAMS[name])
    assert simulated(warps, 0).issued == warps.lengths[0] == warps.executions.sum()


LOOPS = (LANE, WARP, "SHF.R.U32.HI R2, RZ, 0x5, R9", "IADD3 R2, R2, {}, RZ", *loop("R2", start=4), "EXIT")
"""Warp n has n iterations and a constant more."""


@pytest.mark.slow
def test_warps_with_other_iterations_are_another_class() -> None:
    warps = warps_of(*(text.format("0x1") for text in LOOPS), block=64)
    assert [simulated(warps, n).issued for n in (0, 1)] == warps.lengths.tolist()
    assert warps.class_of.tolist() == [0, 1] and warps.longest == (1, 1.0)
    assert simulated(warps, 0, 1, 1).issued == warps.lengths[[0, 1, 1]].sum()


@pytest.mark.slow
def test_warps_with_few_other_iterations_share_a_class() -> None:
    warps = warps_of(*(text.format("0x3e8") for text in LOOPS), block=128)
    assert len(warps.executions) == 1 and warps.longest == (3, 1.0)


@pytest.mark.slow
def test_warps_that_claim_work_take_the_typical_path() -> None:
    """The path of a warp near the mean of 1, 2 ... 7 iterations, with the mean length."""
    warps = warps_of(*(text.format("0x1") for text in LOOPS), block=7 * 32, tickets=True)
    assert warps.of_blocks(np.zeros(1, np.int64)).tolist() == [[3] * 7]
    assert set(warps.lengths.tolist()) == {warps.lengths.mean()} and warps.longest == (3, 1.0)


def test_other_blocks_take_the_path_of_an_executed_one() -> None:
    counts, _ = programs.run("NOP", "EXIT", grid=2)
    warps = executed_warps(counts, np.array([4, 8]), 12, False)
    assert warps.of_blocks(np.array([0, 4, 5, 8, 11])).tolist() == [[0], [0], [1], [1], [0]]
    assert warps.executions.tolist() == [[12.0, 12.0]]


@pytest.mark.slow
def test_a_jump_has_a_latency() -> None:
    looping, straight = warps_of("NOP", *loop("0x14", start=1), "EXIT"), warps_of(*["NOP"] * 61, "EXIT")
    jumping = simulated(looping, 0).cycles
    assert jumping == pytest.approx(simulated(straight, 0).cycles + 19 * H200.timing.branch, abs=2)
