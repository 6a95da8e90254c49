"""Executions of instructions from those of statements: flow, unrolling, divergence, calls."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from simtbed import LaunchError
from simtbed.compiled.flow import SourceEvidence
from simtbed.compiled.flow import estimate_executions as estimated
from simtbed.compiled.flow_records import ArmShare, FlowEstimate, KnownCounts, LocatedInstruction, StatementCounts
from simtbed.compiled.pipes import PIPES, pipes_of
from simtbed.engines.cuda.sass import Instruction
from simtbed.reports.hardware.cases import VARIANTS, find
from simtbed.reports.hardware.recording import RecordingLauncher
from simtbed.testing.conformance import FEATURES

from tests.hardware.listing import placed
from tests.validation.recorded import load_record


def statement_counts(  # noqa: PLR0913 - one keyword for each field of StatementCounts
    line: int,
    kind: str,
    lanes: int,
    warps: int = 0,
    divergent: int = 0,
    size: int = 4,
    loop: int = 0,
    iterations: int = 0,
    calls: tuple[int, ...] = (),
    **costs: int,
) -> StatementCounts:
    """A statement; full warps by default. loop: the line of the loop around it."""
    around = (loop,) if loop else ()
    return StatementCounts(
        line, kind, warps or -(-lanes // 32), lanes, divergent, size, costs, around, iterations, calls
    )


def estimate_executions(
    code: Sequence[LocatedInstruction],
    executed: Iterable[StatementCounts],
    threads: int,
    warps: int,
    counted: KnownCounts | None = None,
) -> FlowEstimate:
    """Estimate with inlining information if the code has calls."""
    evidence = SourceEvidence(executed, any(one.calls for one in code))
    return estimated(code, evidence, threads, warps, counted)


def by_text(estimate: FlowEstimate) -> dict[str, tuple[float, float]]:
    """(warps, threads) of each instruction."""
    return {i.text: (w, t) for i, w, t in zip(estimate.instructions, estimate.warps, estimate.threads, strict=True)}


def test_straight_code_runs_once_a_warp() -> None:
    code = placed("1 | S2R R0, SR_TID.X\n 2 | STG.E [R2.64], R0\n 2 | EXIT\n e:\n | BRA `(e)")
    result = estimate_executions(
        code, [statement_counts(1, "compute", 96), statement_counts(2, "global_store", 96)], threads=96, warps=3
    )
    assert result.warps.tolist() == [3, 3, 3, 0]
    assert (result.warp_instructions, result.thread_instructions) == (9, 288)


def test_a_loop_runs_as_often_as_its_loads() -> None:
    code = placed("1 | S2R R0, SR_TID.X\n l:\n 3 | LDG.E R2, [R2]\n | @P0 BRA `(l)\n 4 | EXIT")
    result = by_text(
        estimate_executions(
            code, [statement_counts(2, "branch", 32 * 11), statement_counts(3, "global_load", 320)], threads=32, warps=1
        )
    )
    assert result["LDG.E R2, [R2]"] == (10, 320)
    assert result["EXIT"] == (1, 32)


def test_copies_of_an_unrolled_loop_share_its_iterations() -> None:
    body = "\n".join(f"3 | LDG.E R{n}, [R{n}]" for n in range(4))
    code = placed(f"1 | S2R R9, SR_TID.X\n l:\n {body}\n 2 | @P0 BRA `(l)\n 4 | EXIT")
    result = by_text(estimate_executions(code, [statement_counts(3, "global_load", 32 * 20)], threads=32, warps=1))
    assert result["LDG.E R0, [R0]"] == (5, 160)


def test_a_wider_access_implements_several() -> None:
    code = placed("1 | S2R R9, SR_TID.X\n l:\n 3 | LDS.128 R0, [R0]\n 2 | @P0 BRA `(l)\n 4 | EXIT")
    result = by_text(estimate_executions(code, [statement_counts(3, "shared_load", 32 * 20)], threads=32, warps=1))
    assert result["LDS.128 R0, [R0]"] == (5, 160)


BRANCH = """
    1 | ISETP.GE.AND P0, PT, R0, 0x4, PT
    2 | BSSY B0, `(e)
    2 | @P0 BRA `(m)
    3 | STG.E [R2.64], R0
    m:
    2 | BSYNC B0
    e:
    5 | EXIT
"""


def test_diverged_lanes_reconverge_group_by_group() -> None:
    executed = [
        statement_counts(1, "compute", 64),
        statement_counts(2, "branch", 64, divergent=1),
        statement_counts(3, "global_store", 5, warps=1),
    ]
    result = by_text(estimate_executions(placed(BRANCH), executed, threads=64, warps=2))
    assert result["STG.E [R2.64], R0"] == (1, 5)
    assert result["BSYNC B0"] == (3, 64)  # one warp arrives converged, the other in two groups
    assert result["EXIT"] == (2, 64)


def test_a_predicated_access_runs_at_least_as_often_as_it_acts() -> None:
    code = placed("1 | S2R R0, SR_TID.X\n 3 | @P0 LDG.E R2, [R2]\n 4 | EXIT")
    result = by_text(estimate_executions(code, [statement_counts(3, "global_load", 5, warps=1)], threads=32, warps=1))
    assert result["@P0 LDG.E R2, [R2]"] == (1, 32)


DIVISION = """
    1 | FCHK P0, R0, R1
    1 | @!P0 BRA `(d)
    1 | CALL.REL.NOINC `(slow)
    d:
    2 | EXIT
    slow:
    1 | FFMA R0, R1, R2, R3
    1 | RET.REL.NODEC R2 0x30
"""


def test_the_slow_path_of_a_division_is_not_taken_for_granted() -> None:
    result = by_text(
        estimate_executions(placed(DIVISION), [statement_counts(1, "compute", 32, fdiv=1)], threads=32, warps=1)
    )
    assert result["FCHK P0, R0, R1"] == (1, 32)
    assert result["FFMA R0, R1, R2, R3"] == (0, 0)


def test_a_loop_with_separate_exits_has_no_convergence_point() -> None:
    code = placed("1 | S2R R0, SR_TID.X\n l:\n 3 | ATOMG.E.CAS PT, R1, [R2], R3, R4\n 2 | @P0 BRA `(l)\n 4 | EXIT")
    lanes = 32 * 33 // 2
    executed = [
        statement_counts(2, "branch", lanes + 32, warps=33, divergent=31),
        statement_counts(3, "global_atomic", lanes, warps=32),
    ]
    result = by_text(estimate_executions(code, executed, threads=32, warps=1))
    assert result["ATOMG.E.CAS PT, R1, [R2], R3, R4"] == (32, lanes)
    assert result["EXIT"] == (32, 32)


def test_without_highspy_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("highspy"):
            raise ModuleNotFoundError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(LaunchError, match=r'highspy is not installed: pip install "simtbed\[sass\]"'):
        estimate_executions(placed("1 | EXIT"), [], threads=32, warps=1)


def test_the_pipes_are_those_of_the_hardware() -> None:
    """Pipes of every recorded kernel, equal for language features. In variants some branches use the cbu, and racing or
    waiting kernels
    vary between profiler passes."""
    waiting = {"sum_of_the_grid", "turns_in_a_loop", "grid_barrier_in_a_function", "grid_barriers_until_it_is_enough"}
    features = {feature.name for feature in FEATURES} - waiting
    for case, kernels in load_record("h200").counters.items():
        for profiled in kernels if case not in waiting else ():
            result = dict.fromkeys(PIPES, 0)
            for executed in profiled.sass:
                for pipe in pipes_of(executed.placed.instruction):
                    result[pipe] += executed.warps
            slack = 0 if case in features else 0.05 * profiled.figures["warp_instructions"]
            assert {p: n for p, n in result.items() if abs(n - profiled.pipes[p]) > slack} == {}, case


TWICE = """
    9 | S2R R0, SR_TID.X
    7 | BSSY B0, `(e)
    7 | @P0 BRA `(m)
    3 | LDG.E R2, [R2]
    3 | IADD3 R4, R4, 0x1, RZ
    m:
    7 | BSYNC B0
    e:
    8 | @!P1 EXIT
    3 | LDG.E R3, [R3]
    3 | IADD3 R5, R5, 0x1, RZ
    9 | EXIT
"""


def test_functions_are_distinguished_by_call() -> None:
    """Line 3 is in a function, called on line 7 by 5 lanes and on line 8 by 20; 25 loads in total."""
    calls = {3: (7,), 4: (7,), 7: (8,), 8: (8,)}
    code = [replace(one, calls=calls.get(n, ())) for n, one in enumerate(placed(TWICE))]
    executed = [
        statement_counts(3, "global_load", 5, calls=(7,)), statement_counts(3, "compute", 5, calls=(7,)),
        statement_counts(3, "global_load", 20, calls=(8,)), statement_counts(3, "compute", 20, calls=(8,)),
    ]  # fmt: skip
    result = by_text(estimate_executions(code, executed, threads=32, warps=1))
    assert result["LDG.E R2, [R2]"] == (1, 5)
    assert result["LDG.E R3, [R3]"] == (1, 20)


def test_a_dropped_load_does_not_raise_block_executions() -> None:
    """One of two loads on line 3 remains; the rest of its block determines its executions."""
    code = placed(
        "1 | S2R R0, SR_TID.X\n l:\n 3 | LDG.E R2, [R2]\n 4 | FMUL R3, R2, R2\n 4 | MOV R4, R3\n 2 | @P0 BRA `(l)\n 5 | EXIT"
    )
    executed = [
        statement_counts(3, "global_load", 320),
        statement_counts(3, "global_load", 320),
        statement_counts(4, "compute", 320),
    ]
    result = by_text(estimate_executions(code, executed, threads=32, warps=1))
    assert result["LDG.E R2, [R2]"] == (10, 320)


ALTERNATING = """
    1 | S2R R9, SR_TID.X
    l:
    2 | @P1 BRA `(a)
    3 | LDS R0, [R0]
    a:
    4 | BAR.SYNC 0x0
    2 | @P2 BRA `(b)
    3 | LDS R1, [R1]
    b:
    4 | BAR.SYNC 0x0
    5 | @P0 BRA `(l)
    6 | EXIT
"""


def test_copies_of_a_branch_have_equal_shares() -> None:
    """200 of 640 lanes, of all 20 warps, take the branch; equal shares determine each copy."""
    executed = [statement_counts(3, "shared_load", 200, warps=20), statement_counts(4, "barrier", 640, size=1)]
    code = placed(ALTERNATING)
    counted = KnownCounts(arms={2: ArmShare(1, 200 / 640, 1.0), 4: ArmShare(3, 200 / 640, 1.0)})
    result = by_text(estimate_executions(code, executed, threads=32, warps=1, counted=counted))
    assert [result[f"LDS R{n}, [R{n}]"] for n in (0, 1)] == [(10, 100), (10, 100)]


def test_a_predicated_branch_does_not_count_its_block() -> None:
    code = placed(
        "1 | S2R R0, SR_TID.X\n 2 | @!P0 BRA `(e)\n 4 | IADD3 R1, R1, 0x1, RZ\n 4 | @P1 STG.E [R2], R1\n 5 | MOV R3, R1\n e:\n 6 | EXIT"
    )
    executed = [
        statement_counts(4, "compute", 1),
        statement_counts(4, "global_store", 1),
        statement_counts(5, "compute", 20),
    ]
    result = by_text(estimate_executions(code, executed, threads=32, warps=1))
    assert result["@P1 STG.E [R2], R1"] == (1, 20)


def test_iterations_are_counted_by_statements_that_are_no_loops() -> None:
    """An inner loop counts its tests, one more than its iterations."""
    launcher = RecordingLauncher("jit")
    (naive,) = [case for case in find([VARIANTS]) if case.name == "pairhmm intratask-naive"]
    naive.run(launcher)
    (launched,) = launcher.kernels
    bands = next(n for n, line in enumerate(launched.source.text.splitlines(), 1) if "first += 128" in line)
    assert {e.iterations for e in launched.executed if e.loop == (bands,)} == {1}


def test_iterations_are_known_if_all_lanes_agree() -> None:
    launcher = RecordingLauncher("jit")
    (transposing,) = [case for case in find(["tests.validation.cases:cases"]) if case.name == "transpose, pitch 33"]
    transposing.run(launcher)
    (launched,) = launcher.kernels
    accesses = [
        e for e in launched.executed if e.kind in ("global_load", "shared_store", "shared_load", "global_store")
    ]
    assert [e.iterations for e in accesses] == [4, 4, 4, 4]  # 8 rows of threads copy 32
    assert {e.iterations for e in launched.executed if not e.loop} == {0}


def test_an_unused_slow_path_is_not_called() -> None:
    """Even with evidence for its block."""
    texts = [
        "@P0 BRA 0x30",
        "CALL.REL.NOINC 0x50",
        "NOP",
        "STG.E [R2], R1",
        "EXIT",
        "FADD R1, R2, R3",
        "RET.REL.NODEC R4 0x0",
    ]
    listed = [LocatedInstruction(Instruction(16 * n, text), 7 if n == 5 else 0) for n, text in enumerate(texts)]
    evidence = SourceEvidence([StatementCounts(7, "compute", 1, 32, 0, 0, {"fp32": 1})], False)
    open_ = estimated(listed, evidence, 32, 1, KnownCounts())
    closed = estimated(listed, evidence, 32, 1, KnownCounts(unused_slow_calls=frozenset({1})))
    assert open_.threads[1] == 32 and closed.threads[1] == 0


def test_sunk_stores_do_not_diverge() -> None:
    """A warp stores ten times in the source, converged; once after the compiled loop, where lanes may arrive separately."""
    code = placed("1 | S2R R0, SR_TID.X\n l:\n 2 | LDG.E R2, [R4.64]\n 2 | @P0 BRA `(l)\n 3 | STS [R3], R2\n 3 | EXIT")
    executed = [
        statement_counts(1, "compute", 64),
        statement_counts(2, "global_load", 640),
        statement_counts(3, "shared_store", 640),
    ]
    result = by_text(estimate_executions(code, executed, threads=64, warps=2))
    assert result["STS [R3], R2"] == (2, 64)


def test_warps_execute_a_callee_once_per_call() -> None:
    """Two calls of a slow path by all lanes: more warp executions than threads require."""
    texts = [
        "CALL.REL.NOINC 0x40",
        "CALL.REL.NOINC 0x40",
        "STG.E [R2], R1",
        "EXIT",
        "FADD R1, R2, R3",
        "RET.REL.NODEC R4 0x0",
    ]
    listed = [LocatedInstruction(Instruction(16 * n, text), 7 if n == 2 else 0) for n, text in enumerate(texts)]
    result = estimated(listed, SourceEvidence([statement_counts(7, "global_store", 16, warps=2)], False), 16, 2)
    assert (result.threads[4], result.warps[4]) == (32, 4)
