"""A kernel's statements in a row of numbers, and the compiled loop that goes through them as a warp did.

Each step is STEP numbers: what it is, the site whose decision it takes, where it goes on if no lane is left, and the numbers of
what it tells. A mask of lanes goes from step to step; what a branch, a loop or an inlined call puts aside lies on a stack.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import language as st
from ..ir import nodes as ir
from ..language.hints import Global, i32, i64, u32
from ..native import native
from ..passes.decisions import LEAVES
from ..passes.slow_paths import MOST
from .source_statements import ListKind

STEP = 3 + MOST + 1
"""Numbers of a step; what it tells is told in their order."""
PLAIN, RETURN, BREAK, CONTINUE, IF, LOOP, DIVIDED, FRAME, ELSE, END_IF, TEST, AGAIN, END_FRAME = range(13)
"""What a step is: from IF to DIVIDED it takes a decision; from ELSE on it is made though no lane is left."""
ROOM, UNLIKE, TOGETHER, MORE = -1, -2, -3, -4
"""Why a warp was not told: there is no room for what it did; its lanes' decision was not recorded; it was counted together with
others; more is recorded than was executed."""
_DECIDED, _SLOW, _CODED = 1 << 24, 1 << 26, 1 << 28
_TOLD = 3 + 32
"""Things that a step may tell: of a branch, of each lane what its conditions were."""
_OF_LOOP, _OF_FRAME = 7, 3
"""Numbers that these put on the stack."""


def decided(site: int, arm: ListKind) -> int:
    """What is told, as if it were a site, of lanes that take an arm of a branch."""
    return _DECIDED + 2 * site + (arm == "else")


def coded(site: int, code: int) -> int:
    """What is told of lanes for which those of a branch's conditions held that the bits of a code say."""
    return _CODED + (site << LEAVES) + code


def slow(site: int, number: int) -> int:
    """What is told of lanes that take the slow path of a division of a statement, by its number there."""
    return _SLOW + MOST * site + number


class DecisionProgram:
    """steps: int32[n], STEP of each. names: int32[m], what is told by its number. depth: numbers that may lie on the stack."""

    def __init__(self, body: ir.Body, wanted: Sequence[int], divided: frozenset[int]) -> None:
        """wanted: what is told; nothing of the others is. divided: statements that have slow paths, with a record of them."""
        self._numbers = {name: number for number, name in enumerate(wanted)}
        self._divided, self._steps, self._depth = divided, list[list[int]](), 0
        self.names = np.array(wanted, np.int32)
        self.depth = 0
        self._body(body)
        self.steps = np.array([number for step in self._steps for number in step] or [0], np.int32)
        self.sites = max((step[1] for step in self._steps), default=-1) + 1

    def __len__(self) -> int:
        return len(self._steps)

    def _step(self, kind: int, site: int = -1, *told: int) -> list[int]:
        found = [kind, site, -1, *(self._numbers.get(name, -1) for name in told)]
        self._steps.append(found + [-1] * (STEP - len(found)))
        return self._steps[-1]

    def _aside(self, numbers: int, *bodies: ir.Body) -> None:
        """Bodies that are gone through while so many numbers lie on the stack."""
        self._depth += numbers
        self.depth = max(self.depth, self._depth)
        for body in bodies:
            self._body(body)
        self._depth -= numbers

    def _body(self, body: ir.Body) -> None:
        for stmt in body:
            match stmt:
                case ir.If():
                    arms = decided(stmt.site, "then"), decided(stmt.site, "else")
                    step = self._step(IF, stmt.site, stmt.site, *arms, coded(stmt.site, 0))
                    self._aside(1, stmt.then)
                    self._step(ELSE)
                    self._aside(1, stmt.orelse)
                    self._step(END_IF)
                case ir.While() | ir.For():
                    step = self._step(LOOP, stmt.site)
                    first = len(self)
                    self._aside(_OF_LOOP, stmt.setup if isinstance(stmt, ir.While) else ())
                    self._step(TEST, stmt.site, stmt.site, -1 - stmt.site)
                    self._aside(_OF_LOOP, stmt.body)
                    self._step(AGAIN)[2] = first
                case ir.Frame():
                    step = self._step(FRAME)
                    self._aside(_OF_FRAME, stmt.body)
                    self._step(END_FRAME)
                case ir.Return():
                    step = self._step(RETURN, stmt.site, stmt.site)
                case ir.Break():
                    step = self._step(BREAK, stmt.site, stmt.site)
                case ir.Continue():
                    step = self._step(CONTINUE, stmt.site, stmt.site)
                case _ if stmt.site in self._divided:
                    step = self._step(DIVIDED, stmt.site, *(slow(stmt.site, n) for n in range(MOST)), stmt.site)
                case _:
                    step = self._step(PLAIN, stmt.site, stmt.site)
            step[2] = len(self)


@st.device
def _taken(
    runs: Global[i32], at: Global[i64], left: Global[i32], masks: Global[u32], site: i64, past: i64, lanes: i64
) -> i64:
    """The pattern that lanes decided by when they came to a site, or why there is none. at, left: where each site is among the
    warp's runs, and executions that are left of that run."""
    n = at[site]
    if n >= past or i64(runs[3 * n]) != site:
        return i64(UNLIKE)
    pattern = i64(runs[3 * n + 1])
    if pattern < 0:
        return i64(TOGETHER)
    if i64(masks[pattern]) != lanes:
        return i64(UNLIKE)
    left[site] -= 1
    if left[site] == 0:
        at[site] = n + 1
        left[site] = runs[3 * n + 5] if n + 1 < past else i32(0)
    return pattern


@st.device
def _bits(values: Global[i32], pattern: i64, bit: i64) -> i64:
    """The lanes of whose values a bit is set."""
    found = i64(0)
    for lane in range(i64(32)):
        found |= (i64(values[32 * pattern + lane]) >> bit & 1) << lane
    return found


@st.device
def _above(values: Global[i32], pattern: i64, least: i64) -> i64:
    """The lanes whose values are greater."""
    found = i64(0)
    for lane in range(i64(32)):
        found |= i64(i64(values[32 * pattern + lane]) > least) << lane
    return found


@native
def tell(
    steps: Global[i32], count: i64, masks: Global[u32], values: Global[i32], runs: Global[i32], first: i64, past: i64,
    entered: i64, sites: i64, at: Global[i64], left: Global[i32], stack: Global[i64], told: Global[i32], lanes: Global[u32], room: i64,
    failed: Global[i64],
) -> i64:  # fmt: skip
    """How many things a warp did, told by number in `told`, its lanes a bit each in `lanes`; or why not, the site in `failed`.

    masks, values: uint32[n], int32[n, 32], of patterns. runs: int32[m, 3], site, pattern and executions; from `first` on those of
    the warp, by site. at, left, stack: int64[sites], int32[sites], int64[depth], to work with.
    """
    for site in range(sites):
        at[site] = past
    for n in range(past - 1, first - 1, -1):
        at[i64(runs[3 * n])] = n
        left[i64(runs[3 * n])] = runs[3 * n + 2]
    mask, gone, broken, continued = entered, i64(0), i64(0), i64(0)
    top, n, pc = i64(0), i64(0), i64(0)
    while pc < count:
        step = STEP * pc
        kind, site = i64(steps[step]), i64(steps[step + 1])
        pc += 1
        if n + _TOLD > room:
            return i64(ROOM)
        if kind == ELSE:
            other = stack[top - 1]
            stack[top - 1] = mask
            mask = other
        elif kind == END_IF:
            top -= 1
            mask |= stack[top]
        elif kind == TEST:
            mask = stack[top - 1]
            going = i64(0)
            if mask != 0:
                if steps[step + 3] >= 0:
                    told[n] = steps[step + 3]
                    lanes[n] = u32(mask)
                    n += 1
                going = _above(values, stack[top - 2], stack[top - 4]) & mask
                stack[top - 3] |= mask & ~going
                if going != 0 and steps[step + 4] >= 0:
                    told[n] = steps[step + 4]
                    lanes[n] = u32(going)
                    n += 1
            continued = i64(0)
            mask = going
        elif kind == AGAIN:
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
            mask |= gone
            continued = stack[top - 1]
            broken = stack[top - 2]
            gone = stack[top - 3]
            top -= 3
        elif mask == 0:
            pc = i64(steps[step + 2])
        elif kind == FRAME:
            stack[top] = gone
            stack[top + 1] = broken
            stack[top + 2] = continued
            top += 3
            gone = i64(0)
        elif IF <= kind <= DIVIDED:
            if kind == IF and steps[step + 3] >= 0:
                told[n] = steps[step + 3]
                lanes[n] = u32(mask)
                n += 1
            pattern = _taken(runs, at, left, masks, site, past, mask)
            if pattern < 0:
                failed[0] = site
                return pattern
            if kind == IF:
                held = _bits(values, pattern, 0) & mask
                rest = mask
                while steps[step + 6] >= 0 and rest != 0:
                    code, alike = i64(values[32 * pattern + i64(st.ffs(rest)) - 1]) >> 1, i64(0)
                    for lane in range(i64(32)):
                        if (rest >> lane & 1) != 0 and i64(values[32 * pattern + lane]) >> 1 == code:
                            alike |= i64(1) << lane
                    told[n] = steps[step + 6] + i32(code)
                    lanes[n] = u32(alike)
                    n += 1
                    rest &= ~alike
                if held != 0 and steps[step + 4] >= 0:
                    told[n] = steps[step + 4]
                    lanes[n] = u32(held)
                    n += 1
                if held != mask and steps[step + 5] >= 0:
                    told[n] = steps[step + 5]
                    lanes[n] = u32(mask & ~held)
                    n += 1
                stack[top] = mask & ~held
                top += 1
                mask = held
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
                for k in range(i64(MOST + 1)):
                    which = mask
                    if k < MOST:
                        which = _bits(values, pattern, k) & mask
                    if which != 0 and steps[step + 3 + k] >= 0:
                        told[n] = steps[step + 3 + k]
                        lanes[n] = u32(which)
                        n += 1
        else:
            if steps[step + 3] >= 0:
                told[n] = steps[step + 3]
                lanes[n] = u32(mask)
                n += 1
            if kind == RETURN:
                gone |= mask
            elif kind == BREAK:
                broken |= mask
            elif kind == CONTINUE:
                continued |= mask
            if kind != PLAIN:
                mask = i64(0)
    for site in range(sites):
        if at[site] < past and i64(runs[3 * at[site]]) == site:
            return i64(MORE)
    return n


@native
def hashes(told: Global[i32], lanes: Global[u32], count: i64, of_lane: Global[i64]) -> None:
    """Of each lane a number of all it did: equal for equal, and for others only by chance, one in 2^64."""
    for lane in range(i64(32)):
        hash = i64(0)
        for n in range(count):
            if (i64(lanes[n]) >> lane & 1) != 0:
                hash = (hash ^ (hash >> 31) ^ (i64(told[n]) + 1)) * -0x61C8864680B583EB
        of_lane[lane] = hash
