"""Edges of an operation for special operands only."""

from __future__ import annotations

import pytest
from simtbed.compiled.control_flow import Graph, graph
from simtbed.compiled.expanded_cfg import ExpandedCfg
from simtbed.compiled.special_operand_paths import special_edges_in, special_operand_edges
from simtbed.engines.cuda.sass import Instruction


def sass(*texts: str) -> Graph:
    return graph(tuple(Instruction(16 * n, text) for n, text in enumerate(texts)))


def branch_special_edges(*tests: str, predicate: str = "@P0") -> set[tuple[int, int]]:
    """Return the special edges of a block that branches over another one."""
    end = 16 * (len(tests) + 2)
    return set(special_edges_in(sass(*tests, f"{predicate} BRA 0x{end:x}", "FADD R1, R2, R3", "EXIT"), {0}))


@pytest.mark.parametrize(
    ("tests", "branches"),
    [
        (("FSETP.GTU.AND P0, PT, |R11|, +INF , PT",), False),
        (("DSETP.NAN.AND P0, PT, R28, R28, PT",), False),
        (("FSETP.EQ.AND P0, PT, R4, 1, PT",), False),
        (("FSETP.NEU.AND P0, PT, |R4|, +INF , PT",), True),
        (("FSETP.GTU.AND P1, PT, |R2|, +INF , PT", "FSETP.GTU.OR P0, PT, |R4|, +INF , P1"), False),
        (("FSETP.NEU.AND P1, PT, |R4|, +INF , PT", "FSETP.EQ.OR P0, PT, R4.reuse, RZ, !P1"), False),
        (("ISETP.NE.AND P1, PT, R9, RZ, PT", "FSETP.EQ.OR P0, PT, R4, 1, !P1"), False),
        (("FSETP.GTU.FTZ.AND P0, PT, |R2|, +INF , PT", "FSETP.GTU.FTZ.AND P1, PT, |R3|, +INF , PT",
          "PLOP3.LUT P0, PT, P0, P1, PT, 0xa8, 0x0"), False),
        (("VIADD R0, R3, 0xffffffff", "ISETP.GE.U32.AND P0, PT, R0, 0x7fefffff, PT"), False),
        (("ISETP.LE.U32.AND P0, PT, R0, 0x7f7fffff, PT",), True),
    ],
)  # fmt: skip
def test_operands_are_not_special(tests: tuple[str, ...], branches: bool) -> None:
    assert branch_special_edges(*tests) == {(0, 1) if branches else (0, 2)}
    assert branch_special_edges(*tests, predicate="@!P0") == {(0, 2) if branches else (0, 1)}


@pytest.mark.parametrize(
    "tests",
    [
        ("FSETP.GEU.AND P0, PT, R4, RZ, PT",),
        ("FSETP.EQ.AND P0, PT, R4, R5, PT",),
        ("FSETP.GT.AND P1, PT, R4, R5, PT", "FSETP.EQ.OR P0, PT, R4, 1, P1"),
        ("FSETP.EQ.AND P0, PT, R4, 1, PT", "LOP3.LUT P0, RZ, R23, 0x7fffffff, R27, 0xc8, !PT"),
        ("ISETP.GE.U32.AND P0, PT, R0, 0x7fff, PT",),
    ],
)
def test_unknown_tests_keep_both_edges(tests: tuple[str, ...]) -> None:
    assert not branch_special_edges(*tests)


@pytest.mark.parametrize(("instruction", "expected"), [("NOP", True), ("FSETP.GT.AND P1, PT, R4, R5, PT", False)])
def test_an_earlier_test_holds_until_its_predicate_is_written(instruction: str, expected: bool) -> None:
    """Such as of a loop-invariant operand."""
    whole = sass(
        "FSETP.EQ.AND P1, PT, R4, RZ, PT", "@P2 BRA 0x30", instruction, "FSETP.EQ.OR P0, PT, R5, 1, P1", "@P0 BRA 0x60",
        "FADD R1, R2, R3", "EXIT",
    )  # fmt: skip
    assert set(special_edges_in(whole, {2})) == ({(2, 4)} if expected else set())


def test_a_test_may_be_many_blocks_earlier() -> None:
    tests = [f"@P2 BRA 0x{16 * (n + 2):x}" for n in range(1500)]
    whole = sass("FSETP.EQ.AND P1, PT, R4, RZ, PT", *tests, f"@P1 BRA 0x{16 * 1503:x}", "FADD R1, R2, R3", "EXIT")
    last = len(whole.blocks) - 3
    assert set(special_edges_in(whole, {last})) == {(last, last + 2)}


def test_a_later_write_reaches_the_next_iteration() -> None:
    whole = sass(
        "FSETP.EQ.AND P1, PT, R4, RZ, PT", "FSETP.EQ.OR P0, PT, R5, 1, P1", "FSETP.GT.AND P1, PT, R4, R5, PT", "@P0 BRA 0x50",
        "@P2 BRA 0x10", "EXIT",
    )  # fmt: skip
    assert not special_edges_in(whole, {1})


CALLING = sass(
    "MOV R1, R2",
    "@P0 CALL.REL.NOINC 0x40",
    "STG.E [R2], R1",
    "EXIT",
    "FSETP.GTU.AND P1, PT, |R3|, +INF , PT",
    "@P1 BRA 0xc0",
    "LOP3.LUT P2, RZ, R3, 0x7fffffff, R4, 0xc8, !PT",
    "@!P2 BRA 0xe0",
    "MUFU.RCP R5, R4",
    "FMUL R5, R5, R3",
    "FMUL R5, R5, R6",
    "RET.REL.NODEC R8 0x0",
    "FADD R5, R3, R4",
    "RET.REL.NODEC R8 0x0",
    "MUFU.RSQ R5, -QNAN",
    "RET.REL.NODEC R8 0x0",
)
"""A callee that adds operands one of which is NaN, makes NaN of two zeros, and else divides."""


def test_a_callee_is_traversed_with_usual_operands() -> None:
    def inside(special_edges: frozenset[tuple[int, int]]) -> list[int]:
        nodes = ExpandedCfg(CALLING, special_edges)
        node = next(n for n, calls in enumerate(nodes.call_stacks) if calls)
        result = []
        while nodes.call_stacks[node]:
            result.append(nodes.blocks[node])
            (node,) = nodes.successors[node]
        return result

    assert len(inside(frozenset())) == 2  # shortest path: a sum with NaN
    assert inside(special_operand_edges(CALLING, ())) == [2, 3, 4]


def test_callees_alone_are_operations_without_inlining() -> None:
    branching = sass("FSETP.EQ.AND P0, PT, R4, 1, PT", "@P0 BRA 0x30", "FADD R1, R2, R3", "EXIT")
    assert not special_operand_edges(branching, ())
    assert special_operand_edges(branching, [0]) == {(0, 2)}
