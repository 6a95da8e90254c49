"""The ways of the lanes of a warp through the source, told again from what the emulator recorded of its decisions.

A warp's executions of a branch or loop stand in the order in which it made them, each with the lanes that came there and
what they decided. So its statements follow, one after the other, with the lanes that execute them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..ir import nodes as ir
from ..ir.walk import statements
from ..passes.slow_paths import MOST, slow_paths
from ..profiler.decisions import Decisions
from .source import Arm


class Pattern:
    """mask: lanes that came to a branch or loop, a bit each. values: what each of the 32 decided."""

    def __init__(self, mask: int, values: tuple[int, ...]) -> None:
        self.mask, self.values = mask, values
        self._bits: dict[int, int] = {}
        self._above: dict[int, int] = {}

    def bits(self, number: int) -> int:
        """The lanes of whose values a bit is set."""
        if number not in self._bits:
            self._bits[number] = _lanes(value >> number & 1 for value in self.values)
        return self._bits[number]

    def above(self, least: int) -> int:
        """The lanes whose values are greater."""
        if least not in self._above:
            self._above[least] = _lanes(value > least for value in self.values)
        return self._above[least]


WarpName = tuple[int, int, int]
"""Launch, block, warp."""


_DECIDED, _SLOW = 1 << 24, 1 << 26


def decided(site: int, arm: Arm) -> int:
    """What is told, as if it were a site, of lanes that take an arm of a branch."""
    return _DECIDED + 2 * site + (arm == "else")


def slow(site: int, number: int) -> int:
    """What is told of lanes that take the slow path of a division of a statement, by its number there."""
    return _SLOW + MOST * site + number


class Lost(Exception):
    """What was recorded of a warp is not whole."""


@dataclass(frozen=True)
class Steps:
    """What a warp executed. sites: of one statement after the other, int32[n]. masks: its lanes, a bit each, uint32[n]."""

    sites: npt.NDArray[np.int32]
    masks: npt.NDArray[np.uint32]

    def groups(self) -> Iterator[tuple[int, npt.NDArray[np.bool_]]]:
        """Lanes that executed the same steps, a bit each, and which these are: bool[n]."""
        executed = ((self.masks[:, None] >> np.arange(32, dtype=np.uint32)) & 1).astype(np.bool_)
        columns = np.packbits(executed, axis=0)
        groups: dict[bytes, int] = defaultdict(int)
        for lane in range(32):
            groups[columns[:, lane].tobytes()] |= 1 << lane
        yield from ((mask, executed[:, (mask & -mask).bit_length() - 1]) for mask in groups.values())

    def lanes(self) -> dict[bytes, int]:
        """Lanes by what they executed: the sites as bytes, and the lanes that executed just these, a bit each."""
        found: dict[bytes, int] = defaultdict(int)
        for mask, executed in self.groups():
            found[self.sites[executed].tobytes()] |= mask  # others may have executed them at other steps
        return found


class Replay:
    """The statements of a kernel's warps, told again. wanted: sites that are told; the others are left out."""

    def __init__(self, body: ir.Body, decisions: Decisions, wanted: frozenset[int]) -> None:
        self.body, self.wanted = body, wanted
        self.divided = frozenset(stmt.site for stmt in statements(body) if slow_paths(stmt)) & decisions.sites.keys()
        self.runs: dict[WarpName, dict[int, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
        self.patterns: dict[int, list[Pattern]] = {}
        for site, found in decisions.sites.items():
            masks, values = found.patterns["mask"].tolist(), found.patterns["value"].tolist()
            self.patterns[site] = [Pattern(mask, tuple(value)) for mask, value in zip(masks, values, strict=True)]
            runs = found.runs
            names = zip(runs["launch"].tolist(), runs["block"].tolist(), runs["warp"].tolist(), strict=True)
            for name, pattern, count in zip(names, runs["pattern"].tolist(), runs["count"].tolist(), strict=True):
                self.runs[name][site].append((pattern, count))

    def decided(self, warp: WarpName) -> frozenset[tuple[int, tuple[tuple[int, int], ...]]]:
        """All that was recorded of a warp: of two that decided alike it is the same."""
        return frozenset((site, tuple(runs)) for site, runs in self.runs.get(warp, {}).items())

    def steps(self, warp: WarpName, lanes: int) -> Steps:
        """What a warp executed whose first lanes entered the kernel. Raises Lost where its record is not whole."""
        teller = _Teller(self.wanted, self.divided, self.patterns, self.runs.get(warp, {}))
        teller.kernel(self.body, (1 << lanes) - 1)
        return Steps(np.array(teller.sites, np.int32), np.array(teller.masks, np.uint32))


class _Teller:
    """Tells one warp."""

    def __init__(
        self,
        wanted: frozenset[int],
        divided: frozenset[int],
        patterns: Mapping[int, list[Pattern]],
        runs: Mapping[int, list[tuple[int, int]]],
    ) -> None:
        self.wanted, self.divided = wanted, divided
        self.decided = {site: self._patterns(patterns[site], each) for site, each in runs.items()}
        self.sites: list[int] = []
        self.masks: list[int] = []
        self.left = 0  # lanes that returned from the innermost frame
        self.broken, self.continued = 0, 0  # lanes that left the innermost loop, or its iteration

    def kernel(self, body: ir.Body, mask: int) -> None:
        self.run(body, mask)
        if any(next(each, None) is not None for each in self.decided.values()):
            raise Lost("more is recorded than was executed")

    def _patterns(self, patterns: list[Pattern], runs: list[tuple[int, int]]) -> Iterator[Pattern]:
        for pattern, count in runs:
            if pattern < 0:
                raise Lost("patterns that are not told apart")
            for _ in range(count):
                yield patterns[pattern]

    def take(self, site: int, mask: int) -> Pattern:
        """What the lanes of a mask decided when they came to a branch or loop."""
        found = next(self.decided.get(site, iter(())), None)
        if found is None or found.mask != mask:
            raise Lost(f"site {site} was not recorded for these lanes")
        return found

    def tell(self, site: int, mask: int) -> None:
        if mask and site in self.wanted:
            self.sites.append(site)
            self.masks.append(mask)

    def run(self, body: ir.Body, mask: int) -> int:
        """Tell statements; the lanes that go on behind them."""
        for stmt in body:
            if not mask:
                return 0
            match stmt:
                case ir.If():
                    self.tell(stmt.site, mask)
                    held = self.take(stmt.site, mask).bits(0) & mask
                    self.tell(decided(stmt.site, "then"), held)
                    self.tell(decided(stmt.site, "else"), mask & ~held)
                    mask = self.run(stmt.then, held) | self.run(stmt.orelse, mask & ~held)
                case ir.While() | ir.For():
                    mask = self.loop(stmt, mask)
                case ir.Frame():
                    around = self.left, self.broken, self.continued
                    self.left = 0
                    mask = self.run(stmt.body, mask) | self.left
                    self.left, self.broken, self.continued = around
                case ir.Return():
                    self.tell(stmt.site, mask)
                    self.left |= mask
                    return 0
                case ir.Break():
                    self.tell(stmt.site, mask)
                    self.broken |= mask
                    return 0
                case ir.Continue():
                    self.tell(stmt.site, mask)
                    self.continued |= mask
                    return 0
                case _:
                    if stmt.site in self.divided:
                        taken = self.take(stmt.site, mask)
                        for n in range(MOST):
                            self.tell(slow(stmt.site, n), taken.bits(n) & mask)
                    self.tell(stmt.site, mask)
        return mask

    def loop(self, stmt: ir.While | ir.For, mask: int) -> int:
        began = self.take(stmt.site, mask)
        around = self.broken, self.continued
        self.broken = 0
        done, turn, entered = 0, 0, mask
        while mask:
            if isinstance(stmt, ir.While):
                self.run(stmt.setup, mask)
            self.tell(stmt.site, mask)
            going = began.above(turn) & mask
            done |= mask & ~going
            if going:
                self.tell(-1 - stmt.site, going)
            self.continued = 0
            mask = self.run(stmt.body, going) | self.continued
            turn += 1
        done |= self.broken
        self.broken, self.continued = around
        return done & entered


def _lanes(which: Iterable[object]) -> int:
    """Lanes, a bit each, from whether each is one of them."""
    return sum(1 << lane for lane, one in enumerate(which) if one)
