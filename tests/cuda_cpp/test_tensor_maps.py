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
        np.testing.assert_array_equal(result.out[9:, :29], tile[:11, 3:] + 1)
        assert not result.out[:9].any()

    engines: list[EngineName] = ["numpy", "jit", "python"]
    check_each(engines, check)


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
