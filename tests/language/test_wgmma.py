"""Matrix multiply-accumulates of a warpgroup: an H200's results in every engine, layouts in shared memory, refusals and faults."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Global, f16, f32
from simtbed.engines.cuda import nvcc
from simtbed.ir.matrices import GROUP_INSTRUCTIONS
from simtbed.runtime.registry import EngineName

from tests.compilers import needs_nvcc
from tests.language import wgmma_cases
from tests.language.wgmma_cases import Case, Layout
from tests.recorded_fragments import RECORD
from tests.table_checks import check_each

EMULATORS: tuple[EngineName, ...] = ("numpy", "jit", "python")


@pytest.mark.slow
@pytest.mark.parametrize("engine", EMULATORS)
def test_recorded_fragments(engine: EngineName) -> None:
    """Four recorded fragments are the blocks on the diagonal of a product of 64 x 32."""
    numbers = range(0, 24, 4 if engine != "python" else 12)

    def check(case: tuple[str, int]) -> None:
        type, first = case
        a, b, c = (RECORD[f"{type}_{name}"][first : first + 4] for name in "ABC")
        form = Case(
            GROUP_INSTRUCTIONS[f"m64n32k{a.shape[-1]}.f32.{type}.{type}"],
            Layout(False, 128, 16, 1024),
            Layout(False, 0, 128, 256),
        )
        sums = np.zeros((4, 16, 4, 8), np.uint32)
        sums[range(4), :, range(4)] = c
        d = wgmma_cases.run(form, a.reshape(64, -1), b.reshape(32, -1), sums.reshape(64, 32), engine)
        recorded = RECORD.get(f"{type}_D_wgmma", RECORD[f"{type}_D_mma"])[first : first + 4]
        assert np.array_equal(d.reshape(4, 16, 4, 8)[range(4), :, range(4)], recorded)

    check_each([(type, first) for type in ("f16", "bf16", "tf32", "e4m3", "e5m2") for first in numbers], check)


def _check(case: tuple[Case, EngineName]) -> None:
    form, engine = case
    a, b, c = wgmma_cases.operands(form.row, 4)
    actual, expected = wgmma_cases.run(form, a, b, c, engine), wgmma_cases.expected(form, a, b, c)
    assert np.array_equal(actual, expected), f"{form.name}: {(actual != expected).sum()} of {expected.size} differ"


@pytest.mark.slow
def test_forms() -> None:
    check_each([(form, "jit") for form in wgmma_cases.cases()[::16] if form.row.n < 100], _check)


@pytest.mark.slow
def test_forms_in_every_engine() -> None:
    forms = wgmma_cases.cases()
    check_each([(form, "jit") for form in forms] + [(form, "numpy") for form in forms[::5]], _check)


@st.kernel
def _ones(x: Global[f16], out: Global[f32], WARPS: Const) -> None:
    tile = st.shared(f16, 1024)
    for i in range(st.thread.x, 1024, st.block_dim.x):
        tile[i] = x[i]
    st.fence_async()
    st.sync()
    d = st.registers(f32, 4)
    for i in st.unroll(range(4)):
        d[i] = f32(0)
    if st.thread.x < 32 * WARPS:
        st.wgmma_fence()
        whole = st.matrix_descriptor(0, leading=128, stride=256)
        st.wgmma(d, (tile, whole), (tile, whole), "m64n8k16", "f16")
        st.wgmma_commit()
        st.wgmma_wait()
    out[st.thread.x] = d[0]


def _findings(engine: EngineName, warps: int, block: int, size: int = 1024) -> list[str]:
    args = {"x": np.ones(size, np.float16), "out": np.zeros(256, np.float32), "WARPS": warps}
    result = st.launch(_ones, grid=1, block=block, args=args, engine=engine, faults="return", check="all")
    return [fault.message for fault in result.faults]


@pytest.mark.slow
def test_missing_warps_are_findings() -> None:
    def check(case: tuple[EngineName, int, int, str]) -> None:
        engine, warps, block, expected = case
        findings = _findings(engine, warps, block)
        assert (expected in findings[0]) if expected else not findings, findings

    incomplete = "wgmma needs the four warps of a warpgroup"
    cases = [(4, 128, ""), (8, 256, ""), (3, 96, incomplete), (6, 192, incomplete)]
    check_each([(engine, *case) for engine in ("jit", "numpy") for case in cases], check)


@st.kernel
def _wrong_registers(x: Global[f16]) -> None:
    tile = st.shared(f16, 1024)
    d = st.registers(f32, 4)
    whole = st.matrix_descriptor(0, 128, 256)
    st.wgmma(d, (tile, whole), (tile, whole), "m64n16k16", "f16")


@st.kernel
def _wrong_shape(x: Global[f16]) -> None:
    tile = st.shared(f16, 1024)
    d = st.registers(f32, 4)
    whole = st.matrix_descriptor(0, 128, 256)
    st.wgmma(d, (tile, whole), (tile, whole), "m64n12k16", "f16")


@st.kernel
def _global_operand(x: Global[f16]) -> None:
    d = st.registers(f32, 4)
    whole = st.matrix_descriptor(0, 128, 256)
    st.wgmma(d, (x, whole), (x, whole), "m64n8k16", "f16")


@st.kernel
def _transposed_bytes(x: Global[f16]) -> None:
    tile = st.shared(f16, 1024)
    d = st.registers(f32, 4)
    whole = st.matrix_descriptor(0, 128, 256)
    st.wgmma(d, (tile, whole), (tile, whole), "m64n8k32", "e4m3", transposed="b")


@st.kernel
def _wrong_swizzle(x: Global[f16]) -> None:
    tile = st.shared(f16, 1024)
    d = st.registers(f32, 4)
    whole = st.matrix_descriptor(0, 128, 256, swizzle=16)
    st.wgmma(d, (tile, whole), (tile, whole), "m64n8k16", "f16")


def test_refusals() -> None:
    def check(case: tuple[Any, str]) -> None:
        kernel, message = case
        with pytest.raises(st.CompileError, match=message):
            st.launch(kernel, grid=1, block=128, args={"x": np.zeros(1, np.float16)})

    cases = [
        (_wrong_registers, "D of m64n16k16.f32.f16.f16 has 8 registers a lane, d has 4"),
        (_wrong_shape, "no wgmma has shape m64n12k16"),
        (_global_operand, "wgmma reads arrays of st.shared; x is not one"),
        (_transposed_bytes, 'transposed is "a", "b" or "ab", of f16 or bf16'),
        (_wrong_swizzle, "a swizzle has 0, 32, 64 or 128 bytes, not 16"),
    ]
    check_each(cases, check)
    args = {"x": np.ones(1024, np.float16), "out": np.zeros(128, np.float32), "WARPS": 4}
    with pytest.raises(st.LaunchError, match=r"st\.fence_async needs compute capability 9\.0"):
        st.launch(_ones, grid=1, block=128, args=args, device=st.devices.A100)


@needs_nvcc
@pytest.mark.slow
def test_printed_forms_compile() -> None:
    """The instructions of the text have operands that the assembler accepts."""

    def check(form: Case) -> None:
        launched = wgmma_cases.launched(form, *wgmma_cases.operands(form.row, 1), "jit")
        built = nvcc.build(launched.source, "from_registers" if form.a is None else "from_shared", "sm_90")
        assert built.resources.registers > 0

    check_each([form for form in wgmma_cases.cases()[::9] if form.row.n < 100], check)
