"""Transactions by attributed accesses, compared with Nsight Compute on an H200."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import simtbed as st
from simtbed import devices
from simtbed.compiled.kernel import counted
from simtbed.compiled.memory import MemoryTraffic
from simtbed.language.hints import Global, f32, f64, i32
from simtbed.profiler.events import GLOBAL, SHARED
from simtbed.reports.hardware.cases import find
from simtbed.reports.hardware.profiled import Profiled
from simtbed.reports.hardware.recording import RecordingLauncher

from tests.compiled.listings import launched, placed
from tests.validation.recorded import KERNEL_CASES, load_record

RECORDED = load_record("kernels/h200")
CASES = {
    "newton_roots": "lanes leave a loop in different iterations, and store together behind it",
    "n_queens": "the same, of lanes that leave an unrolled loop and those behind it",
    "suppress_boxes": "lanes of an unrolled loop, some of which leave it",
    "matrix_vector": "predicated loads after the last iteration",
    "complex_products": "two sites at a place, of one of which two accesses are merged",
    "scan_blelloch": "predicated iterations of an unrolled loop, in one of which accesses of two lines are merged",
    "bitonic_block": "the same with stores",
    "matmul_async": "reads that no lane makes",
    "spmv_rows": "a loop of predicated iterations",
    "lennard_jones_cells": "loads under a condition",
    "reduce_strided": "a load and the store behind it under a condition",
    "warp_distances": "a store that is executed no more often than in the source",
    "syrk_triangle": "two loads of one array whose registers are written in between, and a store moved behind a loop",
    "stencil_27_points": "one store for both arms of a branch",
    "restrict_residual": "remainder iterations first, and a load implemented by one of another line",
    "clipped_equaliser": "additions of an unrolled loop that have each other's lines",
    "quantise_rows": "copies of an unrolled loop reached in another order, as often as in the source",
    "bucket_by_splitters": "blocks of an unrolled loop, some of them with fewer warps",
}


def compiled(
    name: str, accesses: bool = True, spaces: tuple[str, ...] = ("global", "shared")
) -> Iterator[tuple[Profiled, MemoryTraffic]]:
    """accesses: whether accesses are recorded; spaces: of which memories."""
    (case,) = (case for case in find([KERNEL_CASES]) if case.name == f"validation {name}")
    launcher = RecordingLauncher("jit", devices.H200)
    case.run(launcher)
    for launches in launcher.kernels:
        (profiled,) = (each for each in RECORDED.counters[case.name] if each.source == launches.digest)
        assert launches.decisions is not None and launches.decisions.accesses
        launches.decisions.accesses = [replace(each, spaces=spaces) for each in launches.decisions.accesses if accesses]
        yield profiled, counted(launches, [ran.placed for ran in profiled.sass])[1]


@pytest.mark.parametrize("name", CASES)
def test_what_lanes_access_together_is_counted(name: str) -> None:
    for profiled, memory in compiled(name):
        figures = [figure for figure in memory.counters if figure.startswith((*GLOBAL, *SHARED))]
        assert {figure: memory.counters[figure] for figure in figures} == {
            figure: round(profiled.figures[figure]) for figure in figures
        }


def test_unrecorded_accesses_have_average_source_costs() -> None:
    ((profiled, memory),) = compiled("newton_roots", accesses=False)
    assert memory.counters["global_store_requests"] == profiled.figures["global_store_requests"]
    assert memory.counters["global_store_sectors"] > 2 * profiled.figures["global_store_sectors"]


def test_differences_are_reported_by_line() -> None:
    ((_, memory),) = compiled("newton_roots")
    stores = [one for one in memory.differences if one.kind == "global_store"]
    assert len(stores) == 2
    assert all("with lanes converged that diverge in the source" in one.what for one in stores)


@st.kernel
def searching(cdf: Global[f32], u: Global[f32], out: Global[i32]) -> None:
    t = st.thread.x
    result = -1
    for k in range(32):
        if cdf[k] >= u[t]:
            result = k
            break
    out[t] = result


def test_an_elided_load_differs_from_one_of_another_array() -> None:
    """Both have equal elements; one is hoisted, the other is in the loop."""
    values = {"cdf": np.arange(32, dtype=np.float32), "u": np.arange(32, dtype=np.float32)}
    launches = launched(searching, **values, out=st.zeros(32, st.i32))
    _, memory = counted(
        launches,
        placed(
            launches,
            ("LDG.E R2, [R4]", ">= u"),
            ("BSSY B0, 0x70", "for ("),
            ("LDG.E R3, [R6]", ">= u"),
            ("@P0 BRA 0x60", ">= u"),
            ("VIADD R9, R9, 0x1", "for ("),
            ("@P1 BRA 0x20", "for ("),
            ("BSYNC B0", "for ("),
            ("STG.E [R8], R1", "out["),
            ("EXIT", ""),
        ),
    )
    assert memory.counters["global_load_requests"] == 1 + 32
    assert memory.counters["global_load_sectors"] == 4 + 32


@st.kernel
def of_two_sizes(x: Global[f32], wide: Global[f64], out: Global[f64]) -> None:
    t = st.thread.x
    total = st.f64(0)
    for k in range(t):
        total += st.f64(x[k]) * wide[k]
    out[t] = total


def test_accesses_of_two_sizes_in_a_line_have_own_instructions() -> None:
    """Lanes with an odd count have one iteration before the pairs, so lanes regroup."""
    values = {"x": np.ones(32, np.float32), "wide": np.ones(32), "out": st.zeros(32, st.f64)}
    launches = launched(of_two_sizes, **values)
    again = [("LDG.E R2, [R4]", "wide["), ("LDG.E.64 R8, [R6]", "wide[")]
    _, memory = counted(
        launches,
        placed(
            launches,
            ("BSSY B0, 0xf0", "for ("),
            ("@P3 BRA 0xe0", "for ("),
            ("BSSY B1, 0x80", "for ("),
            ("@P0 BRA 0x70", "for ("),
            *again,
            ("NOP", ""),
            ("BSYNC B1", "for ("),
            ("@P1 BRA 0xe0", "for ("),
            *again * 2,
            ("@P2 BRA 0x90", "for ("),
            ("BSYNC B0", "for ("),
            ("STG.E.64 [R6], R1", "out["),
            ("EXIT", ""),
        ),
    )
    # pairs are two adjacent elements, possibly in two sectors: 8 elements three times, 4 seven times
    assert memory.counters["global_load_requests"] == 2 * (1 + 2 * 15)
    assert memory.counters["global_load_sectors"] == 2 * (1 + 2 * 15) + 3 + 7


@st.kernel
def two_remainders(iterations: Global[i32], x: Global[f32], out: Global[f32]) -> None:
    t = st.thread.x
    total = st.f32(0)
    for part in range(2):
        for k in range(iterations[32 * part + t]):
            total += x[32 * k + t]
    out[t] = total


def test_a_remainder_is_aligned_with_its_execution_of_the_loop() -> None:
    """Half of the lanes have four iterations and then two, the others two and then four. Two precede those by threes, the second
    predicated."""
    iterations = np.where(np.arange(64).reshape(2, 32) // 16 % 3 == 0, 4, 2).astype(np.int32)
    launches = launched(
        two_remainders, iterations=iterations.reshape(-1), x=np.zeros(128, np.float32), out=st.zeros(32, st.f32)
    )
    _, memory = counted(
        launches,
        placed(
            launches,
            ("LDG.E R7, [R6]", "iterations["),
            ("BSSY B0, 0xb0", "(int k"),
            ("@!P3 BRA 0xa0", "(int k"),
            ("LDG.E R2, [R4]", "x["),
            ("@P0 LDG.E R3, [R4+0x80]", "x["),
            ("@!P1 BRA 0xa0", "(int k"),
            *[("LDG.E R2, [R4]", "x[")] * 3,
            ("@P2 BRA 0x60", "(int k"),
            ("BSYNC B0", "(int k"),
            ("@P4 BRA 0x0", "(int part"),
            ("STG.E [R8], R1", "out["),
            ("EXIT", ""),
        ),
    )
    # all lanes have the first iteration, of four sectors; half of them the second, the others the last three
    assert memory.counters["global_load_requests"] == 2 + 2 * 5
    assert memory.counters["global_load_sectors"] == 2 * 4 + 2 * (4 + 2 + 3 * 2)


@st.kernel
def halving(x: Global[f32], out: Global[f32]) -> None:
    a = st.shared(f32, 64)
    b = st.shared(f32, 64)
    t = st.thread.x
    a[t] = x[t]
    a[32 + t] = x[32 + t]
    st.sync()
    half = 32
    while half >= 8:
        if t < half:
            b[t] = a[2 * t] + a[2 * t + 1]
        st.sync()
        a, b = b, a
        half //= 2
    out[t] = a[t]


def test_one_instruction_implements_accesses_of_both_arms() -> None:
    """Iterations read one array and write the other; lanes beyond the half are predicated off."""
    launches = launched(halving, x=np.zeros(64, np.float32), out=st.zeros(32, st.f32))
    iteration = [
        ("@P0 LDS.64 R2, [R4]", "2 * t]"),
        ("@P0 FADD R2, R2, R3", "a_2 + a_3"),
        ("@P0 STS [R5], R2", "a_2 + a_3"),
        ("BAR.SYNC 0x0", "__syncthreads"),
    ]
    _, memory = counted(
        launches,
        placed(
            launches,
            ("LDG.E R2, [R6]", "x[t"),
            ("STS [R4], R2", "a[t"),
            ("LDG.E R2, [R6+0x80]", "x[32"),
            ("STS [R4+0x80], R2", "a[32"),
            ("BAR.SYNC 0x0", "__syncthreads"),
            *iteration * 3,
            ("LDS R2, [R5]", "out["),
            ("STG.E [R8], R2", "out["),
            ("EXIT", ""),
        ),
    )
    # 32 lanes read pairs in two phases, fewer in one; after the loop each reads one element
    assert memory.counters["shared_load_wavefronts"] == 2 + 1 + 1 + 1
    assert memory.counters["shared_store_wavefronts"] == 2 + 3
    assert memory.counters["shared_load_conflicts"] == memory.counters["shared_store_conflicts"] == 0


@st.kernel
def behind_the_first(x: Global[f32], out: Global[f32]) -> None:
    t = st.thread.x
    total = st.f32(0)
    for k in range(128):
        at = 32 * k + t
        if at >= 4:
            a, b = x[at - 4], x[at - 3]
        else:
            a, b = x[0], x[1]
        total += a * b
    out[t] = total


def test_accesses_of_both_arms_may_move_to_their_use() -> None:
    """Lanes diverge in the source's first iteration, but load together in the compiled kernel."""
    launches = launched(behind_the_first, x=np.zeros(4096, np.float32), out=st.zeros(32, st.f32))
    _, memory = counted(
        launches,
        placed(
            launches,
            ("LDG.E R2, [R4]", "total +="),
            ("LDG.E R3, [R5]", "total +="),
            ("FFMA R1, R2, R3, R1", "total +="),
            ("@P0 BRA 0x0", "for ("),
            ("STG.E [R6], R1", "out["),
            ("EXIT", ""),
        ),
    )
    assert memory.counters["global_load_requests"] == 2 * 128
    assert memory.counters["global_load_sectors"] == 2 * (4 + 127 * 5)


def test_address_registers_distinguish_instructions_of_a_line() -> None:
    """c is in a register; two elements of a are loaded, row i first."""
    ((_, memory),) = compiled("syrk_triangle")
    (case,) = (case for case in find([KERNEL_CASES]) if case.name == "validation syrk_triangle")
    launcher = RecordingLauncher("jit", devices.H200)
    case.run(launcher)
    (launches,) = launcher.kernels
    loads = [
        n
        for n, of in launches.statements.statements.items()
        if of.site.kind == "global_load" and of.context.loop is not None
    ]
    register_site, row, column = sorted(loads)
    loaded = {sites for sites in memory.sites_by_offset.values() if {*sites} & {register_site, row, column}}
    assert {(row,), (column,)} <= loaded and register_site in memory.eliminated


@pytest.mark.parametrize(("name", "sufficient"), [("newton_roots", True), ("bitonic_block", False)])
def test_one_of_two_recorded_memories_may_be_missing(name: str, sufficient: bool) -> None:
    """Global memory suffices for one kernel, and not for the other."""
    ((profiled, memory),) = compiled(name, spaces=("global",))
    figures = [figure for figure in memory.counters if figure.startswith((*GLOBAL, *SHARED))]
    right = all(memory.counters[figure] == round(profiled.figures[figure]) for figure in figures)
    ((_, nothing),) = compiled(name, accesses=False)
    assert right == sufficient and (memory.counters == nothing.counters) != sufficient
