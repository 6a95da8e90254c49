"""f16 and bf16 in kernels: the printed CUDA, what is refused and where it is needed, arguments, and what is said of them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import simtbed as st
from ml_dtypes import bfloat16
from simtbed import CompileError, Global, LaunchError, bf16, bfloat162, f16, f32, f64, half2, i32
from simtbed.engines.cuda.nvcc import build
from simtbed.engines.cuda.printer import cuda_source
from simtbed.runtime.registry import EngineName
from simtbed.runtime.request import prepare_request
from simtbed.testing.conformance import FEATURES, Feature, features_halves

from tests.compilers import needs_nvcc
from tests.language.refused_halves import refused

Golden = Callable[[str, str], None]
EMULATORS = pytest.mark.parametrize("engine", ["numpy", "jit"])


@st.device
def blended(a: f16, b: f16, share: f32) -> f16:
    """A mean with weights, computed in f32."""
    return f16(f32(a) * share + f32(b) * (1 - share))


@st.kernel
def printed(x: Global[f16], y: Global[bf16], pairs: Global[half2], out: Global[f32], scale: f16, half: f32) -> None:
    """All forms of halves in CUDA C++."""
    table = st.constant(bf16, (0.1, -2.0))
    sums = st.shared(half2, 2)
    t = st.lane
    if t < 2:
        sums[t] = half2(0, 0)
    st.sync()
    a = x[t] * scale + 0.5
    a += st.shuffle_down(a, 1)
    b = -y[t] / 3 - table[t % 2]
    st.atomic_add(sums, 0, half2(a, st.fma(a, scale, 1.0)))
    st.atomic_add(pairs, 1, sums[0])
    st.sync()
    assert sums[0].x == sums[0].x
    print(a, b)
    a = blended(a, min(a, scale), half)
    out[t] = f32(abs(a)) + f32(b) + f32(st.sqrt(a)) + f32(f16(i32(a)) > scale) + f32(bf16(f64(half)) < b)


ARGUMENTS: dict[str, Any] = {
    "x": np.ones(32, np.float16), "y": np.ones(32, bfloat16), "pairs": np.zeros((2, 2), np.float16),
    "out": st.empty(32, f32), "scale": 0.5, "half": 0.5,
}  # fmt: skip


def test_the_printed_text(golden: Golden) -> None:
    request = prepare_request(printed, grid=1, block=32, args=ARGUMENTS)
    golden("cuda/halves.cu", cuda_source(request.program, request.block).text)


@pytest.mark.slow
@needs_nvcc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_nvcc_takes_it(arch: str) -> None:
    request = prepare_request(printed, grid=1, block=32, args=ARGUMENTS)
    source = cuda_source(request.program, request.block)
    assert build(source.with_lines(), source.kernel, arch).resources.registers > 0


def test_headers_are_included_for_halves() -> None:
    @st.kernel
    def without(x: Global[f32], half: f32) -> None:
        x[0] = half

    @st.kernel
    def only_between(x: Global[f32]) -> None:
        x[0] = f32(bf16(x[0]))

    def text(kernel: st.Kernel, **more: Any) -> str:
        request = prepare_request(kernel, grid=1, block=1, args={"x": np.ones(1, np.float32), **more})
        return cuda_source(request.program, request.block).text

    assert "#include" not in text(without, half=0.5)
    assert "#include <cuda_bf16.h>" in text(only_between) and "cuda_fp16" not in text(only_between)


def test_what_is_refused(golden: Golden) -> None:
    args = {name: ARGUMENTS[name] for name in ("x", "y", "pairs", "out")}
    with pytest.raises(CompileError) as caught:
        prepare_request(refused, grid=1, block=1, args=args)
    golden("refused_halves.txt", f"{caught.value}\n")


def test_what_a_device_must_have() -> None:
    @st.kernel
    def fused(x: Global[bf16]) -> None:
        x[0] = st.fma(x[0], x[0], 1.0)

    @st.kernel
    def added(x: Global[f16]) -> None:
        st.atomic_add(x, 0, 1)

    @st.kernel
    def added_together(x: Global[bfloat162]) -> None:
        st.atomic_add(x, 0, bfloat162(1, 1))

    old, older = st.devices.V100, st.devices.K40
    with pytest.raises(LaunchError, match=r"8\.0"):
        st.launch(fused, grid=1, block=1, args={"x": np.ones(1, bfloat16)}, device=old)
    with pytest.raises(LaunchError, match=r"7\.0"):
        st.launch(added, grid=1, block=1, args={"x": np.ones(1, np.float16)}, device=older)
    with pytest.raises(LaunchError, match=r"8\.0"):
        st.launch(added_together, grid=1, block=1, args={"x": np.ones((1, 2), bfloat16)}, device=old)
    st.launch(added, grid=1, block=1, args={"x": np.ones(1, np.float16)}, device=old)


@EMULATORS
def test_arguments_are_rounded_once(engine: EngineName) -> None:
    @st.kernel
    def stored(a: f16, b: bf16, out: Global[f32]) -> None:
        out[0] = f32(a)
        out[1] = f32(b)

    def arguments(a: Any, b: Any) -> list[float]:
        args = {"a": a, "b": b, "out": st.empty(2, f32)}
        actual: list[float] = st.launch(stored, grid=1, block=1, args=args, engine=engine).out.tolist()
        return actual

    assert arguments(0.1, 1 + 2.0**-8 + 2.0**-40) == [float(np.float16(0.1)), 1 + 2.0**-7]
    assert arguments(np.float16(0.5), bfloat16(3)) == [0.5, 3.0]
    with pytest.raises(LaunchError, match="65504"):
        arguments(1e5, 0)
    with pytest.raises(LaunchError, match=r"float16.*f32|f32.*float16"):
        st.launch(stored, grid=1, block=1, args={"a": 1, "b": 1, "out": np.zeros(2, np.float16)}, engine=engine)


@EMULATORS
@pytest.mark.parametrize("feature", [f for f in FEATURES if f.name in vars(features_halves)], ids=lambda f: f.name)
def test_the_checkers_know_halves(feature: Feature, engine: EngineName) -> None:
    feature.launch(partial(st.launch, engine=engine, check="all"))
    feature.launch(partial(st.launch, engine=engine, schedule=3))


@EMULATORS
def test_sums_of_halves_may_differ_a_little_by_their_order(engine: EngineName) -> None:
    @st.kernel
    def summed(x: Global[f16], out: Global[f16]) -> None:
        st.atomic_add(out, 0, x[64 * st.block.x + st.thread.x])

    def launched(x: Any) -> None:
        args = {"x": x.astype(np.float16), "out": np.zeros(1, np.float16)}
        st.launch(summed, grid=4, block=64, args=args, engine=engine, schedule=1)

    launched(np.arange(256) / 7)
    with pytest.raises(st.FaultError, match="depends on the order"):
        launched(np.where(np.arange(256) < 255, 1, 4096))  # to which 1 adds nothing


@EMULATORS
def test_a_vector_is_one_access(engine: EngineName) -> None:
    @st.kernel
    def copied(x: Global[half2], y: Global[f16], out: Global[half2]) -> None:
        out[st.lane] = half2(x[st.lane].x, y[st.lane])

    args = {"x": np.ones((32, 2), np.float16), "y": np.ones(32, np.float16), "out": st.empty(32, "half2")}
    counters = st.launch(copied, grid=1, block=32, args=args, engine=engine).counters
    assert counters is not None
    assert counters.total("global_load_requests") == 2
    assert counters.total("global_load_sectors") == 4 + 2
    assert counters.total("global_store_sectors") == 4


@EMULATORS
def test_values_are_shown(engine: EngineName) -> None:
    @st.kernel
    def wrong(x: Global[bf16], y: Global[f16]) -> None:
        scale = y[0] * 2
        print(x[0], scale)
        assert scale < 1, "too large"

    result = st.launch(
        wrong,
        grid=1,
        block=1,
        args={"x": np.full(1, 1.5, bfloat16), "y": np.ones(1, np.float16)},
        engine=engine,
        faults="return",
    )
    assert result.printed[0].endswith("1.5 2.0")
    assert "too large" in str(result.faults[0])
