"""`cp.async.bulk.tensor` in inline PTX, with CUtensorMap parameters: results, and refusals of maps that are no parameters."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.printer import cuda_source
from simtbed.runtime.registry import EngineName

from tests.compilers import needs_nvcc
from tests.table_checks import check_each
from tests.texts import texts

pytest.importorskip("ziglang")

KERNEL = texts("host_apis/programs.cu")["tensor maps"].partition("static CUtensorMap")[0]
X = np.arange(20 * 64, dtype=np.float32).reshape(20, 64) + 1


def _launch(text: str = KERNEL, engine: EngineName = "jit", **changed: Any) -> Any:
    target = st.tensor_map(np.zeros_like(X), box=(16, 32), swizzle=128)
    source = st.tensor_map(X, box=(16, 32), swizzle=128)
    args = {"in": source, "out": target, "raw": np.zeros(512, np.float32), "x": -4, "y": 8, **changed}
    return st.launch(st.cuda_source(text)["moved"], grid=1, block=32, args=args, engine=engine)


@pytest.mark.slow
def test_boxes() -> None:
    rows, columns = np.arange(16)[:, None], np.arange(32)
    tile = np.zeros((16, 32), np.float32)
    tile[:12, 4:] = X[8:, :28]
    swizzled = np.zeros_like(tile)
    swizzled[rows, (columns // 4 ^ rows % 8) * 4 + columns % 4] = tile

    def check(engine: EngineName) -> None:
        result = _launch(engine=engine)
        np.testing.assert_array_equal(result.raw.reshape(16, 32), swizzled)
        np.testing.assert_array_equal(result.out[9:, :32], tile[:11] + 1)
        assert not result.out[:9].any()

    engines: list[EngineName] = ["numpy", "jit", "python"]
    check_each(engines, check)


@pytest.mark.slow
def test_reductions_of_boxes() -> None:
    """Elements of the box beyond the tensor are not combined, with the type that the map states."""
    text = KERNEL.replace(
        "cp.async.bulk.tensor.2d.global.shared::cta.", "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile."
    )
    start = np.full_like(X, 0.5)
    for engine in ("numpy", "jit", "python"):
        result = _launch(text, engine, out=st.tensor_map(start, box=(16, 32), swizzle=128))
        copied = _launch(engine=engine)
        np.testing.assert_array_equal(result.out, start + copied.out)
    with pytest.raises(st.CompileError, match="a bulk reduction min of f32 is not supported: PTX has none"):
        _launch(text.replace(".add.tile.", ".min.tile."))


FIELDS = (
    ("global_address", 64, 'l', "x + 64"), ("rank", 32, "", "1"), ("global_dim", 32, "r", "0, width"), ("global_dim", 32, "r", "1, height"),
    ("global_stride", 64, "l", "0, 256ull"), ("box_dim", 32, "r", "0, 32"), ("box_dim", 32, "r", "1, 16"),
    ("element_stride", 32, "r", "0, 1"), ("elemtype", 32, "", "7"), ("swizzle_mode", 32, "", "3"), ("fill_mode", 32, "", "0"),
)  # fmt: skip
MADE = """
typedef unsigned long long u64;
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__global__ void moved(float *x, float *raw, u64 *maps, int width, int height) {
    __shared__ alignas(1024) float tile[16][32];
    __shared__ alignas(128) u64 built[16];
    __shared__ u64 bar;
    int t = threadIdx.x;
    if (t < 16) built[t] = 0;
    __syncthreads();
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%%0], %%1;" :: "r"(at(&bar)), "r"(1));
        %s
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%%0], [%%1], 0x80;"
        :: "l"(maps), "r"(at(built)) : "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%0], %%1;" :: "r"(at(&bar)), "r"(2048) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%%0], [%%1, {%%2, %%3}], [%%4];"
            :: "r"(at(tile)), "l"(maps), "r"(-4), "r"(8), "r"(at(&bar)) : "memory");
    }
    asm volatile("{ .reg .pred complete; waitLoop_%%=: mbarrier.try_wait.parity.shared.b64 complete, [%%0], %%1; "
        "@!complete bra.uni waitLoop_%%=; }" :: "r"(at(&bar)), "r"(0) : "memory");
    for (int i = 0; i < 16; i++) raw[32 * i + t] = tile[i][t];
}
"""


def _text_with_built_map() -> str:
    """Return the kernel that makes its tensor map."""
    lines = []
    for name, bits, constraint, value in FIELDS:
        *ordinal, own = value.split(", ")
        text = f"tensormap.replace.tile.{name}.shared::cta.b1024.b{bits} [%0], {''.join(f'{n}, ' for n in ordinal)}"
        operands = f', "{constraint}"({own})' if constraint else ""
        lines.append(f'asm volatile("{text}{"%1" if constraint else own};" :: "r"(at(built)){operands} : "memory");')
    return MADE % "\n        ".join(lines)


@pytest.mark.slow
def test_tensor_maps_that_a_kernel_makes() -> None:
    """A map of a part of an array: its first row is the second of the array, its size that of the launch."""
    rows, columns = np.arange(16)[:, None], np.arange(32)
    tile = np.zeros((16, 32), np.float32)
    tile[:11, 4:] = X[9:, :28]
    swizzled = np.zeros_like(tile)
    swizzled[rows, (columns // 4 ^ rows % 8) * 4 + columns % 4] = tile
    args = {"x": X, "raw": np.zeros(512, np.float32), "maps": np.zeros(16, np.uint64), "width": 60, "height": 19}
    text = _text_with_built_map()
    kernel, wrong = (st.cuda_source(own)["moved"] for own in (text, text.replace("b32 [%0], 7", "b32 [%0], 11")))
    for engine in ("numpy", "jit", "python"):
        result = st.launch(kernel, grid=1, block=32, args=args, engine=engine, check="all")
        np.testing.assert_array_equal(result.raw.reshape(16, 32), swizzled)
    with pytest.raises(st.CompileError, match="a tensor map that the kernel makes"):
        cuda_source(result.request.specialisation.program, (32, 1, 1))
    with pytest.raises(st.CompileError, match="the field elemtype of a tensor map is not supported with 11 here"):
        st.launch(wrong, grid=1, block=32, args=args)


@pytest.mark.slow
def test_refusals() -> None:
    error: Any
    for text, changed, error, message in (
        (KERNEL, {"in": X}, st.LaunchError, r"in is a tensor map: give st\.tensor_map\(array, box=\.\.\.\)"),
        (
            KERNEL,
            {"in": st.tensor_map(X[0], box=(32,))},
            st.CompileError,
            "in is copied as a tensor of 2 dimensions, it has 1",
        ),
        (KERNEL, {"raw": st.tensor_map(X[0], box=(32,))}, st.LaunchError, "raw"),
        (
            KERNEL.replace('"l"(&out)', '"l"(x < 0 ? &in : &out)'),
            {},
            st.CompileError,
            "is chosen at run time, is not supported",
        ),
        (KERNEL.replace('"l"(&out)', '"l"(raw)'), {}, st.CompileError, "is no parameter of its own"),
        (
            KERNEL.replace("2d.global", "2d.global.shared::cta.tile::gather4"),
            {},
            st.CompileError,
            "gather4.* is not supported",
        ),
    ):
        with pytest.raises(error, match=message):
            _launch(text, **changed)


@needs_nvcc
@pytest.mark.slow
def test_printed_instructions_compile() -> None:
    request = _launch().request
    text = cuda_source(request.specialisation.program, (32, 1, 1)).text
    assert text.count("const __grid_constant__ CUtensorMap") == 2
    assert nvcc.build(text, "moved", "sm_90").resources.registers > 0
