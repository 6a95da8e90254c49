"""Ways of warps: what a class executes follows from how often its blocks were, also where lanes part."""

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
from simtbed.model.sm_simulator import SimulationResult, run
from simtbed.model.warp_classes import WarpClasses, classify_warps
from simtbed.profiler.warp_decisions import WarpDecisions

H200 = devices.H200
AROUND = StatementList(-1, "kernel", None)


def sass(*texts: str) -> Graph:
    """A graph of instructions at 0x0, 0x10, ..."""
    return graph(tuple(Instruction(16 * n, text) for n, text in enumerate(texts)))


def classes_of(whole: Graph, executions: Sequence[float]) -> WarpClasses:
    """Of one warp that executed the blocks so often."""
    places = [()] * len(whole.instructions)
    return classify_warps(
        whole, np.array(executions, np.float64), places, SourceStatements(), WarpDecisions(), 1, 1, False
    )


def ran(whole: Graph, found: WarpClasses, kind: int = 0) -> SimulationResult:
    """A warp of a class alone on an SM, whose instructions take a cycle each."""
    code = np.zeros((len(whole.instructions), WORDS), np.int64)
    code[:, STALL], code[:, [WRITES, READS, PIPE]] = 1, -1
    stream = InstructionStream(code, np.zeros((len(code), PROFILE_WORDS)), found, 1.0, {})
    return run(stream, H200, np.full((1, 1), kind), 1, 1.0, 1, 1.0, {})


def test_where_lanes_part_for_good_the_warp_goes_both_ways() -> None:
    """Some lanes leave the kernel, the others turn in a loop a hundred times."""
    whole = sass("@P0 BRA 0x30", "NOP", "EXIT", "NOP", "@P1 BRA 0x30", "EXIT")
    assert ran(whole, classes_of(whole, [1, 1, 100, 1])).issued == 1 + 2 + 200 + 1


def test_lanes_that_part_go_on_together_where_they_meet() -> None:
    whole = sass(
        "BSSY B0, 0x70", "@P0 BRA 0x40", "NOP", "BRA 0x60", "NOP", "NOP", "BSYNC B0", "NOP", "NOP", "EXIT"
    )  # fmt: skip
    found = classes_of(whole, [1, 1, 1, 2, 1])
    assert found.divergent_shares[0].tolist() == pytest.approx([1, 0, 0, 0, 0])
    assert ran(whole, found).issued == 2 + 2 + 2 + 1 + 3


def test_a_loop_that_lanes_leave_one_by_one_turns_no_more_often() -> None:
    """Each group of lanes that leaves executes what is behind the loop, then waits; the last one goes on."""
    whole = sass("BSSY B0, 0x50", "NOP", "@P0 BRA 0x10", "NOP", "BSYNC B0", "EXIT")
    assert ran(whole, classes_of(whole, [1, 10, 3, 3, 1])).issued == 1 + 2 * 10 + 3 + 1 + 1


def test_lanes_that_leave_a_loop_wait_for_those_that_part_in_it() -> None:
    """Ten turns, in each of which lanes go both ways; in five of them some of one way leave the loop, while the others wait for those of
    the other way inside."""
    whole = sass(
        "BSSY B0, 0xc0", "BSSY B1, 0x90", "@P0 BRA 0x70", "NOP", "@!P1 BRA 0x80", "NOP", "BRA 0xb0", "NOP", "BSYNC B1", "NOP",
        "@P2 BRA 0x10", "BSYNC B0", "EXIT",
    )  # fmt: skip
    found = classes_of(whole, [1, 10, 10, 5, 10, 20, 10, 6, 1])
    assert found.blocks[0, 2, 4] == 7, "they meet behind the loop"
    assert ran(whole, found).issued == 1 + 2 * 10 + 2 * 10 + 2 * 5 + 10 + 10 + 2 * 10 + 1 + 1


def test_a_loop_of_two_turns_turns_twice() -> None:
    """Out of it as often as back."""
    whole = sass("NOP", "NOP", "@P0 BRA 0x10", "EXIT")
    assert ran(whole, classes_of(whole, [1, 2, 1])).issued == 1 + 2 * 2 + 1


def test_a_loop_that_nobody_enters_is_left() -> None:
    whole = sass("@P0 BRA 0x30", "NOP", "@P1 BRA 0x10", "EXIT")
    assert ran(whole, classes_of(whole, [1, 0, 1])).issued == 2


def test_ways_out_of_a_loop_are_counted_together() -> None:
    """A warp of two leaves in the middle of the loop: each of them turns ten times, not twenty."""
    whole = sass("NOP", "@P0 BRA 0x40", "NOP", "@P1 BRA 0x0", "EXIT")
    issued = ran(whole, classes_of(whole, [10, 9.5, 1])).issued
    assert issued == pytest.approx(2 * 10 + 2 * 9.5 + 1, abs=2)


def test_what_a_compiler_took_out_of_a_loop_is_executed_once() -> None:
    """Two warps, one of which turns three times as often."""
    body: Any = StatementList(0, "body", AROUND)
    source = SourceStatements({1: Statement(1, None, (7,), body, 40, 40)})  # type: ignore[arg-type]
    decided = WarpDecisions()
    decided._rows = np.array([[0, 0, 0, 1, 10, 0, 0, 1], [0, 1, 0, 1, 30, 0, 0, 1]]).reshape(-1)
    decided._used[0] = 2
    whole = sass("NOP", "BRA 0x20", "NOP", "@P0 BRA 0x20", "EXIT")
    found = classify_warps(whole, np.array([2.0, 40.0, 2.0]), [(7,)] * 5, source, decided, 1, 2, False)
    kinds = found.class_of[0].tolist()
    assert [ran(whole, found, kind).issued for kind in kinds] == [2 + 2 * 10 + 1, 2 + 2 * 30 + 1]


def test_what_has_no_line_tells_nothing() -> None:
    """One of two warps leaves by a statement without a line, as the end of the kernel has none."""
    left: Any = StatementList(0, "then", AROUND)
    source = SourceStatements({1: Statement(1, None, (0,), left, 1, 32), 2: Statement(2, None, (7,), AROUND, 2, 64)})  # type: ignore[arg-type]
    decided = WarpDecisions()
    decided._rows = np.array([[0, 0, 0, 1, 0, 1, 0, 0], [0, 1, 0, 1, 0, 0, 1, 0]]).reshape(-1)
    decided._used[0] = 2
    whole = sass("NOP", "NOP", "EXIT")
    found = classify_warps(whole, np.array([2.0]), [(7,), (0,), (0,)], source, decided, 1, 2, False)
    assert [ran(whole, found, kind).issued for kind in found.class_of[0].tolist()] == [3, 3]


def test_a_warp_that_jumps_goes_on_later() -> None:
    turns, straight = sass("NOP", "@P0 BRA 0x0", "EXIT"), sass(*["NOP"] * 40, "EXIT")
    jumping = ran(turns, classes_of(turns, [20, 1])).cycles
    assert jumping == pytest.approx(ran(straight, classes_of(straight, [1])).cycles + 19 * H200.timing.branch, abs=2)


def test_what_is_behind_a_guard_is_not_executed_by_warps_that_left() -> None:
    """Two warps come to a list; one of them goes on behind a statement by which lanes leave, to a loop that turns ten times."""
    statements = {n: Statement(n, None, (n,), AROUND, 2, 2) for n in (1, 3)}  # type: ignore[arg-type]
    source = SourceStatements(statements, loops={3: None}, next_branch={1: 3, 3: 3})  # type: ignore[dict-item]
    decided = WarpDecisions()
    decided._rows = np.array([0, 1, 3, 1, 10, 0, 0, 1])
    decided._used[0] = 1
    whole = sass("@P0 EXIT", "NOP", "NOP", "@P1 BRA 0x20", "NOP", "EXIT")
    places = [(), (1,), (3,), (3,), (1,), (1,)]
    found = classify_warps(whole, np.array([2.0, 1.0, 10.0, 1.0]), places, source, decided, 1, 2, False)
    assert [ran(whole, found, kind).issued for kind in found.class_of[0].tolist()] == [1, 1 + 1 + 2 * 10 + 2]


def turning(*turns: int) -> tuple[SourceStatements, WarpDecisions]:
    """A loop of the source at line 7, with something at line 8 in it, that each warp enters once, if it turns at all."""
    body: Any = StatementList(0, "body", AROUND)
    source = SourceStatements(
        {0: Statement(0, None, (7,), AROUND, 1, 1), 1: Statement(1, None, (8,), body, 1, 1)},  # type: ignore[arg-type]
        loops={0: None},  # type: ignore[dict-item]
    )
    decided = WarpDecisions()
    decided._rows = np.array([[0, warp, 0, 1, n, 0, 0, n > 0] for warp, n in enumerate(turns)]).reshape(-1)
    decided._used[0] = len(turns)
    return source, decided


def test_what_unrolled_turns_leave_over_takes_no_longer_in_long_loops() -> None:
    """Three warps turn twice, one turns 34 times: two by one, the others in turns of four, to which the first three do not come."""
    source, decided = turning(2, 2, 2, 34)
    whole = sass(
        "LOP3.LUT R3, R8, 0x3, RZ, 0xc0, !PT", "BRA 0x20", "IADD3 R3, R3, -0x1, RZ", "ISETP.NE.AND P0, PT, R3, RZ, PT",
        "@P0 BRA 0x20", "@!P1 BRA 0xa0", "MOV R1, R2", "BRA 0x80", "NOP", "@P2 BRA 0x80", "EXIT",
    )  # fmt: skip
    places = [(), (), (8,), (7,), (7,), (7,), (7,), (7,), (8,), (7,), ()]
    found = classify_warps(whole, np.array([4.0, 8.0, 4.0, 1.0, 8.0, 4.0]), places, source, decided, 1, 4, False)
    short, long = found.class_of[0, 0], found.class_of[0, 3]
    assert found.executions[short].tolist() == [1, 2, 1, 0, 0, 1]
    assert found.executions[long].tolist() == [1, 2, 1, 1, 8, 1]


def test_what_leads_into_a_loop_is_executed_by_warps_that_enter_it() -> None:
    source, decided = turning(0, 5, 0, 5)
    whole = sass("@P0 BRA 0x40", "NOP", "NOP", "@P1 BRA 0x20", "EXIT")
    found = classify_warps(
        whole, np.array([4.0, 2.0, 10.0, 4.0]), [(), (), (8,), (8,), ()], source, decided, 1, 4, False
    )
    assert [found.executions[found.class_of[0, warp]].tolist() for warp in (0, 1)] == [[1, 0, 0, 1], [1, 1, 5, 1]]


def test_no_block_is_executed_oftener_than_what_leads_to_it() -> None:
    """Half of the turns come to a block of another list, to which warps that never turn came as well."""
    source, decided = turning(0, 4, 0, 4)
    source.statements[2] = Statement(2, None, (9,), StatementList(3, "then", AROUND), 1, 1)  # type: ignore[arg-type]
    decided._rows = np.concatenate([decided._rows, [0, 0, 3, 1, 0, 1, 0, 0], [0, 1, 3, 1, 0, 1, 0, 0]])
    decided._used[0] += 2
    whole = sass("@P0 BRA 0x50", "NOP", "@P1 BRA 0x40", "NOP", "@P2 BRA 0x20", "EXIT")
    places = [(), (), (8,), (9,), (8,), ()]
    found = classify_warps(whole, np.array([4.0, 2.0, 8.0, 2.0, 8.0, 4.0]), places, source, decided, 1, 4, False)
    assert found.executions[found.class_of[0, 0]][[2, 3, 4]].tolist() == [0, 0, 0]


def test_the_longest_warp_is_told_from_its_class() -> None:
    source, decided = turning(*[1000] * 30, 1010, 990)
    whole = sass("NOP", "NOP", "@P0 BRA 0x10", "EXIT")
    found = classify_warps(whole, np.array([32.0, 32000.0, 32.0]), [(), (8,), (8,), ()], source, decided, 1, 32, False)
    assert len(found.lengths) == 1
    assert found.imbalance[0] == 0 and found.imbalance[1] == pytest.approx(1.01, abs=0.001)


def test_blocks_that_come_one_after_another_are_all_simulated() -> None:
    whole = sass(*["NOP"] * 9, "EXIT")
    found = classes_of(whole, [1])
    code = np.zeros((10, WORDS), np.int64)
    code[:, STALL], code[:, [WRITES, READS, PIPE]] = 1, -1
    stream = InstructionStream(code, np.zeros((10, PROFILE_WORDS)), found, 1.0, {})
    assert run(stream, H200, np.zeros((4, 1), np.int64), 1, 1.0, 1, 10.0, {}).issued == 4 * 10


def test_what_an_arm_is_executed_by_chance_does_not_tell_of_an_unrolled_loop() -> None:
    """Two warps turn 24 times, two iterations a turn; one of them comes to an arm each time: 12 times on average, as to the loop."""
    source, decided = turning(24, 24)
    source.statements[2] = Statement(2, None, (9,), StatementList(3, "then", AROUND), 1, 1)  # type: ignore[arg-type]
    decided._rows = np.concatenate([decided._rows, [0, 0, 3, 24, 0, 24, 0, 0]])
    decided._used[0] += 1
    whole = sass("NOP", "NOP", "NOP", "NOP", "@P0 NOP", "@P2 BRA 0x10", "EXIT")
    places = [(), (8,), (8,), (8,), (9,), (8,), ()]
    found = classify_warps(whole, np.array([2.0, 24.0, 2.0]), places, source, decided, 1, 2, False)
    assert found.executions[found.class_of[0]].tolist() == [[1, 12, 1]] * 2
