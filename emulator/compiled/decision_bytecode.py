"""Bytecode of a kernel's control flow, and its interpreter: replays a warp from recorded decisions.

A step has STEP_WORDS words: opcode, site of its decision, jump target without active lanes, and event indices. The mask
of active lanes is the state; branches, loops and inlined calls save masks on a stack.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import language as st
from ..ir import nodes as ir
from ..language.hints import Global, i32, i64, u32
from ..native import native
from ..passes.decisions import MAX_ATOMS
from ..passes.slow_paths import MAX_SLOW_PATHS
from .source_statements import ListKind

STEP_WORDS = 3 + MAX_SLOW_PATHS + 1
"""Words of a step; its events are emitted in their order."""
PLAIN, RETURN, BREAK, CONTINUE, IF, LOOP, SLOW_PATHS, BEGIN_FRAME, ELSE, END_IF, TEST, NEXT_ITERATION, END_FRAME = (
    range(13)
)
"""Opcodes. IF to SLOW_PATHS read a decision; ELSE and later ones execute without active lanes too."""
OUT_OF_SPACE, LANES_DIFFER, SUMMARIZED, TRAILING_RECORDS = -1, -2, -3, -4
"""Errors: the event buffer is full; no decision is recorded for these lanes; only a summary is recorded; decisions are
left over."""
_ARM_EVENTS, _SLOW_PATH_EVENTS, _CONDITION_EVENTS = 1 << 24, 1 << 26, 1 << 28
_MAX_EVENTS_PER_STEP = 3 + 32
"""Events of a step, at most: a branch emits one for each lane's condition code."""
_LOOP_STACK_WORDS, _FRAME_STACK_WORDS = 7, 3
"""Stack words of a loop and of an inlined call."""


def arm_event(site: int, arm: ListKind) -> int:
    """Return the name of the event "lanes enter this arm of the branch"."""
    return _ARM_EVENTS + 2 * site + (arm == "else")


def condition_event(site: int, code: int) -> int:
    """Return the name of the event "the conditions of this branch have these truth values" (code: a bit each)."""
    return _CONDITION_EVENTS + (site << MAX_ATOMS) + code


def slow_path_event(site: int, number: int) -> int:
    """Return the name of the event "lanes take the slow path of this division of the statement"."""
    return _SLOW_PATH_EVENTS + MAX_SLOW_PATHS * site + number


class DecisionProgram:
    """Control flow of a kernel as bytecode. steps: int32[n * STEP_WORDS]. names: int32[m], event names. depth: maximal
    stack size."""

    def __init__(self, body: ir.Body, events: Sequence[int], with_slow_paths: frozenset[int]) -> None:
        """events: names to emit. with_slow_paths: statements with recorded slow-path decisions."""
        self._numbers = {name: number for number, name in enumerate(events)}
        self._with_slow_paths, self._steps, self._depth = with_slow_paths, list[list[int]](), 0
        self.names = np.array(events, np.int32)
        self.depth = 0
        self._body(body)
        self.steps = np.array([number for step in self._steps for number in step] or [0], np.int32)
        self.sites = max((step[1] for step in self._steps), default=-1) + 1

    def __len__(self) -> int:
        return len(self._steps)

    def _step(self, kind: int, site: int = -1, *events: int) -> list[int]:
        words = [kind, site, -1, *(self._numbers.get(name, -1) for name in events)]
        self._steps.append(words + [-1] * (STEP_WORDS - len(words)))
        return self._steps[-1]

    def _nested(self, numbers: int, *bodies: ir.Body) -> None:
        """Append bodies, executed with so many additional words on the stack."""
        self._depth += numbers
        self.depth = max(self.depth, self._depth)
        for body in bodies:
            self._body(body)
        self._depth -= numbers

    def _body(self, body: ir.Body) -> None:
        for stmt in body:
            match stmt:
                case ir.If():
                    arms = arm_event(stmt.site, "then"), arm_event(stmt.site, "else")
                    step = self._step(IF, stmt.site, stmt.site, *arms, condition_event(stmt.site, 0))
                    self._nested(1, stmt.then)
                    self._step(ELSE)
                    self._nested(1, stmt.orelse)
                    self._step(END_IF)
                case ir.While() | ir.For():
                    step = self._step(LOOP, stmt.site)
                    first = len(self)
                    self._nested(_LOOP_STACK_WORDS, stmt.setup if isinstance(stmt, ir.While) else ())
                    self._step(TEST, stmt.site, stmt.site, -1 - stmt.site)
                    self._nested(_LOOP_STACK_WORDS, stmt.body)
                    self._step(NEXT_ITERATION)[2] = first
                case ir.Frame():
                    step = self._step(BEGIN_FRAME)
                    self._nested(_FRAME_STACK_WORDS, stmt.body)
                    self._step(END_FRAME)
                case ir.Return():
                    step = self._step(RETURN, stmt.site, stmt.site)
                case ir.Break():
                    step = self._step(BREAK, stmt.site, stmt.site)
                case ir.Continue():
                    step = self._step(CONTINUE, stmt.site, stmt.site)
                case _ if stmt.site in self._with_slow_paths:
                    step = self._step(
                        SLOW_PATHS,
                        stmt.site,
                        *(slow_path_event(stmt.site, n) for n in range(MAX_SLOW_PATHS)),
                        stmt.site,
                    )
                case _:
                    step = self._step(PLAIN, stmt.site, stmt.site)
            step[2] = len(self)


@st.device
def _matching_pattern(
    runs: Global[i32],
    position: Global[i64],
    remaining: Global[i32],
    masks: Global[u32],
    site: i64,
    past: i64,
    lanes: i64,
) -> i64:
    """Consume the next decision of a site; return its pattern, or an error if its lanes differ.

    at, remaining: by site, the current run and its remaining executions.
    """
    n = position[site]
    if n >= past or i64(runs[3 * n]) != site:
        return i64(LANES_DIFFER)
    pattern = i64(runs[3 * n + 1])
    if pattern < 0:
        return i64(SUMMARIZED)
    if i64(masks[pattern]) != lanes:
        return i64(LANES_DIFFER)
    remaining[site] -= 1
    if remaining[site] == 0:
        position[site] = n + 1
        remaining[site] = runs[3 * n + 5] if n + 1 < past else i32(0)
    return pattern


@st.device
def _lanes_with_bit(values: Global[i32], pattern: i64, bit: i64) -> i64:
    """Return the mask of lanes with a bit set in their values."""
    result = i64(0)
    for lane in range(i64(32)):
        result |= (i64(values[32 * pattern + lane]) >> bit & 1) << lane
    return result


@st.device
def _lanes_above(values: Global[i32], pattern: i64, bound: i64) -> i64:
    """Return the mask of lanes with values above a bound."""
    result = i64(0)
    for lane in range(i64(32)):
        result |= i64(i64(values[32 * pattern + lane]) > bound) << lane
    return result


@native
def replay_steps(
    steps: Global[i32], count: i64, masks: Global[u32], values: Global[i32], runs: Global[i32], first: i64, past: i64,
    entry_mask: i64, sites: i64, position: Global[i64], remaining: Global[i32], stack: Global[i64], events: Global[i32],
    lanes: Global[u32], capacity: i64,
    failed: Global[i64],
) -> i64:  # fmt: skip
    """Replay a warp; return the number of events, or an error with its site in `failed`.

    Writes event indices to `events` and masks to `lanes`. masks, values: uint32[n], int32[n, 32], of patterns. runs:
    int32[m, 3], site, pattern, executions; those of the warp in [first, past), by site. at, remaining, stack: buffers,
    int64[sites], int32[sites], int64[depth].
    """
    for site in range(sites):
        position[site] = past
    for n in range(past - 1, first - 1, -1):
        position[i64(runs[3 * n])] = n
        remaining[i64(runs[3 * n])] = runs[3 * n + 2]
    mask, returned, broken, continued = entry_mask, i64(0), i64(0), i64(0)
    top, n, pc = i64(0), i64(0), i64(0)
    while pc < count:
        step = STEP_WORDS * pc
        kind, site = i64(steps[step]), i64(steps[step + 1])
        pc += 1
        if n + _MAX_EVENTS_PER_STEP > capacity:
            return i64(OUT_OF_SPACE)
        if kind == ELSE:
            other = stack[top - 1]
            stack[top - 1] = mask
            mask = other
        elif kind == END_IF:
            top -= 1
            mask |= stack[top]
        elif kind == TEST:
            mask = stack[top - 1]
            continuing = i64(0)
            if mask != 0:
                if steps[step + 3] >= 0:
                    events[n] = steps[step + 3]
                    lanes[n] = u32(mask)
                    n += 1
                continuing = _lanes_above(values, stack[top - 2], stack[top - 4]) & mask
                stack[top - 3] |= mask & ~continuing
                if continuing != 0 and steps[step + 4] >= 0:
                    events[n] = steps[step + 4]
                    lanes[n] = u32(continuing)
                    n += 1
            continued = i64(0)
            mask = continuing
        elif kind == NEXT_ITERATION:
            mask |= continued
            stack[top - 4] += 1
            stack[top - 1] = mask
            if mask != 0:
                pc = i64(steps[step + 2])
            else:
                mask = (stack[top - 3] | broken) & stack[top - 5]
                continued = stack[top - 6]
                broken = stack[top - 7]
                top -= 7
        elif kind == END_FRAME:
            mask |= returned
            continued = stack[top - 1]
            broken = stack[top - 2]
            returned = stack[top - 3]
            top -= 3
        elif mask == 0:
            pc = i64(steps[step + 2])
        elif kind == BEGIN_FRAME:
            stack[top] = returned
            stack[top + 1] = broken
            stack[top + 2] = continued
            top += 3
            returned = i64(0)
        elif IF <= kind <= SLOW_PATHS:
            if kind == IF and steps[step + 3] >= 0:
                events[n] = steps[step + 3]
                lanes[n] = u32(mask)
                n += 1
            pattern = _matching_pattern(runs, position, remaining, masks, site, past, mask)
            if pattern < 0:
                failed[0] = site
                return pattern
            if kind == IF:
                true_lanes = _lanes_with_bit(values, pattern, 0) & mask
                untagged = mask
                while steps[step + 6] >= 0 and untagged != 0:
                    code, same_code = i64(values[32 * pattern + i64(st.ffs(untagged)) - 1]) >> 1, i64(0)
                    for lane in range(i64(32)):
                        if (untagged >> lane & 1) != 0 and i64(values[32 * pattern + lane]) >> 1 == code:
                            same_code |= i64(1) << lane
                    events[n] = steps[step + 6] + i32(code)
                    lanes[n] = u32(same_code)
                    n += 1
                    untagged &= ~same_code
                if true_lanes != 0 and steps[step + 4] >= 0:
                    events[n] = steps[step + 4]
                    lanes[n] = u32(true_lanes)
                    n += 1
                if true_lanes != mask and steps[step + 5] >= 0:
                    events[n] = steps[step + 5]
                    lanes[n] = u32(mask & ~true_lanes)
                    n += 1
                stack[top] = mask & ~true_lanes
                top += 1
                mask = true_lanes
            elif kind == LOOP:
                stack[top] = broken
                stack[top + 1] = continued
                stack[top + 2] = mask
                stack[top + 3] = i64(0)
                stack[top + 4] = i64(0)
                stack[top + 5] = pattern
                stack[top + 6] = mask
                top += 7
                broken = i64(0)
            else:
                for k in range(i64(MAX_SLOW_PATHS + 1)):
                    slow_lanes = mask
                    if k < MAX_SLOW_PATHS:
                        slow_lanes = _lanes_with_bit(values, pattern, k) & mask
                    if slow_lanes != 0 and steps[step + 3 + k] >= 0:
                        events[n] = steps[step + 3 + k]
                        lanes[n] = u32(slow_lanes)
                        n += 1
        else:
            if steps[step + 3] >= 0:
                events[n] = steps[step + 3]
                lanes[n] = u32(mask)
                n += 1
            if kind == RETURN:
                returned |= mask
            elif kind == BREAK:
                broken |= mask
            elif kind == CONTINUE:
                continued |= mask
            if kind != PLAIN:
                mask = i64(0)
    for site in range(sites):
        if position[site] < past and i64(runs[3 * position[site]]) == site:
            return i64(TRAILING_RECORDS)
    return n


@native
def hash_lanes(events: Global[i32], lanes: Global[u32], count: i64, of_lane: Global[i64]) -> None:
    """Compute a 64-bit hash of each lane's event sequence."""
    for lane in range(i64(32)):
        hash = i64(0)
        for n in range(count):
            if (i64(lanes[n]) >> lane & 1) != 0:
                hash = (hash ^ (hash >> 31) ^ (i64(events[n]) + 1)) * -0x61C8864680B583EB
        of_lane[lane] = hash
