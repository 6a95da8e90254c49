"""Machine code from other doors than printed CUDA: its compiled view, its predicted time by line and by instruction."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.compiled.kernel import CompiledKernel
from simtbed.errors import LaunchError
from simtbed.machine import tensor_rates
from simtbed.model.launches import observe
from simtbed.model.observed import ObservedLaunch
from simtbed.model.time import estimate
from simtbed.reports.profile import predicted
from simtbed.runtime.cubin_launch import CubinLaunch
from simtbed.runtime.request import prepare_request

from examples.kernels.matmul_tensor_cores import product_by_warpgroups, product_of_halves
from tests.compilers import needs_sass
from tests.texts import texts

TEXT = texts("compiled/kernels.cu")["weighted"]
pytestmark = [needs_sass, pytest.mark.slow]
X = np.arange(4096, dtype=np.float32)


def weighted(launch: Callable[..., Any], **options: Any) -> Any:
    """Launch a kernel in CUDA C++ with constant memory."""
    source = st.cuda_source(TEXT)
    source.variables["weights"] = np.array([1, 2, 3, 4], np.float32)
    args = {"x": X, "out": st.empty(4096, st.f32), "n": 4000}
    return launch(source["weighted"], grid=32, block=128, args=args, **options)


def test_the_users_text_is_compiled_and_executed() -> None:
    view = weighted(st.launch, compiled=True).compiled()
    assert view.output_differences == {} and view.memory["global_load_requests"] == 125
    lines = {
        view.launched.source_span(one.place[0]).line for one in view.instructions if one.instruction.opcode == "FMUL"
    }
    assert lines == {next(n for n, line in enumerate(TEXT.splitlines(), 1) if "weights[i & 3]" in line)}


def observed(*arguments: Any, **launch: Any) -> ObservedLaunch:
    return observe(prepare_request(*arguments, **launch))


def test_warps_wait_for_the_line_that_needs_a_load() -> None:
    estimated = estimate(weighted(observed), st.devices.H200)
    assert isinstance(estimated.kernel, CompiledKernel) and estimated.waited is not None
    assert estimated.waited.sum() == pytest.approx(1.0)
    (_, source, fraction), *_ = predicted.by_line(estimated.kernel, estimated)
    assert "weights[i & 3]" in source and fraction > 0.5


def test_a_cubin_has_counters_lines_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[CubinLaunch] = []
    built = weighted(st.launch, compiled=True).compiled().launched.binary("sm_90").built
    (kernel,) = st.cubin(built.cubin).values()
    monkeypatch.setattr("simtbed.compiled.cubin_file.cubin_receivers", [launches.append])
    kernel.launch(X, np.zeros_like(X), 4000, grid=32, block=128)
    (executed,) = predicted.executed_cubins(launches, "weigh*")
    assert kernel.sections.registers("weighted") == built.resources.registers > 0
    content = predicted.content(executed)
    assert content["counters"]["global_load_sectors"] == 500 and content["registers"] == executed.registers >= 16
    assert (
        content["low_us"] <= content["predicted_us"] < 10 and sum(one["time"] for one in content["instructions"]) > 0.99
    )
    text = predicted.cubin_text(executed)
    assert "us predicted on H200" in text and "LDG.E" in text and "<cuda " in text
    assert predicted.executed_cubins(launches, "other") == []


def test_matrix_instructions_have_a_measured_rate_or_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    halves = np.ones((32, 32), np.float16)
    args = {"a": halves, "b": halves, "c": st.empty((32, 32), st.f32)}
    launch: Any = {"grid": (2, 2), "block": 64, "args": args}
    launched = observed(product_of_halves, **launch)
    name = "m16n8k16.f32.f16.f16.f32"
    monkeypatch.setattr(tensor_rates, "_rates", dict)
    with pytest.raises(LaunchError, match=f"the time of {name} is not predicted: it was not measured on sm_90"):
        estimate(launched, st.devices.H200)
    source_only = observe(prepare_request(product_of_halves, **launch), source_only=True)
    with pytest.raises(LaunchError, match="predicted from SASS alone: only the source was counted"):
        estimate(source_only, st.devices.H200)
    times = []
    for interval in (8, 8000):
        monkeypatch.setattr(tensor_rates, "_rates", lambda interval=interval: {"sm_90": {name: [interval, 33]}})
        times.append(estimate(launched, st.devices.H200))
    assert times[0].limits["tensor"] * 1000 == pytest.approx(times[1].limits["tensor"])
    assert times[1].bound == "tensor" and times[1].time_us > 1.5 * times[0].time_us


def test_a_wait_for_asynchronous_copies_takes_their_latency() -> None:
    """Nsight Compute measured 30.4, 13.4 and 10.2 us on an H200, with cold caches."""
    source, steps = st.cuda_source(texts("compiled/kernels.cu")["pipelined"]), 64
    x = np.zeros((132 * 128 * steps, 4), np.float32)
    for stages, measured in ((2, 30.4), (4, 13.4), (6, 10.2)):
        args = x, st.empty(132 * 128, "f32"), steps
        launched = observed(source[f"stages{stages}"], grid=132, block=128, args=args)
        assert estimate(launched, st.devices.H200, cold=True).time_us == pytest.approx(measured, rel=0.1)


def test_products_of_a_warpgroup_have_measured_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    halves = np.ones((64, 512), np.float16)
    args = {"a": halves, "b": halves.T.copy(), "c": st.empty((64, 64), st.f32)}
    launched = observed(product_by_warpgroups, grid=(1, 1), block=128, args=args)

    def time(*rate: int) -> Any:
        monkeypatch.setattr(tensor_rates, "_rates", lambda: {"wgmma_sm_90": {"f32 shared": [*rate]}})
        return estimate(launched, st.devices.H200)

    usual, slow, chained = time(17, 51, 79, 197, 0), time(8000, 51, 79, 197, 0), time(17, 8000, 8000, 8000, 64)
    waited = time(17, 8000, 8000, 8000, 65)  # for each fourth product, by the program
    assert slow.bound == "tensor" and slow.time_us > 3 * usual.time_us
    assert usual.limits["tensor"] * 8000 == pytest.approx(32 * slow.limits["tensor"])  # 64 columns
    assert chained.time_us > 1.5 * waited.time_us > 2 * usual.time_us
    monkeypatch.setattr(tensor_rates, "_rates", dict)
    with pytest.raises(LaunchError, match=r"the time of m64n64k16\.f32\.f16\.f16 is not predicted"):
        estimate(launched, st.devices.H200)
