"""Bytecode of a kernel's control flow, and its interpreter: replays a warp from recorded decisions.

A step has STEP_WORDS words: opcode, site of its decision, jump target without active lanes, and event indices. The mask
of active lanes is the state; branches, loops and inlined calls save masks on a stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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


class Recorded(NamedTuple):
    """Recorded decisions. masks, values: uint32[n], int32[n, 32], of patterns. runs: int32[m, 3], site, pattern,
    executions; those of a warp by site."""

    masks: Global[u32]
    values: Global[i32]
    runs: Global[i32]


class ReplayBuffers(NamedTuple):
    """State of a replay. position, remaining: by site, its run and the remaining executions of that. registers: see
    REGISTERS. events, lanes: event indices and masks, with space for `capacity`."""

    position: Global[i64]
    remaining: Global[i32]
    stack: Global[i64]
    registers: Global[i64]
    events: Global[i32]
    lanes: Global[u32]
    capacity: i64


REGISTERS = _MASK, _RETURNED, _BROKEN, _CONTINUED, _TOP, _LENGTH, _PC, FAILED_SITE = range(8)
"""Masks of active lanes, and of those that have executed return, break and continue; height of the stack; events so far;
next step; site of an error."""


@st.device
def _start(recorded: Recorded, b: ReplayBuffers, first: i64, past: i64, mask: i64, sites: i64) -> None:
    """Reset the state to the decisions [first, past) of a warp."""
    for site in range(sites):
        b.position[site] = past
    for n in range(past - 1, first - 1, -1):
        b.position[i64(recorded.runs[3 * n])] = n
        b.remaining[i64(recorded.runs[3 * n])] = recorded.runs[3 * n + 2]
    for n in range(i64(FAILED_SITE + 1)):
        b.registers[n] = i64(0)
    b.registers[_MASK] = mask


@st.device
def _next_pattern(recorded: Recorded, b: ReplayBuffers, site: i64, past: i64) -> i64:
    """Consume the next decision of a site; return its pattern, or an error if its lanes differ."""
    n = b.position[site]
    if n >= past or i64(recorded.runs[3 * n]) != site:
        return i64(LANES_DIFFER)
    pattern = i64(recorded.runs[3 * n + 1])
    if pattern < 0:
        return i64(SUMMARIZED)
    if i64(recorded.masks[pattern]) != b.registers[_MASK]:
        return i64(LANES_DIFFER)
    b.remaining[site] -= 1
    if b.remaining[site] == 0:
        b.position[site] = n + 1
        b.remaining[site] = recorded.runs[3 * n + 5] if n + 1 < past else i32(0)
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


@st.device
def _emit(b: ReplayBuffers, event: i32, mask: i64) -> None:
    """Append an event of lanes. Negative events are not recorded; events without lanes do not occur."""
    if event >= 0 and mask != 0:
        b.events[b.registers[_LENGTH]] = event
        b.lanes[b.registers[_LENGTH]] = u32(mask)
        b.registers[_LENGTH] += 1


@st.device
def _push(b: ReplayBuffers, value: i64) -> None:
    b.stack[b.registers[_TOP]] = value
    b.registers[_TOP] += 1


@st.device
def _pop(b: ReplayBuffers) -> i64:
    b.registers[_TOP] -= 1
    return b.stack[b.registers[_TOP]]


@st.device
def _emit_conditions(values: Global[i32], b: ReplayBuffers, first_code: i32, pattern: i64) -> None:
    """Append the events of the lanes' condition codes."""
    remaining = b.registers[_MASK]
    while first_code >= 0 and remaining != 0:
        code, same_code = i64(values[32 * pattern + i64(st.ffs(remaining)) - 1]) >> 1, i64(0)
        for lane in range(i64(32)):
            if (remaining >> lane & 1) != 0 and i64(values[32 * pattern + lane]) >> 1 == code:
                same_code |= i64(1) << lane
        _emit(b, first_code + i32(code), same_code)
        remaining &= ~same_code


@st.device
def _decide(steps: Global[i32], recorded: Recorded, b: ReplayBuffers, step: i64, pattern: i64) -> None:
    """Execute a step with a decision."""
    kind, mask = i64(steps[step]), b.registers[_MASK]
    if kind == IF:
        true_lanes = _lanes_with_bit(recorded.values, pattern, 0) & mask
        _emit_conditions(recorded.values, b, steps[step + 6], pattern)
        _emit(b, steps[step + 4], true_lanes)
        _emit(b, steps[step + 5], mask & ~true_lanes)
        _push(b, mask & ~true_lanes)
        b.registers[_MASK] = true_lanes
    elif kind == LOOP:
        _push(b, b.registers[_BROKEN])
        _push(b, b.registers[_CONTINUED])
        _push(b, mask)
        _push(b, i64(0))
        _push(b, i64(0))
        _push(b, pattern)
        _push(b, mask)
        b.registers[_BROKEN] = i64(0)
    else:
        for k in range(i64(MAX_SLOW_PATHS)):
            _emit(b, steps[step + 3 + k], _lanes_with_bit(recorded.values, pattern, k) & mask)
        _emit(b, steps[step + 3 + MAX_SLOW_PATHS], mask)


@st.device
def _test_loop(steps: Global[i32], values: Global[i32], b: ReplayBuffers, step: i64) -> None:
    """Execute the test of a loop: lanes continue while their iterations are below their recorded number."""
    top = b.registers[_TOP]
    mask, continuing = b.stack[top - 1], i64(0)
    if mask != 0:
        _emit(b, steps[step + 3], mask)
        continuing = _lanes_above(values, b.stack[top - 2], b.stack[top - 4]) & mask
        b.stack[top - 3] |= mask & ~continuing
        _emit(b, steps[step + 4], continuing)
    b.registers[_CONTINUED] = i64(0)
    b.registers[_MASK] = continuing


@st.device
def _end_iteration(steps: Global[i32], b: ReplayBuffers, step: i64) -> None:
    """End an iteration: jump to the next one, or leave the loop."""
    top = b.registers[_TOP]
    b.registers[_MASK] |= b.registers[_CONTINUED]
    b.stack[top - 4] += 1
    b.stack[top - 1] = b.registers[_MASK]
    if b.registers[_MASK] != 0:
        b.registers[_PC] = i64(steps[step + 2])
    else:
        b.registers[_MASK] = (b.stack[top - 3] | b.registers[_BROKEN]) & b.stack[top - 5]
        b.registers[_CONTINUED] = b.stack[top - 6]
        b.registers[_BROKEN] = b.stack[top - 7]
        b.registers[_TOP] -= _LOOP_STACK_WORDS


@st.device
def _rejoin(steps: Global[i32], values: Global[i32], b: ReplayBuffers, step: i64) -> None:
    """Execute a step that restores lanes."""
    kind = i64(steps[step])
    if kind == ELSE:
        other = _pop(b)
        _push(b, b.registers[_MASK])
        b.registers[_MASK] = other
    elif kind == END_IF:
        b.registers[_MASK] |= _pop(b)
    elif kind == TEST:
        _test_loop(steps, values, b, step)
    elif kind == NEXT_ITERATION:
        _end_iteration(steps, b, step)
    else:
        b.registers[_MASK] |= b.registers[_RETURNED]
        b.registers[_CONTINUED] = _pop(b)
        b.registers[_BROKEN] = _pop(b)
        b.registers[_RETURNED] = _pop(b)


@st.device
def _execute(steps: Global[i32], b: ReplayBuffers, step: i64) -> None:
    """Execute a step without a decision."""
    kind, mask = i64(steps[step]), b.registers[_MASK]
    if kind == BEGIN_FRAME:
        _push(b, b.registers[_RETURNED])
        _push(b, b.registers[_BROKEN])
        _push(b, b.registers[_CONTINUED])
        b.registers[_RETURNED] = i64(0)
    else:
        _emit(b, steps[step + 3], mask)
        if kind == RETURN:
            b.registers[_RETURNED] |= mask
        elif kind == BREAK:
            b.registers[_BROKEN] |= mask
        elif kind == CONTINUE:
            b.registers[_CONTINUED] |= mask
        if kind != PLAIN:
            b.registers[_MASK] = i64(0)


@native
def replay_steps(
    steps: Global[i32], count: i64, sites: i64, recorded: Recorded, first: i64, past: i64, mask: i64, b: ReplayBuffers
) -> i64:
    """Replay a warp with decisions [first, past); return the number of events, or an error. mask: its lanes."""
    _start(recorded, b, first, past, mask, sites)
    while b.registers[_PC] < count:
        step = STEP_WORDS * b.registers[_PC]
        kind, site = i64(steps[step]), i64(steps[step + 1])
        b.registers[_PC] += 1
        if b.registers[_LENGTH] + _MAX_EVENTS_PER_STEP > b.capacity:
            return i64(OUT_OF_SPACE)
        if kind >= ELSE:
            _rejoin(steps, recorded.values, b, step)
        elif b.registers[_MASK] == 0:
            b.registers[_PC] = i64(steps[step + 2])
        elif IF <= kind <= SLOW_PATHS:
            if kind == IF:
                _emit(b, steps[step + 3], b.registers[_MASK])
            pattern = _next_pattern(recorded, b, site, past)
            if pattern < 0:
                b.registers[FAILED_SITE] = site
                return pattern
            _decide(steps, recorded, b, step, pattern)
        else:
            _execute(steps, b, step)
    for site in range(sites):
        if b.position[site] < past and i64(recorded.runs[3 * b.position[site]]) == site:
            return i64(TRAILING_RECORDS)
    return b.registers[_LENGTH]


@native
def hash_lanes(events: Global[i32], lanes: Global[u32], count: i64, of_lane: Global[i64]) -> None:
    """Compute a 64-bit hash of each lane's event sequence."""
    for lane in range(i64(32)):
        hash = i64(0)
        for n in range(count):
            if (i64(lanes[n]) >> lane & 1) != 0:
                hash = (hash ^ (hash >> 31) ^ (i64(events[n]) + 1)) * -0x61C8864680B583EB
        of_lane[lane] = hash
