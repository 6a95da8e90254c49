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
    "scan_blelloch": "predicated iterations of an unrolled loop, in one of which accesses of two lines are merged",
    "bitonic_block": "the same with stores",
    "matmul_async": "reads that no lane makes",
    "spmv_rows": "a loop of predicated iterations",
    "lennard_jones_cells": "loads under a condition",
    "reduce_strided": "a load and the store behind it under a condition",
    "warp_distances": "a store that is executed no more often than in the source",
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


def test_without_recorded_accesses_they_cost_what_the_source_says_on_average() -> None:
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


def test_an_elided_load_is_distinguished_from_one_of_another_array() -> None:
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


@st.kernel
def two_remainders(iterations: Global[i32], x: Global[f32], out: Global[f32]) -> None:
    t = st.thread.x
    total = st.f32(0)
    for part in range(2):
        for k in range(iterations[32 * part + t]):
            total += x[32 * k + t]
    out[t] = total


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


@pytest.mark.parametrize(("name", "sufficient"), [("newton_roots", True), ("bitonic_block", False)])
def test_of_two_memories_whose_accesses_were_kept_one_may_be_missing(name: str, sufficient: bool) -> None:
    """Global memory suffices for one kernel, and not for the other."""
    ((profiled, memory),) = compiled(name, spaces=("global",))
    figures = [figure for figure in memory.counters if figure.startswith((*GLOBAL, *SHARED))]
    right = all(memory.counters[figure] == round(profiled.figures[figure]) for figure in figures)
    ((_, nothing),) = compiled(name, accesses=False)
    assert right == sufficient and (memory.counters == nothing.counters) != sufficient
