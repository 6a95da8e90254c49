"""Warp classes: a simulated warp executes as many instructions as in the execution of its program, also with divergence."""

from __future__ import annotations

import numpy as np
import pytest
from simtbed import devices
from simtbed.compiled.control_flow import Graph, graph
from simtbed.model.instruction_stream import PROFILE_WORDS, WORDS, Field, InstructionStream
from simtbed.model.sm_simulator import SimulationResult, SmWorkload, run
from simtbed.model.warp_classes import WarpClasses, classify_warps
from simtbed.sass.counts import Counts

from tests.sass import programs
from tests.table_checks import check_each

H200 = devices.H200
LANE, WARP = "S2R R0, SR_LANEID", "S2R R9, SR_TID.X"
HALF = "ISETP.LT.U32.AND P0, PT, R0, 0x10, PT"


def classes_of(*texts: str, block: int = 32) -> tuple[Graph, Counts, WarpClasses]:
    """Execute a program; return its graph, counts and classes."""
    counts, _ = programs.run(*texts, block=block)
    whole = graph(tuple(programs.instructions(*texts)))
    return whole, counts, classify_warps(whole, counts, np.zeros(1, np.int64), 1, False)


def simulated(whole: Graph, result: WarpClasses, kind: int = 0) -> SimulationResult:
    """A warp of a class alone on an SM, whose instructions take a cycle each."""
    code = np.zeros((len(whole.instructions), WORDS), np.int64)
    code[:, Field.STALL], code[:, [Field.WRITES, Field.READS, Field.PIPE]] = 1, -1
    stream = InstructionStream(code, np.zeros((len(code), PROFILE_WORDS)), result, 1.0, {})
    return run(SmWorkload(stream, H200, np.full((1, 1), kind), 1, 1.0, 1, 1.0), {})


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


def executed(whole: Graph, counts: Counts) -> int:
    """Return the executed instructions, with one arrival at a convergence point for each execution of its BSSY."""
    by_block = counts.totals()[0][[first for first, _ in whole.blocks]]
    for convergence, setup in whole.bssy_block.items():
        by_block[convergence] = min(by_block[convergence], by_block[setup])
    return int(sum(n * (past - first) for n, (first, past) in zip(by_block, whole.blocks, strict=True)))


def test_a_simulated_warp_executes_its_program() -> None:
    def check(name: str) -> None:
        whole, counts, result = classes_of(*PROGRAMS[name])
        assert simulated(whole, result).issued == executed(whole, counts)

    check_each(PROGRAMS, check)


def test_diverged_lanes_are_counted() -> None:
    _, _, result = classes_of(*PROGRAMS["arms that reconverge"])
    assert result.divergent_shares[0].tolist() == pytest.approx([1, 0, 0, 0, 0])


def test_warps_with_other_iterations_are_another_class() -> None:
    """Warp n has 10 * (n + 1) iterations."""
    texts = (
        LANE, WARP, "SHF.R.U32.HI R2, RZ, 0x5, R9", "IADD3 R2, R2, 0x1, RZ", "IMAD R2, R2, 0xa, RZ",
        *loop("R2", start=5), "EXIT",
    )  # fmt: skip
    whole, counts, result = classes_of(*texts, block=64)
    work = counts.executions().sum(axis=0)
    assert [simulated(whole, result, kind).issued for kind in result.class_of[0].tolist()] == work.tolist()
    assert result.imbalance == (result.class_of[0, 1], 1.0)


def test_the_longest_warp_is_reported_relative_to_its_class() -> None:
    texts = (LANE, WARP, "SHF.R.U32.HI R2, RZ, 0x5, R9", "IADD3 R2, R2, 0x3e8, RZ", *loop("R2", start=4), "EXIT")
    _, counts, result = classes_of(*texts, block=128)
    work = counts.executions().sum(axis=0)
    assert len(result.lengths) == 1
    assert list(result.imbalance) == [0, pytest.approx(work.max() / work.mean())]


def test_a_jump_has_a_latency() -> None:
    looping, straight = classes_of("NOP", *loop("0x14", start=1), "EXIT"), classes_of(*["NOP"] * 61, "EXIT")
    jumping = simulated(looping[0], looping[2]).cycles
    assert jumping == pytest.approx(simulated(straight[0], straight[2]).cycles + 19 * H200.timing.branch, abs=2)


def test_consecutive_blocks_are_all_simulated() -> None:
    _, _, result = classes_of(*["NOP"] * 9, "EXIT")
    code = np.zeros((10, WORDS), np.int64)
    code[:, Field.STALL], code[:, [Field.WRITES, Field.READS, Field.PIPE]] = 1, -1
    stream = InstructionStream(code, np.zeros((10, PROFILE_WORDS)), result, 1.0, {})
    assert run(SmWorkload(stream, H200, np.zeros((4, 1), np.int64), 1, 1.0, 1, 10.0), {}).issued == 4 * 10
