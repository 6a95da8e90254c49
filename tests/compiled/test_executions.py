"""Executions of blocks and reasons of uncertainty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.compiled import executions as executions_module
from simtbed.compiled import path_estimator as walk_module
from simtbed.compiled.correspondence import Correspondence
from simtbed.compiled.executions import Executions, executions_of
from simtbed.compiled.path_estimator import PathEstimate, PathEstimator
from simtbed.compiled.replay import DecisionReplay, ReplayError, WarpName, WarpTrace
from simtbed.compiled.residuals import Residuals
from simtbed.language.hints import Global, f32, i32
from simtbed.reports.hardware.cases import VARIANTS, find
from simtbed.reports.hardware.recording import RecordingLauncher

from tests.compiled.listings import launched, placed
from tests.validation.recorded import KERNEL_CASES, load_record


def estimate_case(name: str, cases: str = KERNEL_CASES, record: str = "kernels/h200") -> tuple[Executions, int]:
    """Return the estimate and the recorded warp instructions of the first kernel of a case."""
    (case,) = find([cases], name)
    launcher = RecordingLauncher("jit", st.devices.find("H200"))
    case.run(launcher)
    launches = launcher.kernels[0]
    (profiled,) = (each for each in load_record(record).counters[case.name] if each.source == launches.digest)
    return executions_of([row.placed for row in profiled.sass], launches), sum(row.warps for row in profiled.sass)


def executions() -> Executions:
    """Return the executions of a kernel with path sampling and distinct warps."""
    return estimate_case("validation mandelbrot")[0]


@pytest.mark.parametrize("believed", [False, True])
def test_paths_with_excess_convergence_are_rejected(believed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes in different copies of a loop: 1.6 times the shuffles by warps, equal by threads."""
    if believed:
        monkeypatch.setattr(Residuals, "excess_convergence", lambda explained, warps: 0.0)
    result, recorded = estimate_case("pairhmm intratask-warps-two-copies", VARIANTS, "h200")
    assert (abs(result.warp_instructions / recorded - 1) > 0.1) == believed
    assert ("reconverge later" in result.walk.failure) != believed


@pytest.mark.parametrize("believed", [False, True])
def test_paths_with_missing_effects_are_rejected(believed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes remain converged, unlike in the source."""
    if believed:
        monkeypatch.setattr(PathEstimator, "missing_effects", lambda walk, threads: 0.0)
    result, _ = estimate_case("validation expand_frontier")
    efficiency = result.thread_instructions / (32 * result.warp_instructions)
    assert (abs(efficiency - 0.5434) > 0.02) == believed
    assert ("miss effects" in result.walk.failure) != believed


@pytest.mark.parametrize("inflated", [False, True])
def test_paths_that_agree_with_certain_flow_are_preferred(inflated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flow leaves 2 % uncertain and follows edges of large operands."""
    run = PathEstimator.estimate

    def other(walk: PathEstimator) -> PathEstimate | None:
        result = run(walk)
        if result is not None and inflated:
            result.warps *= 1.1
        return result

    monkeypatch.setattr(PathEstimator, "estimate", other)
    result, recorded = estimate_case("validation mri_q")
    assert (abs(result.warp_instructions / recorded - 1) < 0.001) != inflated
    assert abs(result.warp_instructions / recorded - 1) < 0.02


def test_certain_flow_remains_certain_under_path_sampling() -> None:
    """nvcc dropped some loads, so residuals are nonzero."""
    result, recorded = estimate_case("sfs tiled", VARIANTS, "h200")
    assert result.warp_instructions == recorded and result.walk.paths_by_hash
    loads = [n for n, one in enumerate(result.placed) if one.instruction.opcode == "LDS"]
    assert loads and all(result.least[n] == result.most[n] for n in loads)


def test_trips_of_a_mid_exit_loop_equal_its_later_statements() -> None:
    result, recorded = estimate_case("nested_loops", "tests.validation.cases:cases", "h200")
    assert result.warp_instructions == recorded


def losing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every third warp has an incomplete record."""
    requested, original_trace = list[WarpName](), DecisionReplay.trace

    def steps(replay: DecisionReplay, warp: WarpName, lanes: int) -> WarpTrace:
        requested.append(warp)
        if len(requested) % 3 == 0:
            raise ReplayError("only a summary of the decisions is recorded")
        return original_trace(replay, warp, lanes)

    monkeypatch.setattr(DecisionReplay, "trace", steps)


def test_complete_warps_represent_the_others_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = executions()
    losing(monkeypatch)
    result = executions()
    assert result.warp_instructions == pytest.approx(whole.warp_instructions, rel=0.1)
    assert any("have complete records and represent the others" in why for why in result.uncertainty.values())


def test_that_warps_are_not_walked_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk_module, "HARD_SEARCH_BUDGET", 0)
    assert any("no path sampling: the search exceeds its budget" in why for why in executions().uncertainty.values())


def test_bounds_are_whole_numbers_and_certain_where_they_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk_module, "HARD_SEARCH_BUDGET", 0)
    result = executions()
    open_ = [n for n, block in enumerate(result.block_of) if block in result.uncertainty]
    assert open_ and all(result.least[n] == int(result.least[n]) < result.most[n] == int(result.most[n]) for n in open_)
    assert all(result.least[n] == result.warps[n] == result.most[n] for n in range(len(result.warps)) if n not in open_)


@st.kernel
def counting_down(x: Global[i32], y: Global[i32], out: Global[i32], n: i32) -> None:
    t = st.thread.x
    if t < n:
        a, b = x[t], y[t]
        while a > 0:
            out[b] = a
            a, b = a - 1, b + 32


def test_lanes_remaining_after_an_exit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if one of their loads, used in the loop only, executes less often."""
    monkeypatch.setattr(walk_module, "HARD_SEARCH_BUDGET", 0)
    values = {"x": np.arange(32, dtype=np.int32) // 4, "y": np.arange(32, dtype=np.int32), "out": st.zeros(256, st.i32)}
    launches = launched(counting_down, n=24, **values)
    rows = placed(
        launches,
        ("ISETP.GE.AND P0, PT, R0, UR4, PT", "if ("),
        ("@P0 EXIT", "if ("),
        ("LDG.E R2, [R4]", "x["),
        ("@P1 EXIT", "while ("),
        ("LDG.E R3, [R6]", "x["),
        ("STG.E [R8], R2", "out[b"),
        ("@P2 BRA 0x50", "while ("),
        ("EXIT", ""),
    )
    assert executions_of(rows, launches).threads.tolist() == [32, 32, 24, 24, 20, 60, 60, 20]


@st.kernel
def trying(out: Global[i32]) -> None:
    left = st.thread.x % 4
    while left > 0:
        st.atomic_add(out, left, 1)
        left -= 1
    out[st.thread.x + 4] = left


@pytest.mark.parametrize(("instruction", "groups"), [("NOP", 1), ("YIELD", 4)])
def test_lanes_that_do_not_wait_for_each_other_are_walked(instruction: str, groups: int) -> None:
    """The number is certain anyway."""
    launches = launched(trying, out=st.zeros(36, st.i32))
    listing = placed(
        launches,
        ("BSSY B0, 0x60", "while"),
        ("@P0 BRA 0x50", "while"),
        ("REDG.E.ADD.STRONG.GPU [R4], R5", "atomicAdd"),
        (instruction, "while"),
        ("@P1 BRA 0x20", "while"),
        ("BSYNC B0", "while"),
        ("STG.E [R2], R1", "+ 4]"),
        ("EXIT", ""),
    )
    result = executions_of(listing, launches)
    assert (result.warps[6], result.threads[6]) == (groups, 32)
    assert result.threads[2] == 8 * (1 + 2 + 3)


@st.kernel
def warming(x: Global[f32], out: Global[f32]) -> None:
    t = st.thread.x
    heat = x[t]
    if heat > 7.0:
        heat *= st.exp(1.0 - heat)
    out[t] = heat


def test_expanded_operations_exceed_the_source() -> None:
    """An exponential is a MUFU and several float operations: the MUFU counts it."""
    launches = launched(warming, x=np.arange(32, dtype=np.float32), out=st.zeros(32, st.f32))
    exponential = "expf"
    listing = placed(
        launches,
        ("LDG.E R2, [R4]", "= x["),
        ("@P0 BRA 0xa0", "> 7.0"),
        ("FADD R3, -R2, 1", exponential),
        ("FFMA.SAT R5, R3, R6, 0.5", exponential),
        ("FFMA.RM R5, R5, R7, 12582913", exponential),
        ("FADD R8, R5, -12583039", exponential),
        ("FFMA R8, R3, 1.4426950216293334961, -R8", exponential),
        ("FFMA R8, R3, 1.925963033500011079e-08, R8", exponential),
        ("MUFU.EX2 R8, R8", exponential),
        ("FMUL R2, R5, R8", exponential),
        ("STG.E [R6], R2", "out["),
        ("EXIT", ""),
    )
    result = executions_of(listing, launches)
    assert [result.threads[n] for n in (0, 6, 10)] == [32, 24, 32]


def off(name: str) -> float:
    """Return the relative error of the instruction count for a kernel of the H100 record."""
    result, recorded = estimate_case(f"validation {name}", record="kernels/h100")
    return result.warp_instructions / recorded - 1


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize(
    ("name", "owner", "attribute", "replacement", "least", "most"),
    [
        ("bond_yields", Correspondence, "_allow_missing_operations", lambda correspondence, nodes: None, 0.1, 0.01),
        ("stencil_27_points", Correspondence, "_shared_accesses", lambda correspondence: iter(()), 0.01, 1e-9),
        ("trinomial_options", executions_module, "_duplicated_places", lambda matcher: frozenset(), 0.1, 0.05),
        ("common_subsequences", executions_module, "_with_path_divergence", lambda walk, flow, found, sure: flow, 0.05, 0.03),
    ],
)  # fmt: skip
def test_what_the_compiler_does_to_loops_and_arms_is_known(
    name: str, owner: Any, attribute: str, replacement: Any, least: float, most: float, applied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Dropped last-iteration code, merged stores of both arms, duplicated loops, and divergence of a sample."""
    if not applied:
        monkeypatch.setattr(owner, attribute, replacement)
    monkeypatch.setattr(walk_module, "SEARCH_BUDGET", 5_000_000)
    assert abs(off(name)) < most if applied else abs(off(name)) > least


def test_long_divisions_of_inlined_calls_on_one_line_are_counted() -> None:
    result, recorded = estimate_case("validation power_modulo")
    assert abs(result.warp_instructions / recorded - 1) < 0.05


def test_a_flow_that_explains_nearly_all_is_walked_as_well() -> None:
    """Blocks of an unrolled loop with fewer executions: 2 % of the loads were in excess."""
    result, recorded = estimate_case("validation bucket_by_splitters")
    assert result.warp_instructions == recorded
