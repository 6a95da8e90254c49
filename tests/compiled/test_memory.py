"""Assignment of instructions to accesses."""

from __future__ import annotations

import re

import numpy as np
import simtbed as st
from simtbed.compiled.control_flow import graph
from simtbed.compiled.kernel import CompiledKernel, counted
from simtbed.compiled.matching import LoopMatcher
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


def test_a_store_that_was_merged_with_that_of_another_line_says_so() -> None:
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


def test_the_report_of_a_compiled_kernel_quotes_the_python_source_and_all_instructions() -> None:
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
