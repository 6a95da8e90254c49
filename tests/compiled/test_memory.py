"""Assignment of instructions to accesses."""

from __future__ import annotations

import re

import numpy as np
import simtbed as st
from simtbed.compiled.control_flow import graph
from simtbed.compiled.instruction_counts import InstructionCount
from simtbed.compiled.kernel import CompiledKernel, counted
from simtbed.compiled.matching import LoopMatcher
from simtbed.compiled.memory import _accesses, _by_access, _merge_by_line
from simtbed.compiled.path_estimator import PathEstimator
from simtbed.engines.cuda.sass import Instruction
from simtbed.language.hints import Global, Shared, i32
from simtbed.reports.profile.compiled import content, text
from simtbed.runtime.engine import Resources

from tests.compiled.listings import launched, placed


@st.kernel
def reading(x: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    letter = x[t]
    while letter > 3:
        t += 1
        letter = x[t]
    out[t] = letter


def test_a_misattributed_instruction_matches_equal_executions() -> None:
    """Both loads have the line of the test on their value."""
    launches = launched(reading, x=np.arange(40, 0, -1, dtype=np.int32), out=st.zeros(40, st.i32))
    once, again = (each for each in launches.statements.statements.values() if each.site.kind == "global_load")
    rows = placed(launches, ("LDG.E R4, [R2]", "while (letter"), ("LDG.E R4, [R6]", "while (letter"))
    each_counted = [
        InstructionCount(row.instruction, row.place, 0, (), each.warps, each.lanes, each.warps, each.warps)
        for row, each in zip(rows, (once, again), strict=True)
    ]
    result = _by_access(each_counted, _accesses(launches, False), launches.statements.deciding_arm)
    assert {key[0]: [each.instruction.text for each in of] for key, of in result.items()} == {
        once.place: ["LDG.E R4, [R2]"],
        again.place: ["LDG.E R4, [R6]"],
    }


def test_sites_are_reported_by_instruction_offset() -> None:
    launches = launched(reading, x=np.arange(40, 0, -1, dtype=np.int32), out=st.zeros(40, st.i32))
    once, again = (each for each in launches.statements.statements.values() if each.site.kind == "global_load")
    (stored,) = (each for each in launches.statements.statements.values() if each.site.kind == "global_store")
    rows = placed(
        launches,
        ("LDG.E R4, [R2]", "letter = x"),
        ("@P0 BRA 0x40", "while (letter"),
        ("LDG.E R4, [R6]", "letter > 3"),
        ("@P1 BRA 0x20", "while (letter"),
        ("STG.E [R8], R4", "out["),
        ("EXIT", ""),
    )
    _, memory = counted(launches, rows)
    assert set(memory.sites_by_offset.values()) <= {(once.number,), (again.number,), (stored.number,)}
    assert memory.sites_by_offset[0x0] == (once.number,) and memory.sites_by_offset[0x40] == (stored.number,)


@st.device
def count(table: Shared[i32], at: i32) -> None:
    table[at] = table[at] + 1


@st.kernel
def counting(x: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    table = st.shared(i32, 64)
    table[t] = 0
    count(table, t)
    if t < 8:
        count(table, x[t])
    out[t] = table[t]


def test_what_is_inlined_may_have_the_line_of_another_call() -> None:
    """Calls by 32 and by 8 lanes; both instructions have the first one's line."""
    launches = launched(counting, x=np.arange(32, dtype=np.int32), out=st.zeros(32, st.i32))
    stores = [e for e in launches.statements.statements.values() if e.site.kind == "shared_store" and len(e.place) > 1]
    sass = Instruction(0, "STS [R2], R4")
    each_counted = [InstructionCount(sass, stores[0].place, 0, (), e.warps, e.lanes, e.warps, e.warps) for e in stores]
    accesses = _accesses(launches, True)
    compiled = {(stores[0].place, "shared_store"): each_counted}
    _merge_by_line(accesses, compiled)
    assert accesses[stores[0].place, "shared_store"] == stores and (stores[1].place, "shared_store") not in accesses
    compiled = {(stores[0].place, "shared_store"): each_counted[:1]}
    accesses = _accesses(launches, True)
    _merge_by_line(accesses, compiled)
    assert accesses[stores[0].place, "shared_store"] == stores[:1]


@st.kernel
def four_counts(x: Global[i32], out: Global[i32], n: i32) -> None:
    bins = st.shared(i32, 64)
    bins[st.thread.x] = 0
    st.sync()
    for k in range(st.thread.x, n, 32):
        st.atomic_add(bins, x[k] & 63, 1)
        st.atomic_add(bins, x[k] >> 6 & 63, 1)
    st.sync()
    out[st.thread.x] = bins[st.thread.x]


def test_an_unrolled_loop_merges_lines_of_a_statement_list() -> None:
    """All but one of the additions have the line of one of the two."""
    launches = launched(four_counts, x=np.arange(128, dtype=np.int32) ** 2, out=st.zeros(32, st.i32), n=128)
    first, second = (e for e in launches.statements.statements.values() if e.site.kind == "shared_atomic")
    add = Instruction(0, "ATOMS.POPC.INC.32 RZ, [R2+URZ]")
    once = [InstructionCount(add, first.place, 0, (), 1, 32, 1, 1)] * 7 + [
        InstructionCount(add, second.place, 0, (), 1, 32, 1, 1)
    ]
    accesses = _accesses(launches, True)
    compiled = {(e.place, "shared_atomic"): [c for c in once if c.place == e.place] for e in (first, second)}
    _merge_by_line(accesses, compiled)
    assert accesses[first.place, "shared_atomic"] == [first, second] and (second.place, "shared_atomic") not in accesses
    fewer = {key: of[:3] for key, of in compiled.items()}
    accesses = _accesses(launches, True)
    _merge_by_line(accesses, fewer)
    assert (second.place, "shared_atomic") in accesses


def test_a_misfit_is_that_of_all_calls_together() -> None:
    launches = launched(counting, x=np.arange(32, dtype=np.int32), out=st.zeros(32, st.i32))
    stores = [e for e in launches.statements.statements.values() if e.site.kind == "shared_store" and len(e.place) > 1]
    rows = ["STS [R2], R4", "@P0 BRA 0x30", "STS [R2+0x4], R4", "EXIT"]
    places = [stores[0].place, (0,), stores[1].place, (0,)]
    whole = graph([Instruction(16 * n, text) for n, text in enumerate(rows)])
    walk = PathEstimator(LoopMatcher(whole, places, launches.statements), launches)
    assert walk.mean_residual(np.array([32.0, 8.0, 32.0])) == walk.mean_residual(np.array([8.0, 32.0, 32.0])) == 0.0
    assert walk.mean_residual(np.array([32.0, 32.0, 32.0])) > 0.1


@st.kernel
def setting(out: Global[i32]) -> None:
    first = st.shared(i32, 1)
    second = st.shared(i32, 1)
    if st.thread.x == 0:
        first[0] = 7
        second[0] = 9
    out[st.thread.x] = first[0] + second[0]


def test_a_store_merged_with_another_line_says_so() -> None:
    launches = launched(setting, out=st.zeros(32, st.i32))
    texts = launches.source.text.splitlines()
    seven, nine = (next(n for n, text in enumerate(texts, 1) if part in text) for part in ("= 7", "= 9"))
    rows = placed(
        launches,
        ("@P0 BRA 0x20", "if ("),
        ("STS.64 [R2], R4", "= 9"),
        ("LDS.64 R6, [R2]", "out["),
        ("STG.E [R8], R6", "out["),
        ("EXIT", ""),
    )
    messages = {each.place[0]: each.what for each in counted(launches, rows)[1].differences}
    line = launches.source_span(nine)
    assert line is not None and line.source.strip() == "second[0] = 9"
    assert messages[seven] == f"nvcc merges a shared store with that of line {line.line} into one of 8 bytes"
    assert launches.source_span(0) is None and launches.source_span(len(texts) + 1) is None


def test_a_compiled_report_has_source_and_all_instructions() -> None:
    launches = launched(setting, out=st.zeros(32, st.i32))
    rows = placed(
        launches,
        ("@P0 BRA 0x20", "if ("),
        ("STS.64 [R2], R4", "= 9"),
        ("LDS.64 R6, [R2]", "out["),
        ("STG.E [R8], R6", "out["),
        ("RET.REL.NODEC R20 0x0", ""),
    )
    kernel = CompiledKernel(launches, "sm_90", Resources(16, 8, 0, 0, 0, 0), *counted(launches, rows))
    report = text(kernel)
    span = next(one.span for one in launches.source.lines if one.span and "first[0] = 7" in one.span.source)
    assert f"  {span.place}: nvcc merges a shared store" in report and "\n      first[0] = 7\n" in report
    pipes = re.findall(r"^(\S.*?) {2,}(-?[\d,]+) +-?\d+%$", report, re.MULTILINE)
    assert ("no pipe (BRA)", "1") in pipes and ("in two pipes (RET)", "-1") in pipes
    assert sum(int(count) for _, count in pipes) == kernel.warp_instructions
    json = content(kernel)
    assert json["differences"][0]["line"] == span.line
    assert json["instructions"][-1]["line"] is None
