"""SM simulation: barriers and their results as measured on an H100; hoisted and unexecuted accesses."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import simtbed as st
from simtbed.machine.device import H100
from simtbed.model.instruction_stream import InstructionStream, Profile, stream, warps_of
from simtbed.model.launches import observe
from simtbed.model.observed import ObservedLaunch, trace_of
from simtbed.model.time import estimate
from simtbed.model.traffic import COLUMNS, Column
from simtbed.model.wait_probabilities import any_line_waits, line_correlation
from simtbed.runtime.request import prepare_request

from tests.validation.launches import one_sm
from tests.validation.recorded import load_times


def compiled(result: ObservedLaunch) -> Any:
    kernel = result.compiled(H100)
    if isinstance(kernel, str):
        pytest.skip(kernel)
    return kernel


def compare_with_measured(name: str) -> tuple[float, float]:
    """Return microseconds of a launch by the model and on an H100."""
    case = next(case for case in one_sm.cases() if case.name == name)
    result = observe(
        prepare_request(case.kernel, grid=case.grid, block=case.block, args=dict(case.make()), device=H100)
    )
    compiled(result)
    measured = load_times("scattered_h100")["launches"][name]["warm_us"]
    return estimate(result, H100).time_us, measured


# ------------------------------------------------------------------ barriers
@pytest.mark.parametrize(("resident", "warps"), [(1, 1), (1, 8), (1, 32), (4, 4), (8, 8), (16, 4)])
@pytest.mark.parametrize("kernel", [one_sm.barriers_in_turn, one_sm.counts_in_turn], ids=["barriers", "counts"])
def test_barrier_arrivals_are_serialized(kernel: st.Kernel, resident: int, warps: int) -> None:
    """The result of a barrier takes as long again; instructions directly after a barrier do not wait."""
    result, measured = compare_with_measured(f"{kernel.__name__} {resident} {32 * warps}")
    assert result == pytest.approx(measured, rel=0.1)


# ------------------------------------------------------------------ pipes
@pytest.mark.parametrize("warps", [8, 32])
@pytest.mark.parametrize(
    ("kernel", "off"),
    [
        ("products_in_turn", 0.1),
        ("long_products_in_turn", 0.2),
        ("mixed_products_in_turn", 0.1),
        ("long_mixed_products_in_turn", 0.1),
    ],
)
def test_products_share_a_pipe_as_measured(kernel: str, off: float, warps: int) -> None:
    """32-bit products use half of the pipe, 64-bit ones all of it twice."""
    result, measured = compare_with_measured(f"{kernel} {32 * warps}")
    assert result == pytest.approx(measured, rel=off)


@pytest.mark.parametrize("lines", [0, 17])
def test_a_line_that_l1_has_takes_a_cycle(lines: int) -> None:
    result, measured = compare_with_measured(f"own_lines {lines} 1024")
    assert result == pytest.approx(measured, rel=0.12)


# ------------------------------------------------------------------ accesses
def streamed(kernel: st.Kernel, grid: int, block: int, **args: Any) -> tuple[InstructionStream, Any]:
    result = observe(prepare_request(kernel, grid=grid, block=block, args=args, device=H100))
    code = compiled(result)
    traffic = estimate(result, H100, cold=True).traffic
    return stream(code, trace_of(code), traffic, H100, warps_of(code)), code


def figures(instruction_stream: InstructionStream, kernel_code: Any, opcode: str, predicate: str = "") -> list[Any]:
    """Return the columns of the average warp for an opcode."""
    whole = enumerate(kernel_code.instructions)
    return [
        instruction_stream.memory[0, n]
        for n, one in whole
        if one.instruction.opcode == opcode and one.instruction.predicate == predicate
    ]


@st.kernel
def strided_copies(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    """Asynchronous copies, and loads with 16 lanes per bank."""
    held = st.shared(st.f32, 512)
    t = st.thread.x
    for k in st.unroll(range(16)):
        st.async_copy(held, 32 * k + t, x, 32 * k + t)
    st.async_commit()
    st.async_wait(0)
    st.sync()
    out[st.block.x * 32 + t] = held[16 * t]


def test_unexecuted_loads_use_no_banks() -> None:
    """nvcc places unexecuted loads before asynchronous copies."""
    x, out = np.zeros(512, np.float32), np.zeros(4 * 32, np.float32)
    instruction_stream, kernel_code = streamed(strided_copies, 4, 32, x=x, out=out)
    never, real = (
        figures(instruction_stream, kernel_code, "LDS", "@!PT"),
        figures(instruction_stream, kernel_code, "LDS"),
    )
    assert len(never) >= 3 and not any(each.any() for each in never)
    assert [each[Profile.LSU_CYCLES] for each in real] == [16.0]


class Weights(NamedTuple):
    """Five numbers, read one by one by the compiler."""

    a: st.f32
    b: st.f32
    c: st.f32
    d: st.f32
    e: st.f32


@st.kernel
def weighed(
    x: st.Global[st.f32], by: st.Global[Weights], out: st.Global[st.f32], turns: st.i32, columns: st.i32
) -> None:
    """Loop-invariant weights of numbers in device memory."""
    i = st.block.x * st.block_dim.x + st.thread.x
    total = st.f32(0)
    for k in range(turns):
        one = by[0]
        value = x[k * columns + i]
        total = one.a * value + one.b * total + one.c
        total = one.d * total + one.e
    out[i] = total


def test_loads_hoisted_out_of_a_loop_miss_no_more_than_in_it() -> None:
    """The compiler hoists the weights, with some loads on their users' line: they hit one line, while the others miss."""
    columns, iterations = 132 * 64, 64
    weights = np.zeros(1, [(name, np.float32) for name in "abcde"])
    x, out = np.zeros(columns * iterations, np.float32), np.zeros(columns, np.float32)
    instruction_stream, kernel_code = streamed(
        weighed, 132, 64, x=x, by=weights, out=out, turns=iterations, columns=columns
    )
    once = [
        instruction_stream.memory[0, n]
        for n, one in enumerate(kernel_code.instructions)
        if one.instruction.opcode == "LDG" and one.warps == 264
    ]
    assert len(once) >= 5
    assert all(each[Profile.ACCESS_FRACTION] <= 1.0 and each[Profile.DRAM_READ_SECTORS] < 1.0 for each in once)
    assert any(each[Profile.DRAM_READ_SECTORS] == 4.0 for each in figures(instruction_stream, kernel_code, "LDG"))


# ------------------------------------------------------------------ waits
def access_columns(lines: int, accesses: int, missed: int, awaited: int) -> Any:
    """Return columns of accesses with sampled lines, all from device memory, one sector per line."""
    result = np.zeros(COLUMNS, np.int64)
    result[[Column.LINES, Column.SECTORS, Column.ACCESSES]] = lines, lines, accesses
    result[[Column.MISSES, Column.L2_REQUESTS]] = missed
    result[[Column.DRAM_WAITS, Column.FAR_WAITS, Column.L2_WAITS]] = awaited
    return result


@pytest.mark.parametrize("together", [True, False])
def test_waits_for_lines_are_correlated_or_independent(together: bool) -> None:
    """32 lines per access, one in eight sampled, one in eight missed."""
    draw = np.random.default_rng(1)
    accesses = 20_000
    missing = draw.random((accesses, 1 if together else 32)) < 1 / 8
    sampled = draw.random((accesses, 32)) < 1 / 8
    touched = sampled.any(axis=1)
    missed = sampled & missing
    row = access_columns(int(sampled.sum()), int(touched.sum()), int(missed.sum()), int(missed.any(axis=1).sum()))
    correlation = line_correlation(row, 32.0, 8)
    assert correlation == pytest.approx([1.0 if together else 0.0] * 3, abs=0.03)
    whole = any_line_waits(np.full(3, 1 / 8), 32.0, correlation)
    assert whole == pytest.approx([missing.any(axis=1).mean()] * 3, abs=0.03)
