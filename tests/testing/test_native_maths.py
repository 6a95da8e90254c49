"""CUDA's own mathematical functions compared with portable ones: the arrays that they reach, the bounds, and the findings."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, f32, i32
from simtbed.compiled.answer import executed_arrays
from simtbed.engines.cuda.nvcc import find_tool
from simtbed.ir.op import Policy, ulp
from simtbed.profiler.run import merge_findings
from simtbed.runtime.engine import Outcome, Request
from simtbed.runtime.registry import engine_named
from simtbed.runtime.request import prepare_request
from simtbed.runtime.tolerance import Tolerance
from simtbed.testing import Disagreement, native_maths, verify, verifying
from simtbed.testing.comparing import Comparison

from tests.texts import texts


@st.kernel
def several(
    x: Global[f32], direct: Global[f32], larger: Global[f32], later: Global[f32], exact: Global[f32], count: Global[i32]
) -> None:
    i = st.thread.x
    direct[i] = st.exp(x[i])
    larger[i] = st.log(x[i]) if x[i] > 1.0 else st.tan(x[i])
    if x[i] > 2.0:
        larger[i] = 0.0
    later[i] = st.exp(x[i]) - 1.0
    exact[i] = st.sqrt(x[i]) * 2.0
    if st.sin(x[i]) > 0.5:
        st.atomic_add(count, 0, 1)


@st.kernel
def through_arrays(
    x: Global[f32], place: Global[i32], out: Global[f32], placed: Global[f32], fast: Global[f32]
) -> None:
    i = st.thread.x
    own = st.shared(f32, 32)
    own[i] = st.exp(x[i])
    st.sync()
    out[i] = own[31 - i]
    place[i] = st.i32(st.exp(x[i]))
    placed[place[i] % 32] = x[i]
    fast[i] = st.fast_sin(x[i])


@st.kernel
def after_a_choice(x: Global[f32], before: Global[f32], after: Global[f32]) -> None:
    i = st.thread.x
    before[i] = x[i] * 2.0
    if st.exp(x[i]) > 2.0:
        return
    after[i] = x[i]


def bounds(kernel: Any, **arrays: Any) -> dict[str, Policy | None]:
    request = prepare_request(kernel, grid=1, block=32, args={"x": np.linspace(0.1, 3, 32, dtype=np.float32), **arrays})
    return {name: state.bound for name, state in request.prepared.rounded.items()}


def zeros(*names: str, type: Any = f32) -> dict[str, Any]:
    return {name: st.zeros(32, type) for name in names}


def test_bounds() -> None:
    arrays = {**zeros("direct", "larger", "later", "exact"), **zeros("count", type=i32)}
    assert bounds(several, **arrays) == {"direct": ulp(2), "larger": ulp(3), "later": None, "count": None}
    states = bounds(through_arrays, **zeros("out", "placed", "fast"), **zeros("place", type=i32))
    assert states == {"own": ulp(2), "out": ulp(2), "place": None, "placed": None}


def test_a_choice_reaches_later_stores() -> None:
    assert bounds(after_a_choice, **zeros("before", "after")) == {"after": None}


class Gpu:
    """A GPU with the emulator's results; those of native mathematics are `units` in the last place from them."""

    name = "cuda"

    def __init__(self, units: int) -> None:
        self.units, self.requests = units, list[Request]()

    def run(self, request: Request) -> Outcome:
        self.requests.append(request)
        outcome = engine_named("jit").run(request)
        if request.maths == "native":
            for values in outcome.buffers.values():
                if values.dtype == np.float32:
                    values.view(np.int32)[3] += self.units
        return outcome


@st.kernel
def exponential(x: Global[f32], out: Global[f32]) -> None:
    out[st.thread.x] = st.exp(x[st.thread.x])


@st.kernel
def two_results(x: Global[f32], out: Global[f32], other: Global[f32]) -> None:
    out[st.thread.x] = st.exp(x[st.thread.x])
    other[st.thread.x] = st.log(x[st.thread.x])


@st.kernel
def softened(x: Global[f32], out: Global[f32]) -> None:
    out[st.thread.x] = 1.0 / (1.0 + st.exp(x[st.thread.x]))


def findings(
    kernel: Any,
    units: int,
    monkeypatch: pytest.MonkeyPatch,
    names: tuple[str, ...] = ("out",),
    gpu: type[Gpu] = Gpu,
    **how: Any,
) -> list[st.Diagnostic]:
    device = gpu(units)
    args = {"x": np.linspace(0.1, 3, 32, dtype=np.float32), **{name: st.empty(32, f32) for name in names}}
    request = replace(prepare_request(kernel, grid=1, block=32, args=args, counters=False), **how)
    portable = request.shaped(device.run(request).buffers)
    monkeypatch.setattr(native_maths, "engine_named", lambda name: device)
    return native_maths.native_findings(request, portable, "cuda")


needs_nvcc = pytest.mark.skipif(
    find_tool("nvcc") is None or find_tool("nvdisasm") is None, reason="nvcc or nvdisasm is not installed"
)


class Hopper(Gpu):
    """A GPU of sm_90 with CUDA's own functions, by the executed SASS; then one result is `units` in the last place from it."""

    def architecture(self) -> str:
        return "sm_90"

    def run(self, request: Request) -> Outcome:
        outcome = engine_named("jit").run(request)
        if request.maths == "native" or request.specialisation.own_code is not None:
            executed = executed_arrays(request, self.architecture())
            assert executed is not None
            outcome.buffers.update({name: np.array(values) for name, values in executed.items()})
            next(iter(outcome.buffers.values())).view(np.int32)[3] += self.units
        return outcome


@pytest.mark.slow
@needs_nvcc
def test_the_executed_sass_has_the_bits_of_native_mathematics(monkeypatch: pytest.MonkeyPatch) -> None:
    for kernel in (exponential, softened):
        (remark,) = findings(kernel, 0, monkeypatch, gpu=Hopper)
        assert (remark.kind, remark.notes) == ("native", ("the executed SASS of the kernel has the same bits",))
        (wrong,) = findings(kernel, 1, monkeypatch, gpu=Hopper)
        assert (wrong.kind, wrong.message) == (
            "disagreement",
            "out: 1 of 32 elements differ between the GPU and the executed SASS of the kernel, by at most 1 ulp",
        )


def test_a_difference_within_its_bound_is_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    (remark,) = findings(exponential, 2, monkeypatch)
    assert (remark.kind, remark.array, remark.notes) == ("native", "out", ("the bound is 2 ulp",))
    assert remark.message == "out: 1 of 32 elements differ between native and portable mathematics, by at most 2 ulp"
    assert findings(exponential, 0, monkeypatch) == []


def test_a_difference_beyond_its_bound_is_a_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    (wrong,) = findings(exponential, 3, monkeypatch)
    assert (wrong.kind, wrong.notes) == ("disagreement", ("the bound is 2 ulp; elements beyond it: 1",))


def test_operations_after_a_function_have_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    (remark,) = findings(softened, 100, monkeypatch)
    assert remark.kind == "native"
    assert remark.notes == ("operations follow the functions: there is no bound",)


def test_each_array_has_its_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    several_findings = findings(two_results, 1, monkeypatch, ("out", "other"))
    assert [finding.array for finding in merge_findings(several_findings)] == ["out", "other"]


def test_native_launches_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert findings(exponential, 3, monkeypatch, maths="native") == []


def test_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    args = {"x": np.linspace(-3, 3, 32, dtype=np.float32), "out": st.empty(32, f32)}
    gpu = Gpu(2)
    monkeypatch.setattr(native_maths, "engine_named", lambda name: gpu)
    real = st.launch
    monkeypatch.setattr(verifying, "launch", lambda kernel, engine, **how: real(kernel, engine="jit", **how))
    result = verify(exponential, grid=1, block=32, args=args, engines=("jit", "cuda"))
    assert [remark.kind for remark in result.remarks] == ["native"]
    gpu.units = 3
    with pytest.raises(Disagreement, match="the bound is 2 ulp"):
        verify(exponential, grid=1, block=32, args=args, engines=("jit", "cuda"))


def of_own_code() -> Request:
    args = {"x": np.linspace(-3, 3, 32, dtype=np.float32), **zeros("direct", "later"), "exact": st.zeros(32, i32)}
    return prepare_request(
        st.cuda_source(texts("cuda_cpp/texts.cu")["exponentials"])["own"], grid=1, block=32, args=args, counters=False
    )


@pytest.mark.slow
@needs_nvcc
def test_the_executed_sass_has_the_bits_of_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ziglang")
    request = of_own_code()
    portable, native = (request.shaped(gpu.run(request).buffers) for gpu in (engine_named("jit"), Hopper(0)))
    assert (native["exact"] == portable["exact"]).all()
    monkeypatch.setattr(native_maths, "engine_named", lambda name: Hopper(0))
    remarks = native_maths.own_code_findings(request, native, portable, "cuda")
    assert [(remark.kind, remark.array) for remark in remarks] == [("native", "direct"), ("native", "later")]
    assert {remark.notes for remark in remarks} == {("the executed SASS of the kernel has the same bits",)}


@pytest.mark.parametrize(
    ("array", "units", "kinds"),
    [
        ("direct", 2, ["native"]),
        ("direct", 3, ["disagreement"]),
        ("later", 1000, ["native"]),
        ("exact", 1, ["disagreement"]),
    ],
)
def test_own_code_calls_cudas_functions(
    array: str, units: int, kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ziglang")

    class OwnCode:
        name = "cuda"

        def run(self, request: Request) -> Outcome:
            outcome = engine_named("jit").run(request)
            outcome.buffers[array].view(np.int32)[5] += units
            return outcome

    for module in (verifying, native_maths):
        monkeypatch.setattr(module, "engine_named", lambda name: OwnCode())
    request = of_own_code()
    expected = request.shaped(engine_named("jit").run(request).buffers)
    differences = verifying.compare_engines(request, expected, ["cuda"], Comparison())
    assert [finding.kind for finding in differences] == kinds
    tolerant = Comparison(Tolerance(ulp=units))
    assert not verifying.compare_engines(request, expected, ["cuda"], tolerant) or array == "exact"
