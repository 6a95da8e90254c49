"""`wgmma` in inline PTX: a tiled product with swizzled tiles of dynamic shared memory, A in registers, refusals."""

import numpy as np
import pytest
import simtbed as st
from simtbed.ir.matrices import GROUP_INSTRUCTIONS
from simtbed.ir.tensor_cores import product_sums, rule
from simtbed.runtime.registry import EngineName

from tests.recorded_fragments import Values
from tests.table_checks import check_each, each_row
from tests.texts import texts

H200 = (9, 0)
TEXTS = texts("cuda_cpp/tensor_cores.cu")
HEAD = TEXTS["wgmma head"]


def _registers(first: int, count: int) -> str:
    return "{" + ", ".join(f"%{first + n}" for n in range(count)) + "}"


OUTPUTS = ", ".join(f'"+f"(d[{n}])' for n in range(32))
TILED, IN_REGISTERS = (
    HEAD + TEXTS[f"wgmma {name}"].replace("REGISTERS", _registers(0, 32)).replace("OUTPUTS", OUTPUTS)
    for name in ("tiled", "in registers")
)


def expected(a: Values, b: Values) -> Values:
    """Return f32 sums of f16 by the reference, one instruction after the other."""
    part = GROUP_INSTRUCTIONS["m64n64k16.f32.f16.f16"].part
    total = np.zeros((len(a), len(b)), np.uint32)
    for k in range(0, a.shape[1], 16):
        own, other = (
            v[None, :, k : k + 16].view(np.uint16) for v in (np.ascontiguousarray(a), np.ascontiguousarray(b))
        )
        total = product_sums(part, rule(part, H200), own, other, total[None])[0]
    return total


@pytest.mark.slow
def test_tiled_product() -> None:
    draw = np.random.default_rng(1)
    a, b = (draw.standard_normal((64, 128)).astype(np.float16) for _ in "ab")

    def check(engine: EngineName) -> None:
        args = (a.view(np.uint16).ravel(), b.view(np.uint16).ravel(), st.zeros(64 * 64, "f32"), 128)
        result = st.launch(st.cuda_source(TILED)["product"], grid=1, block=128, args=args, shared=16384, engine=engine)
        assert np.array_equal(np.asarray(result.c).view(np.uint32), expected(a, b).ravel())
        if engine != "python":
            assert result.counters.total("mma_f16") == 2 * 4 * 4

    engines: tuple[EngineName, ...] = ("jit", "numpy")
    check_each(engines, check)


MESSAGES = {"is read before its wgmma is waited for", "has read it"}
"""Messages about registers of D, and about operands that threads write again."""


@pytest.mark.slow
def test_a_missing_wait_is_found() -> None:
    zeros = np.zeros(64 * 128, np.uint16)
    for text, missing in ((TILED, False), (TILED.replace("wgmma.wait_group.sync.aligned 0;", ""), True)):
        args = (zeros, zeros, st.zeros(64 * 64, "f32"), 128)
        result = st.launch(
            st.cuda_source(text)["product"], grid=1, block=128, args=args, shared=16384, check="all", faults="return"
        )
        assert bool(result.faults) == missing, result.faults
        messages = {next(text for text in MESSAGES if text in fault.message) for fault in result.faults}
        assert messages == (MESSAGES if missing else set())


@pytest.mark.slow
def test_rows_in_registers() -> None:
    draw = np.random.default_rng(2)
    a, b = (draw.standard_normal((64, 16)).astype(np.float16) for _ in "ab")
    lane = np.arange(128)
    row = lane // 32 * 16 + lane % 32 // 4
    high = np.stack([a[row + n % 2 * 8, lane % 4 * 2 + n // 2 * 8 + 1] for n in range(4)], axis=-1)
    low = np.stack([a[row + n % 2 * 8, lane % 4 * 2 + n // 2 * 8] for n in range(4)], axis=-1)
    words = low.view(np.uint16).astype(np.uint32) | high.view(np.uint16).astype(np.uint32) << 16
    args = (words.ravel(), b.view(np.uint16).ravel(), st.zeros(128 * 32, "f32"))
    c = np.asarray(st.launch(st.cuda_source(IN_REGISTERS)["product"], grid=1, block=128, args=args).c).reshape(128, 32)
    at = np.arange(32)
    own = c[:, at]
    rows, columns = row[:, None] + at // 2 % 2 * 8, lane[:, None] % 4 * 2 + at // 4 * 8 + at % 2
    assert np.array_equal(own.view(np.uint32), expected(-a, b)[rows, columns])


REFUSED = [
    (
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%0,%0,%0}, %1, %1, 1, 1, 1, 0, 0;",
        "shared memory of the descriptor",
    ),
    ("wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {%0}, %1, %1, 1, 1, 1, 0, 0;", "wgmma m64n12k16"),
    ("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%0}, %1, %1, %0, 0, 1, 1, 1, 0, 0;", "wgmma.mma_async.sp"),
]


@each_row(REFUSED)
def test_other_forms_are_refused(case: tuple[str, str]) -> None:
    assembly, name = case
    text = f"""__global__ void k(unsigned *x) {{
        float d = 0;
        asm volatile("{assembly}" : "+f"(d) : "l"((unsigned long long)x[0]));
        x[0] = d;
    }}"""
    with pytest.raises(st.CompileError, match=name):
        st.launch(st.cuda_source(text)["k"], grid=1, block=128, args=(np.zeros(64, np.uint32),))
