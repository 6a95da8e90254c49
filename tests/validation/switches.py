"""Rules of the compiled view and of the time model, each with a replacement that has no effect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Switch:
    """A rule. replaced: attributes, as "compiled.MODULE:NAME" or "model.MODULE:CLASS.NAME". value: of these without the rule."""

    rule: str
    replaced: tuple[str, ...]
    value: Any

    @property
    def counts(self) -> bool:
        """Whether the rule is of the compiled view."""
        return not any(name.startswith("model.") for name in self.replaced)


def _rule(rule: str, value: Any, *replaced: str) -> Switch:
    return Switch(rule, replaced, value)


def _always(value: Callable[[], Any]) -> Callable[..., Any]:
    """Return a function with a constant result."""
    return lambda *args, **named: value()


NOTHING, NO, ZERO, YES = _always(lambda: None), _always(lambda: False), _always(lambda: 0), _always(lambda: True)
NO_ROWS, NO_ENTRIES, NO_NAMES, NO_EDGES = _always(list), _always(dict), _always(set), _always(frozenset)
EXECUTIONS, FLOW, MATCHING, MEMORY = (f"compiled.{name}:" for name in ("executions", "flow", "matching", "memory"))
CORRESPONDENCE, ACCESSES = "compiled.correspondence:Correspondence.", "compiled.access_attribution:AccessAttribution."
STREAM, CLASSES, TIME = (f"model.{name}:" for name in ("instruction_stream", "warp_classes", "time"))
MATCHER, PROGRAM = MATCHING + "LoopMatcher.", FLOW + "_FlowProgram."


SWITCHES: tuple[Switch, ...] = (
    # estimators
    _rule("path sampling", NOTHING, EXECUTIONS + "_from_paths"),
    _rule("choice between flow and paths", YES, EXECUTIONS + "_prefers_paths"),
    # flow
    _rule("flow: matched loops", NO_ROWS, MATCHER + "loops"),
    _rule("flow: divergent branches", NOTHING, PROGRAM + "_divergence"),
    _rule("flow: statements of warps", NO_ROWS, PROGRAM + "_known_warps"),
    # control flow
    _rule("bounded remainder loops", NO_ROWS, "compiled.expanded_cfg:bounded_loops"),
    _rule("special operands", NO_EDGES, MATCHER + "special_edges"),
    _rule("slow paths of divisions", NO_ENTRIES, MATCHER + "slow_path_divisions"),
    _rule("line table of atomics", lambda placed, source: list(placed), EXECUTIONS + "with_fixed_lines"),
    _rule(
        "shared compare-and-swap loops",
        lambda instructions, *rest: (instructions, {}),
        "compiled.kernel:expand_cas_loops",
    ),
    # correspondence
    _rule("branch arms", _always(lambda: SimpleNamespace(heads={})), MATCHER + "arms"),
    _rule("loop counters", ZERO, MATCHER + "_step_copies"),
    _rule("starts of iterations", NO_ROWS, MATCHER + "_iteration_starts"),
    _rule("plain code", _always(lambda: defaultdict(dict)), CORRESPONDENCE + "_code_features"),
    _rule("iterations", _always(lambda: defaultdict(dict)), CORRESPONDENCE + "_iteration_features"),
    _rule("starts of trips", lambda self, loop, block, place: block, CORRESPONDENCE + "_trip_start"),
    _rule("slow paths as features", NO_ENTRIES, CORRESPONDENCE + "_slow_path_features"),
    _rule("loads of unrolled iterations", NOTHING, CORRESPONDENCE + "_spread_over_iterations"),
    # paths
    _rule(
        "calibrated weights", lambda self, weights, counts: weights, "compiled.path_estimator:PathEstimator._calibrate"
    ),
    _rule("confirming search", NO, "compiled.paths:PathSearch._may_improve"),
    _rule("collective instructions", NO_ROWS, "compiled.expanded_cfg:ExpandedCfg._find_convergence_points"),
    _rule("YIELD", NO, "compiled.control_flow:Graph.ends_in_yield"),
    # memory
    _rule("accesses of lanes", NOTHING, ACCESSES + "costs"),
    _rule("accesses: sampled population", _always(lambda: np.ones(3)), ACCESSES + "_population_factors"),
    _rule("accesses: arranged by address", NOTHING, "compiled.alignment:ArrangementCache.arrange"),
    _rule("memory: merged accesses", NOTHING, MEMORY + "_merge_unmatched"),
    _rule("memory: warp aggregation", NO_NAMES, MEMORY + "_aggregating_places"),
    # time model
    _rule("deferred barriers", NOTHING, STREAM + "_defer_barriers"),
    _rule("order of stores", NOTHING, STREAM + "_reorder_stores"),
    _rule(
        "instructions of common sites",
        lambda groups: ((k, s, list(at)) for (k, s), at in groups.items()),
        STREAM + "_merge_common_sites",
    ),
    _rule("register fill", _always(lambda: 0.0), STREAM + "_register_fill_cycles"),
    _rule("distinct constant addresses", _always(lambda: 1.0), STREAM + "_addresses_per_access"),
    _rule("indexed constant loads", NO, STREAM + "is_indexed_constant_load"),
    _rule("bursts of waits", _always(lambda: 0.0), STREAM + "burst_rate"),
    _rule("upper bound of waits", _always(lambda: 1.0), STREAM + "max_wait_fraction"),
    _rule("correlation of lines", _always(lambda: np.zeros(3)), STREAM + "line_correlation"),
    _rule("passes of wide products", _always(lambda: 1), STREAM + "_passes"),
    _rule("profiles by class", 1 << 60, STREAM + "_MIN_DISTINCT_LINES"),
    _rule("unpaired sectors", 0.0, STREAM + "_UNPAIRED_COST"),
    _rule("warp classes", 1, CLASSES + "CLASSES"),
    _rule("classes: preheaders", NOTHING, CLASSES + "_assign_preheaders"),
    _rule("classes: unrolled blocks", NO_ENTRIES, CLASSES + "_gate_unrolled_blocks"),
    _rule("classes: bounded loops", NO_ROWS, CLASSES + "bounded_loops"),
    _rule("classes: caps by dominators", lambda graph, mean, executed, order: executed, CLASSES + "_cap_by_dominator"),
    _rule(
        "classes: unreachable convergence",
        lambda graph: np.zeros((len(graph.blocks), len(graph.blocks) + 1), np.bool_),
        CLASSES + "unreachable_convergence",
    ),
    _rule(
        "most loaded SM",
        lambda classes, blocks, sms, resident: np.arange(-(-blocks // sms)) * sms,
        TIME + "_blocks_of_simulated_sm",
    ),
    _rule("longest warp alone", _always(lambda: 0.0), TIME + "single_warp_cycles"),
    _rule("loaded latency", 0.0, TIME + "LOADED_LATENCY_INCREASE"),
    _rule(
        "L1 capacity next to shared memory",
        lambda device, shared, resident: device.timing.l1_size,
        "model.caches:l1_bytes",
    ),
    _rule("dirty sectors of L2", 1.0, "model.caches:_MAX_DIRTY_FRACTION"),
    _rule("barrier interval", 0.0, "model.sm_simulator:_BARRIER_INTERVAL"),
)
