"""Path sampling: replay, path search, reconvergence, and weighting."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import simtbed as st
from simtbed.compiled import correspondence, paths
from simtbed.compiled import path_estimator as walk_module
from simtbed.compiled import replay as replay_module
from simtbed.compiled.control_flow import Graph, graph
from simtbed.compiled.executions import executions_of
from simtbed.compiled.expanded_cfg import ExpandedCfg
from simtbed.compiled.flow import SourceEvidence
from simtbed.compiled.flow_records import LocatedInstruction
from simtbed.compiled.kernel_launches import KernelLaunches
from simtbed.compiled.matching import LoopMatcher
from simtbed.compiled.path_estimator import PathEstimator
from simtbed.compiled.reconvergence import LanePath, WarpReconvergence
from simtbed.compiled.replay import DecisionReplay, RecordedDecisions, ReplayError, WarpTrace
from simtbed.engines.cuda.sass import Instruction
from simtbed.ir import nodes as ir
from simtbed.ir.walk import statements
from simtbed.language.hints import Global, i32
from simtbed.reports.hardware.cases import Case, find
from simtbed.reports.hardware.profiled import Profiled
from simtbed.reports.hardware.recording import RecordingLauncher

from tests.compiled.reconvergence import executions
from tests.validation.recorded import KERNEL_CASES, load_record


def sass(*texts: str) -> Graph:
    """Return a graph of instructions at 0x0, 0x10, ..."""
    return graph(tuple(Instruction(16 * n, text) for n, text in enumerate(texts)))


# ------------------------------------------------------------------ replay
@st.device
def found_at(x: Global[i32], expected: i32) -> i32:
    for k in range(6):
        if x[k] == expected:
            return k
    return -1


@st.kernel
def wandering(x: Global[i32], out: Global[i32]) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    total = found_at(x, i % 9)
    j = i % 5
    while j > 0:
        j -= 1
        if j == 2:
            continue
        if i % 7 == 3 and j == 1:
            break
        for _ in range(j):
            total += 1
    if i % 3 == 0 or i > 50:
        total += 100
    out[i] = total


def wandered(threads: int) -> tuple[st.Result, DecisionReplay]:
    args = {"x": np.arange(3, 9, dtype=np.int32), "out": st.zeros(2 * threads, st.i32)}
    result = st.launch(wandering, grid=2, block=threads, args=args, decisions=True)
    assert result.decisions is not None
    body = result.request.prepared.program.kernel.body
    sites = frozenset(stmt.site for stmt in statements(body) if stmt.site >= 0)
    return result, DecisionReplay(body, RecordedDecisions(result.decisions), sites)


def test_replayed_steps_equal_the_counts() -> None:
    result, replay = wandered(45)
    warps, lanes = Counter[int](), Counter[int]()
    for block in range(2):
        for warp, entered in enumerate((32, 13)):
            steps = replay.trace((0, block, warp), entered)
            for site, mask in zip(steps.sites.tolist(), steps.lanes.tolist(), strict=True):
                warps[site] += 1
                lanes[site] += mask.bit_count()
    assert result.counts is not None
    stmts = statements(result.request.prepared.program.kernel.body)
    plain = {
        s.site for s in stmts if not isinstance(s, ir.Frame | ir.For | ir.While) and 0 <= s.site < len(result.counts)
    }
    assert len(plain) > 15
    assert [(warps[n], lanes[n]) for n in plain] == [tuple(result.counts[n, :2].tolist()) for n in plain]


def test_lanes_that_did_the_same_are_one_group() -> None:
    _, replay = wandered(45)
    groups = replay.trace((0, 0, 1), 13).lane_groups_by_hash()
    masks = list(groups.values())
    assert sum(masks) == (1 << 32) - 1 and all(not a & b for n, a in enumerate(masks) for b in masks[:n])
    assert 1 < len(groups) < 32


def test_lanes_with_equal_work_at_other_steps_are_one_group() -> None:
    """Lanes 0 and 1 leave by one statement in the first iteration, lane 2 in the second; no event marks iterations."""
    events = np.array([0, 0, 1], np.int32)
    steps = WarpTrace(events, np.array([0b011, 0b100, 0b111], np.uint32), np.array([5, 7], np.int32))
    assert steps.sites.tolist() == [5, 5, 7]
    assert sorted(steps.lane_groups_by_hash().values()) == [0b111, (1 << 32) - 8]
    did = {mask: steps.steps_of_lane(mask.bit_length() - 1).tolist() for mask in steps.lane_groups()}
    assert did == {0b011: [0, 2], 0b100: [1, 2], (1 << 32) - 8: []}


def test_an_incomplete_record_is_rejected() -> None:
    _, replay = wandered(45)
    with pytest.raises(ReplayError, match="was not recorded for these lanes"):
        replay.trace((0, 0, 0), 31)
    with pytest.raises(ReplayError, match="was not recorded"):
        replay.trace((0, 7, 0), 32)
    _, past = replay.recorded.runs_of_warp[0, 1, 1]
    replay.recorded.runs[past - 1, 2] += 1
    with pytest.raises(ReplayError, match="decisions remain"):
        replay.trace((0, 1, 1), 13)
    replay.recorded.runs[past - 1, 1:] = -1, 1
    with pytest.raises(ReplayError, match="only a summary"):
        replay.trace((0, 1, 1), 13)


def test_replay_buffers_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    _, replay = wandered(45)
    expected = replay.trace((0, 1, 0), 32)
    monkeypatch.setattr(replay_module, "_INITIAL_CAPACITY", 1)
    result = wandered(45)[1].trace((0, 1, 0), 32)
    assert result.events.tolist() == expected.events.tolist() and result.lanes.tolist() == expected.lanes.tolist()


# ------------------------------------------------------------------ nodes
def test_a_callee_is_cloned_per_call() -> None:
    nodes = ExpandedCfg(
        sass(
            "CALL.REL.NOINC 0x50",
            "MOV R1, R2",
            "@P0 CALL.REL.NOINC 0x50",
            "STG.E [R2], R1",
            "EXIT",
            "MOV R1, R3",
            "RET.REL.NODEC R4 0x0",
        )
    )
    lane_paths = {
        (nodes.blocks[n], nodes.call_stacks[n]): {(nodes.blocks[m], nodes.call_stacks[m]) for m in nodes.successors[n]}
        for n in range(len(nodes.blocks))
    }
    assert lane_paths == {
        (0, ()): {(3, (1,))},
        (3, (1,)): {(1, ())},
        (1, ()): {(3, (2,)), (2, ())},
        (3, (2,)): {(2, ())},
        (2, ()): set(),
    }
    assert [nodes.blocks[n] for n, end in enumerate(nodes.may_exit) if end] == [2]


def counted(whole: Graph, *lane_paths: tuple[int, list[int]]) -> dict[int, tuple[int, int]]:
    """Return warp and thread executions by block; paths are of blocks."""
    return executions(ExpandedCfg(whole), lane_paths)


BRANCH = sass("BSSY B0, 0x50", "@P0 BRA 0x40", "MOV R1, R2", "@P1 EXIT", "BSYNC B0", "STG.E [R2], R1", "EXIT")
"""Blocks: 0 has the BSSY and diverges, 1 is one arm with a possible exit, 2 the convergence point, 3 follows."""


def test_diverged_lanes_reconverge() -> None:
    assert counted(BRANCH, (20, [0, 1, 2, 3]), (12, [0, 2, 3])) == {0: (1, 32), 1: (1, 20), 2: (2, 32), 3: (1, 32)}


def test_who_left_is_not_waited_for() -> None:
    assert counted(BRANCH, (20, [0, 1]), (8, [0, 2, 3]), (4, [0, 1, 2, 3])) == {
        0: (1, 32),
        1: (1, 24),
        2: (2, 12),
        3: (1, 12),
    }


def test_lanes_without_a_convergence_point_remain_diverged() -> None:
    whole = sass("@P0 BRA 0x20", "MOV R1, R2", "STG.E [R2], R1", "EXIT")
    assert counted(whole, (20, [0, 1, 2]), (12, [0, 2])) == {0: (1, 32), 1: (1, 20), 2: (2, 32)}


def test_lanes_leave_a_loop_group_by_group() -> None:
    whole = sass("BSSY B0, 0x30", "@P0 BRA 0x10", "BSYNC B0", "EXIT")
    result = counted(whole, (1, [0, 1, 2, 3]), (2, [0, 1, 1, 1, 2, 3]), (29, [0, 1, 1, 2, 3]))
    assert result == {0: (1, 32), 1: (3, 1 + 6 + 58), 2: (3, 32), 3: (1, 32)}


# ------------------------------------------------------------------ yield
def test_yielded_lanes_are_not_awaited() -> None:
    """Lanes that left a loop continue without lanes still inside: those of the first iteration together, later ones on arrival."""
    whole = sass(
        "BSSY B0, 0x80", "NOP", "YIELD", "@P0 BRA 0x60", "@P1 BRA 0x60", "@P2 BRA 0x10", "MOV R1, R2", "BSYNC B0", "STG.E [R2], R1", "EXIT"
    )  # fmt: skip
    iteration = [1, 2, 3, 4]
    lane_paths = [
        (4, [0, 1, 2, 5, 6, 7]), (4, [0, 1, 2, 3, 5, 6, 7]), (4, [0, *iteration, 5, 6, 7]),
        (10, [0, *iteration, 1, 2, 5, 6, 7]), (10, [0, *iteration, 1, 2, 3, 5, 6, 7]),
    ]  # fmt: skip
    result = counted(whole, *lane_paths)
    assert (result[6], result[7]) == ((5, 32), (3, 32))


def test_yielded_groups_merge() -> None:
    """Diverged lanes merge when one group yields to the other."""
    whole = sass("@P0 BRA 0x20", "NOP", "NOP", "YIELD", "STG.E [R2], R1", "EXIT")
    result = counted(whole, (20, [0, 1, 2, 3]), (12, [0, 2, 3]))
    assert result == {0: (1, 32), 1: (1, 20), 2: (2, 32), 3: (1, 32)}


MEASURED = json.loads((Path(__file__).parent / "yields.json").read_text(encoding="utf-8"))
"""Kernels with YIELD in loops: lane paths, and warp instructions by block on an H100."""


@pytest.mark.parametrize("name", MEASURED)
def test_divergence_equals_a_gpu(name: str) -> None:
    """Exactly for single loops; within a sixth for nested ones."""
    measured = MEASURED[name]
    whole = graph(tuple(Instruction(16 * n, text) for n, text in enumerate(measured["sass"])))
    nodes = ExpandedCfg(whole)
    number = {block: node for node, block in enumerate(nodes.blocks)}
    lane_paths = [
        LanePath(mask, np.array([number[block] for block in path], np.int32)) for mask, path in measured["paths"]
    ]
    warps, _ = WarpReconvergence(nodes).executions(lane_paths)
    result = [int(warps[number[block]]) if block in number else 0 for block in range(len(whole.blocks))]
    sizes = [past - first for first, past in whole.blocks]
    if name.startswith("leaves"):
        assert result == measured["executed"]
    recorded = np.dot(measured["executed"], sizes)
    assert abs(np.dot(result, sizes) / recorded - 1) < (0.1 if name.startswith("nested") else 0.27)


# ------------------------------------------------------------------ collective instructions
COLLECTIVE = sass(
    "@P0 BRA 0x20", "NOP", "UMOV UR4, 0xffffffff", "BRA.DIV UR4, 0x70", "VOTE.ANY R3, PT, P1", "STG.E [R2], R3", "EXIT",
    "BSSY B0, 0xb0", "WARPSYNC.COLLECTIVE R3, 0xa0", "VOTE.ANY R3, PT, P1", "BSYNC B0", "BRA 0x50",
)  # fmt: skip
"""Blocks: 0 and 1 diverge, 2 tests for convergence, 3 votes, 4 stores; 5 gathers groups, 6 votes for all, 7 reconverges,
8 jumps back."""


def test_lanes_that_are_not_together_gather() -> None:
    result = counted(COLLECTIVE, (20, [0, 1, 2, 3, 4]), (12, [0, 2, 3, 4]))
    assert result == {
        0: (1, 32), 1: (1, 20), 2: (2, 32), 5: (2, 32), 6: (1, 32), 7: (2, 32), 8: (1, 32), 4: (1, 32)
    }  # fmt: skip


def test_lanes_that_are_together_do_not() -> None:
    assert counted(COLLECTIVE, (32, [0, 2, 3, 4])) == {0: (1, 32), 2: (1, 32), 3: (1, 32), 4: (1, 32)}


def test_a_group_that_tests_its_own_mask_does_not_wait() -> None:
    """Its mask is no constant."""
    texts = [one.text.replace("UMOV UR4, 0xffffffff", "VOTEU.ANY UR4, UPT, PT") for one in COLLECTIVE.instructions]
    result = counted(sass(*texts), (20, [0, 1, 2, 3, 4]), (12, [0, 2, 3, 4]))
    assert result[3] == (2, 32) and 6 not in result


# ------------------------------------------------------------------ recorded kernels
RECORDED = load_record("kernels/h200")
CASES = {case.name.removeprefix("validation "): case for case in find([KERNEL_CASES])}


def launched(case: Case) -> tuple[KernelLaunches, Profiled]:
    """Return the launches of a validation kernel, and its record on an H200."""
    launcher = RecordingLauncher("jit", st.devices.find("H200"))
    case.run(launcher)
    (launches,), (profiled,) = launcher.kernels, RECORDED.counters[case.name]
    return launches, profiled


def walked(name: str) -> float:
    """Return the relative error of the instruction count by path sampling."""
    launches, profiled = launched(CASES[name])
    placed = [ran.placed for ran in profiled.sass]
    whole = graph(tuple(each.instruction for each in placed))
    places = SourceEvidence(launches.executed, any(each.calls for each in placed)).places(placed)
    source = launches.statements if any(each.calls for each in placed) else launches.statements.without_inlining()
    result = PathEstimator(LoopMatcher(whole, places, source), launches).estimate()
    assert result is not None
    sizes = [past - first for first, past in whole.blocks]
    return abs(float((result.warps * sizes).sum()) / sum(ran.warps for ran in profiled.sass) - 1)


@pytest.mark.parametrize(
    "name",
    [
        "mandelbrot",
        "horner_f64",
        "insertion_sort",
        "smith_waterman",
        "pagerank_step",
        "layer_norm",
        "bfs_step",
        "rank_sort",
        "spmv_ell",
        "spmv_rows",
        "stencil_2d",
        "hash_look_up",
        "merge_path",
        "run_lengths",
        "heap_largest",
        "neutron_slab",
        "group_sums",
        "product_row_sizes",
    ],
)
def test_a_walk_counts_what_ran(name: str) -> None:
    assert walked(name) < 0.05


NEEDED: dict[str, tuple[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "code counts": ("n_queens", lambda patch: patch.setattr(correspondence, "COST_MISSING_INSTRUCTION", 0.0)),
    "gaps count": (
        "heap_largest",
        lambda patch: patch.setattr("simtbed.compiled.search_cache.GAP_COST_SHARE", 0.0),
    ),
    "what is shown counts": ("mandelbrot", lambda patch: patch.setattr(correspondence, "COST_MISSING_EFFECT", 0.0)),
    "the beam is widened": ("inside_polygon", lambda patch: patch.setattr(paths, "MAX_BEAM", paths.INITIAL_BEAM)),
}
"""Conditions of a correct estimate, each with a kernel miscounted without it."""


@pytest.mark.parametrize("without", NEEDED)
def test_every_constant_is_needed(without: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, take_away = NEEDED[without]
    take_away(monkeypatch)
    assert walked(name) > 0.05


def test_a_slow_path_is_not_called_without_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its instruction cost alone."""
    whole = sass(
        "@P0 BRA 0x30", "CALL.REL.NOINC 0x50", "NOP", "STG.E [R2], R1", "EXIT", "MOV R1, R3", "RET.REL.NODEC R4 0x0"
    )

    def called() -> bool:
        launches, _ = launched(CASES["scatter"])
        nodes = ExpandedCfg(whole)
        shown = correspondence.Correspondence(LoopMatcher(whole, [(0,)] * 7, launches.statements), nodes)
        nothing = WarpTrace(np.zeros(0, np.int32), np.zeros(0, np.uint32), np.zeros(0, np.int32))
        path = paths.PathSearch(nodes, shown).find(nothing, 0)
        assert path is not None
        return any(nodes.call_stacks[node] for node in path.path)

    assert not called()
    monkeypatch.setattr(correspondence, "COST_INSTRUCTION", -1e-5)
    assert called()


def test_a_search_over_budget_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk_module, "SEARCH_BUDGET", 0)
    assert walked("tree_walk") < 0.05  # the minimal sample is used
    monkeypatch.setattr(walk_module, "HARD_SEARCH_BUDGET", 0)
    with pytest.raises(AssertionError):
        walked("bfs_step")


def test_warps_within_the_budget_represent_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of equal warps are searched first; their size does not extend to the others."""
    monkeypatch.setattr(walk_module, "SEARCH_BUDGET", 20_000_000)
    assert 0 < walked("suppress_boxes") < 0.05


def test_sampled_warps_represent_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk_module, "MAX_WARPS", 64)
    assert 0 < walked("mandelbrot") < 0.1


def test_samples_reproduce_totals(monkeypatch: pytest.MonkeyPatch) -> None:
    """For any sample size."""
    monkeypatch.setattr(walk_module, "MAX_WARPS", 16)
    assert walked("mandelbrot") < 0.02
    monkeypatch.setattr(walk_module, "calibrate", lambda weights, did, totals: weights)
    assert walked("mandelbrot") > 0.05


def test_a_function_s_loop_iterates_per_call() -> None:
    """`root` is called before and in a loop, and its loads have the line of its loop."""
    launches, profiled = launched(CASES["join_sets"])
    placed = [ran.placed for ran in profiled.sass]
    result = executions_of(placed, launches)
    loads = sum(each.lanes for each in launches.executed if each.kind == "global_load" and each.line in (4, 7))
    setup = sum(n for each, n in zip(placed, result.threads, strict=True) if "STRONG.SYS" in each.instruction.operation)
    assert setup == pytest.approx(loads)


# ------------------------------------------------------------------ synthetic listings
@st.kernel
def stopping(x: Global[i32], out: Global[i32]) -> None:
    i = st.thread.x
    total = 0
    for k in range(8):
        if x[k] == i:
            total += 100
        total += x[k]
    out[i] = total


def recorded() -> tuple[KernelLaunches, list[str]]:
    """Return a launch of `stopping` by one warp, and its printed lines."""
    launcher = RecordingLauncher("jit", st.devices.find("H200"))
    launcher.launch(stopping, grid=1, block=32, args={"x": np.arange(8, dtype=np.int32), "out": st.zeros(32, st.i32)})
    (launches,) = launcher.kernels
    return launches, [line.text if hasattr(line, "text") else str(line) for line in launches.source.lines]


def corresponded(*rows: tuple[str, str]) -> dict[int, tuple[int, int]]:
    """Return warp and thread executions by block for a listing of `stopping`."""
    launches, texts = recorded()
    lines = [next((n for n, text in enumerate(texts, 1) if part and part in text), 0) for _, part in rows]
    whole = sass(*(text for text, _ in rows))
    result = PathEstimator(
        LoopMatcher(whole, [(line,) for line in lines], launches.statements.without_inlining()), launches
    ).estimate()
    assert result is not None
    return {b: (round(result.warps[b]), round(result.threads[b])) for b in range(len(whole.blocks))}


TEST, ADD, TRAILING_RECORDS, LOOP, STORE = "== i", "+= 100", "total += x", "for (", "out["


def test_an_arm_is_executed_by_its_lanes() -> None:
    result = corresponded(
        ("MOV R1, RZ", LOOP),
        ("LDG.E R2, [R4]", TEST),
        ("BSSY B0, 0x70", TEST),
        ("@P0 BRA 0x60", TEST),
        ("VIADD R1, R1, 0x64", ADD),
        ("VIADD R7, R7, 0x64", ADD),
        ("BSYNC B0", ADD),
        ("LDG.E R3, [R4]", TRAILING_RECORDS),
        ("IADD3 R9, R9, 0x1, RZ", LOOP),
        ("ISETP.NE.AND P1, PT, R9, 0x8, PT", LOOP),
        ("@P1 BRA 0x10", LOOP),
        ("STG.E [R2], R1", STORE),
        ("EXIT", ""),
    )
    assert result == {0: (1, 32), 1: (8, 256), 2: (8, 8), 3: (16, 256), 4: (8, 256), 5: (1, 32)}


def test_an_unrolled_loop_is_walked_before_single_iterations() -> None:
    """All loads of a trip precede the arms of its iterations."""
    once = [
        ("LDG.E R2, [R4]", TEST),
        ("LDG.E R3, [R4]", TRAILING_RECORDS),
        ("@P0 BRA 0x50", TEST),
        ("VIADD R1, R1, 0x64", ADD),
        ("VIADD R9, R9, 0x1", LOOP),
        ("@P1 BRA 0x10", LOOP),
    ]
    twice = [
        ("LDG.E.64 R2, [R4]", TEST),
        ("LDG.E.64 R6, [R4]", TRAILING_RECORDS),
        ("ISETP.NE.AND P0, PT, R2, R1, PT", TEST),
        ("@P0 BRA 0xd0", TEST),
        ("VIADD R1, R1, 0x64", ADD),
        ("ISETP.NE.AND P0, PT, R3, R1, PT", TEST),
        ("@P0 BRA 0x100", TEST),
        ("VIADD R1, R1, 0x64", ADD),
        ("@P1 BRA 0x80", LOOP),
    ]
    rest = [("STG.E [R2], R1", STORE), ("EXIT", "")]
    result = corresponded(("@P2 BRA 0x70", LOOP), *once, ("MOV R8, R8", ""), *twice, *rest)
    turning = {block: threads for block, (_, threads) in result.items() if threads not in (0, 32)}
    assert 4 * 32 in turning.values() and 256 not in turning.values()


def test_a_block_that_lanes_may_pass_by_is_not_certain() -> None:
    """Once per thread, with no source statement on its line executed once."""
    launches, texts = recorded()
    more = next(n for n, text in enumerate(texts, 1) if TRAILING_RECORDS in text)
    rows = ("@P0 BRA 0x20", 0), ("IADD3 R1, R1, R2, RZ", more), *[("NOP", 0)] * 8, ("EXIT", 0)
    placed = [LocatedInstruction(Instruction(16 * n, text), line) for n, (text, line) in enumerate(rows)]
    result = executions_of(placed, launches)
    assert result.threads[1] == 32 and set(result.uncertainty) == {1}
