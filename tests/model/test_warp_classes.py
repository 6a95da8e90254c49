"""Warp classes: a class executes its blocks as often as counted, also with divergence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from simtbed import devices
from simtbed.compiled.control_flow import Graph, graph
from simtbed.compiled.source_statements import SourceStatements, Statement, StatementList
from simtbed.engines.cuda.sass import Instruction
from simtbed.model.instruction_stream import PIPE, PROFILE_WORDS, READS, STALL, WORDS, WRITES, InstructionStream
from simtbed.model.sm_simulator import SimulationResult, SmWorkload, run
from simtbed.model.warp_classes import WarpClasses, classify_warps
from simtbed.profiler.warp_decisions import WarpDecisions

H200 = devices.H200
AROUND = StatementList(-1, "kernel", None)


def sass(*texts: str) -> Graph:
    """Return a graph of instructions at 0x0, 0x10, ..."""
    return graph(tuple(Instruction(16 * n, text) for n, text in enumerate(texts)))


def classes_of(whole: Graph, executions: Sequence[float]) -> WarpClasses:
    """Return the classes of one warp with these block executions."""
    places = [()] * len(whole.instructions)
    return classify_warps(
        whole, np.array(executions, np.float64), places, SourceStatements(), WarpDecisions(), 1, 1, False
    )


def simulated(whole: Graph, result: WarpClasses, kind: int = 0) -> SimulationResult:
    """A warp of a class alone on an SM, whose instructions take a cycle each."""
    code = np.zeros((len(whole.instructions), WORDS), np.int64)
    code[:, STALL], code[:, [WRITES, READS, PIPE]] = 1, -1
    stream = InstructionStream(code, np.zeros((len(code), PROFILE_WORDS)), result, 1.0, {})
    return run(SmWorkload(stream, H200, np.full((1, 1), kind), 1, 1.0, 1, 1.0), {})


def test_a_warp_executes_both_sides_without_reconvergence() -> None:
    """Some lanes exit, the others loop a hundred times."""
    whole = sass("@P0 BRA 0x30", "NOP", "EXIT", "NOP", "@P1 BRA 0x30", "EXIT")
    assert simulated(whole, classes_of(whole, [1, 1, 100, 1])).issued == 1 + 2 + 200 + 1


def test_diverged_lanes_continue_after_reconvergence() -> None:
    whole = sass(
        "BSSY B0, 0x70", "@P0 BRA 0x40", "NOP", "BRA 0x60", "NOP", "NOP", "BSYNC B0", "NOP", "NOP", "EXIT"
    )  # fmt: skip
    result = classes_of(whole, [1, 1, 1, 2, 1])
    assert result.divergent_shares[0].tolist() == pytest.approx([1, 0, 0, 0, 0])
    assert simulated(whole, result).issued == 2 + 2 + 2 + 1 + 3


def test_separate_exits_do_not_add_iterations() -> None:
    """Each leaving group executes the code after the loop, then waits; the last one continues."""
    whole = sass("BSSY B0, 0x50", "NOP", "@P0 BRA 0x10", "NOP", "BSYNC B0", "EXIT")
    assert simulated(whole, classes_of(whole, [1, 10, 3, 3, 1])).issued == 1 + 2 * 10 + 3 + 1 + 1


def test_exited_lanes_wait_for_diverged_lanes() -> None:
    """Ten iterations with divergence; in five of them some lanes of one side leave, while the others wait for the other side."""
    whole = sass(
        "BSSY B0, 0xc0", "BSSY B1, 0x90", "@P0 BRA 0x70", "NOP", "@!P1 BRA 0x80", "NOP", "BRA 0xb0", "NOP", "BSYNC B1", "NOP",
        "@P2 BRA 0x10", "BSYNC B0", "EXIT",
    )  # fmt: skip
    result = classes_of(whole, [1, 10, 10, 5, 10, 20, 10, 6, 1])
    assert result.blocks[0, 2, 4] == 7, "they reconverge behind the loop"
    assert simulated(whole, result).issued == 1 + 2 * 10 + 2 * 10 + 2 * 5 + 10 + 10 + 2 * 10 + 1 + 1


def test_a_loop_of_two_iterations_runs_twice() -> None:
    """Equal exit and back edge counts."""
    whole = sass("NOP", "NOP", "@P0 BRA 0x10", "EXIT")
    assert simulated(whole, classes_of(whole, [1, 2, 1])).issued == 1 + 2 * 2 + 1


def test_an_unused_loop_is_skipped() -> None:
    whole = sass("@P0 BRA 0x30", "NOP", "@P1 BRA 0x10", "EXIT")
    assert simulated(whole, classes_of(whole, [1, 0, 1])).issued == 2


def test_exits_of_a_loop_share_a_counter() -> None:
    """One of two warps leaves in the middle of the loop: each has ten iterations, not twenty."""
    whole = sass("NOP", "@P0 BRA 0x40", "NOP", "@P1 BRA 0x0", "EXIT")
    issued = simulated(whole, classes_of(whole, [10, 9.5, 1])).issued
    assert issued == pytest.approx(2 * 10 + 2 * 9.5 + 1, abs=2)


def test_hoisted_code_is_executed_once() -> None:
    """Two warps, one with three times the iterations."""
    body: Any = StatementList(0, "body", AROUND)
    source = SourceStatements({1: Statement(1, None, (7,), body, 40, 40)})  # type: ignore[arg-type]
    decided = WarpDecisions()
    decided._rows = np.array([[0, 0, 0, 1, 10, 0, 0, 1], [0, 1, 0, 1, 30, 0, 0, 1]]).reshape(-1)
    decided._used[0] = 2
    whole = sass("NOP", "BRA 0x20", "NOP", "@P0 BRA 0x20", "EXIT")
    result = classify_warps(whole, np.array([2.0, 40.0, 2.0]), [(7,)] * 5, source, decided, 1, 2, False)
    kinds = result.class_of[0].tolist()
    assert [simulated(whole, result, kind).issued for kind in kinds] == [2 + 2 * 10 + 1, 2 + 2 * 30 + 1]


def test_instructions_without_a_line_are_no_evidence() -> None:
    """One of two warps leaves by a statement without a line, such as the kernel's end."""
    left: Any = StatementList(0, "then", AROUND)
    source = SourceStatements({1: Statement(1, None, (0,), left, 1, 32), 2: Statement(2, None, (7,), AROUND, 2, 64)})  # type: ignore[arg-type]
    decided = WarpDecisions()
    decided._rows = np.array([[0, 0, 0, 1, 0, 1, 0, 0], [0, 1, 0, 1, 0, 0, 1, 0]]).reshape(-1)
    decided._used[0] = 2
    whole = sass("NOP", "NOP", "EXIT")
    result = classify_warps(whole, np.array([2.0]), [(7,), (0,), (0,)], source, decided, 1, 2, False)
    assert [simulated(whole, result, kind).issued for kind in result.class_of[0].tolist()] == [3, 3]


def test_a_jump_has_a_latency() -> None:
    loop, straight = sass("NOP", "@P0 BRA 0x0", "EXIT"), sass(*["NOP"] * 40, "EXIT")
    jumping = simulated(loop, classes_of(loop, [20, 1])).cycles
    assert jumping == pytest.approx(
        simulated(straight, classes_of(straight, [1])).cycles + 19 * H200.timing.branch, abs=2
    )


def test_warps_that_left_do_not_execute_guarded_statements() -> None:
    """One of two warps continues after an exit, to a loop of ten iterations."""
    statements = {n: Statement(n, None, (n,), AROUND, 2, 2) for n in (1, 3)}  # type: ignore[arg-type]
    source = SourceStatements(statements, loops={3: None}, next_branch={1: 3, 3: 3})  # type: ignore[dict-item]
    decided = WarpDecisions()
    decided._rows = np.array([0, 1, 3, 1, 10, 0, 0, 1])
    decided._used[0] = 1
    whole = sass("@P0 EXIT", "NOP", "NOP", "@P1 BRA 0x20", "NOP", "EXIT")
    places = [(), (1,), (3,), (3,), (1,), (1,)]
    result = classify_warps(whole, np.array([2.0, 1.0, 10.0, 1.0]), places, source, decided, 1, 2, False)
    assert [simulated(whole, result, kind).issued for kind in result.class_of[0].tolist()] == [1, 1 + 1 + 2 * 10 + 2]


def source_loop(*iterations: int) -> tuple[SourceStatements, WarpDecisions]:
    """A source loop at line 7 with a statement at line 8, entered once by each warp with iterations."""
    body: Any = StatementList(0, "body", AROUND)
    source = SourceStatements(
        {0: Statement(0, None, (7,), AROUND, 1, 1), 1: Statement(1, None, (8,), body, 1, 1)},  # type: ignore[arg-type]
        loops={0: None},  # type: ignore[dict-item]
    )
    decided = WarpDecisions()
    decided._rows = np.array([[0, warp, 0, 1, n, 0, 0, n > 0] for warp, n in enumerate(iterations)]).reshape(-1)
    decided._used[0] = len(iterations)
    return source, decided


def test_remainder_loops_do_not_scale_with_the_count() -> None:
    """Three warps have two iterations, one has 34: two in the remainder loop, the others unrolled by four."""
    source, decided = source_loop(2, 2, 2, 34)
    whole = sass(
        "LOP3.LUT R3, R8, 0x3, RZ, 0xc0, !PT", "BRA 0x20", "IADD3 R3, R3, -0x1, RZ", "ISETP.NE.AND P0, PT, R3, RZ, PT",
        "@P0 BRA 0x20", "@!P1 BRA 0xa0", "MOV R1, R2", "BRA 0x80", "NOP", "@P2 BRA 0x80", "EXIT",
    )  # fmt: skip
    places = [(), (), (8,), (7,), (7,), (7,), (7,), (7,), (8,), (7,), ()]
    result = classify_warps(whole, np.array([4.0, 8.0, 4.0, 1.0, 8.0, 4.0]), places, source, decided, 1, 4, False)
    short, long = result.class_of[0, 0], result.class_of[0, 3]
    assert result.executions[short].tolist() == [1, 2, 1, 0, 0, 1]
    assert result.executions[long].tolist() == [1, 2, 1, 1, 8, 1]


def test_warps_that_enter_a_loop_execute_its_preheader() -> None:
    source, decided = source_loop(0, 5, 0, 5)
    whole = sass("@P0 BRA 0x40", "NOP", "NOP", "@P1 BRA 0x20", "EXIT")
    result = classify_warps(
        whole, np.array([4.0, 2.0, 10.0, 4.0]), [(), (), (8,), (8,), ()], source, decided, 1, 4, False
    )
    assert [result.executions[result.class_of[0, warp]].tolist() for warp in (0, 1)] == [[1, 0, 0, 1], [1, 1, 5, 1]]


def test_executions_are_capped_by_the_dominator() -> None:
    """Half of the iterations reach a block of another list, also visited by warps without iterations."""
    source, decided = source_loop(0, 4, 0, 4)
    source.statements[2] = Statement(2, None, (9,), StatementList(3, "then", AROUND), 1, 1)  # type: ignore[arg-type]
    decided._rows = np.concatenate([decided._rows, [0, 0, 3, 1, 0, 1, 0, 0], [0, 1, 3, 1, 0, 1, 0, 0]])
    decided._used[0] += 2
    whole = sass("@P0 BRA 0x50", "NOP", "@P1 BRA 0x40", "NOP", "@P2 BRA 0x20", "EXIT")
    places = [(), (), (8,), (9,), (8,), ()]
    result = classify_warps(whole, np.array([4.0, 2.0, 8.0, 2.0, 8.0, 4.0]), places, source, decided, 1, 4, False)
    assert result.executions[result.class_of[0, 0]][[2, 3, 4]].tolist() == [0, 0, 0]


def test_the_longest_warp_is_reported_relative_to_its_class() -> None:
    source, decided = source_loop(*[1000] * 30, 1010, 990)
    whole = sass("NOP", "NOP", "@P0 BRA 0x10", "EXIT")
    result = classify_warps(whole, np.array([32.0, 32000.0, 32.0]), [(), (8,), (8,), ()], source, decided, 1, 32, False)
    assert len(result.lengths) == 1
    assert result.imbalance[0] == 0 and result.imbalance[1] == pytest.approx(1.01, abs=0.001)


def test_consecutive_blocks_are_all_simulated() -> None:
    whole = sass(*["NOP"] * 9, "EXIT")
    result = classes_of(whole, [1])
    code = np.zeros((10, WORDS), np.int64)
    code[:, STALL], code[:, [WRITES, READS, PIPE]] = 1, -1
    stream = InstructionStream(code, np.zeros((10, PROFILE_WORDS)), result, 1.0, {})
    assert run(SmWorkload(stream, H200, np.zeros((4, 1), np.int64), 1, 1.0, 1, 10.0), {}).issued == 4 * 10


def test_coincidental_arm_counts_do_not_affect_unrolled_loops() -> None:
    """Two warps have 24 iterations, two per trip; one of them enters an arm each time: 12 on average, as the loop."""
    source, decided = source_loop(24, 24)
    source.statements[2] = Statement(2, None, (9,), StatementList(3, "then", AROUND), 1, 1)  # type: ignore[arg-type]
    decided._rows = np.concatenate([decided._rows, [0, 0, 3, 24, 0, 24, 0, 0]])
    decided._used[0] += 1
    whole = sass("NOP", "NOP", "NOP", "NOP", "@P0 NOP", "@P2 BRA 0x10", "EXIT")
    places = [(), (8,), (8,), (8,), (9,), (8,), ()]
    result = classify_warps(whole, np.array([2.0, 24.0, 2.0]), places, source, decided, 1, 2, False)
    assert result.executions[result.class_of[0]].tolist() == [[1, 12, 1]] * 2


def test_as_many_groups_leave_a_loop_as_enter_it() -> None:
    """Estimated executions of a class that no flow has: the loop has two exits, and its lanes diverge at the second one."""
    whole = sass(
        "BSSY B0, 0x80", "NOP", "@P0 BRA 0x80", "@P1 BRA 0x10", "NOP", "BSSY B1, 0x70", "NOP", "BSYNC B1", "BSYNC B0", "EXIT",
    )  # fmt: skip
    executions = (1, 6, 4.75, 2.7, 5, 5, 1)
    result = classes_of(whole, executions)
    expected = sum(n * (past - first) for n, (first, past) in zip(executions, whole.blocks, strict=True))
    assert simulated(whole, result).issued == pytest.approx(expected, rel=0.25)
