"""What the emulator's counts say of compiled code: how often warps and threads execute each SASS instruction.

The emulator knows how often each statement of the source was executed, the compiler's line table from which line
each instruction came. Neither says how often a block of SASS runs: nvcc unrolls loops, merges branches, moves
instructions. But the flow of threads through the blocks is conserved, and some instructions the compiler cannot
multiply: all loads of a line together are executed as often as the line's loads were. So the flow is the solution of
a linear program: conservation holds exactly, and what the statements say is missed by as little as possible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from simtbed.emulator import LaunchError
from simtbed.emulator.engines.cuda_sass import Instruction

from .graph import Edge, Graph, conditional, graph

Floats = npt.NDArray[np.float64]
MISSING = 'SciPy is not installed: pip install "simtbed[sass]"'


@dataclass(frozen=True)
class Executed:
    """One statement of the emulated program: its place and kind (`observe.events`), how often warps and lanes executed
    it, how often the active lanes of a branch disagreed, the bytes a lane moves, and the instructions of each class."""

    file: str
    line: int
    kind: str
    warps: int
    lanes: int
    divergent: int
    size: int
    costs: dict[str, int]


@dataclass(frozen=True)
class Weighed:
    """Executions of each instruction, by warps and by threads, in the order of the instructions."""

    instructions: tuple[Instruction, ...]
    warps: Floats
    threads: Floats

    @property
    def warp_instructions(self) -> int:
        return round(float(self.warps.sum()))

    @property
    def thread_instructions(self) -> int:
        return round(float(self.threads.sum()))


_KINDS = {
    "LDG": "global_load", "LD": "global_load", "STG": "global_store", "ST": "global_store", "ATOMG": "global_atomic",
    "ATOM": "global_atomic", "RED": "global_reduction", "REDG": "global_reduction", "LDS": "shared_load", "STS": "shared_store",
    "ATOMS": "shared_atomic", "LDL": "local_load", "STL": "local_store", "SHFL": "shuffle", "VOTE": "vote",
    "MATCH": "vote", "BAR": "barrier", "MEMBAR": "fence",
}  # fmt: skip
"""Instructions that stand for one effect of the source each."""
_CLASSES = {
    "FADD": "fp32", "FMUL": "fp32", "FFMA": "fp32", "DADD": "fp64", "DMUL": "fp64", "DFMA": "fp64", "FCHK": "fdiv",
    "MUFU": "sfu",
}  # fmt: skip
_CONTROL = ("BRA", "BSSY", "BSYNC", "EXIT", "CALL", "RET", "NOP", "PLOP3", "WARPSYNC", "BREAK", "YIELD")
"""Instructions that no statement asked for."""
"""Instructions that stand for one operation each, on lines where no division brings others of the same name."""

# How much a miss weighs, relative to what was expected. Effects cannot be dropped or doubled; operations sometimes
# are; that a block runs as often as some statement of its lines is a hint for blocks that hold nothing better; and a
# call is the slow path of a division, which is taken when nothing else explains the rest.
_EFFECT, _OPERATION, _LINE, _CALLED, _SHORTER = 1.0, 0.3, 1e-3, 0.05, 2e-6


def weigh(instructions: Sequence[Instruction], executed: Iterable[Executed], threads: int, warps: int) -> Weighed:
    """Predict the executions of instructions from those of statements.

    threads, warps: that entered the kernel, over all launches that `executed` counts. Raises LaunchError without SciPy.
    """
    flow = _Flow(graph(instructions), _Evidence(executed), threads, warps)
    by_block = flow.threads()
    warps_of = flow.warps(by_block)
    sizes = [past - first for first, past in flow.graph.blocks]
    return Weighed(tuple(instructions), np.repeat(warps_of, sizes), np.repeat(by_block, sizes))


class _Evidence:
    """Statements by line."""

    def __init__(self, executed: Iterable[Executed]) -> None:
        self.statements: dict[tuple[str, int], list[Executed]] = defaultdict(list)
        self.amounts: dict[tuple[str, int, str], int] = defaultdict(int)
        for e in executed:
            self.statements[e.file, e.line].append(e)
            self.amounts[e.file, e.line, e.kind] += e.lanes * max(e.size, 1)
            for name, n in e.costs.items():
                if name in _CLASSES.values():
                    self.amounts[e.file, e.line, name] += e.lanes * n
        self.files = {file for file, _ in self.statements}

    def place(self, instruction: Instruction) -> tuple[str, int]:
        """Where the instruction came from in the user's source, by the last part of the file's name: headers of the
        compiler are no evidence."""
        places = ((file.rpartition("/")[2], line) for file, line in instruction.places)
        return next((place for place in places if place[0] in self.files), ("", 0))

    def divides(self, place: tuple[str, int]) -> bool:
        return (*place, "fdiv") in self.amounts


class _Flow:
    """Threads, then warps, through the blocks of a graph."""

    def __init__(self, whole: Graph, evidence: _Evidence, threads: int, warps: int) -> None:
        self.graph, self.evidence = whole, evidence
        self.all_threads, self.all_warps = threads, warps
        self.places = [evidence.place(i) for i in whole.instructions]
        self.into: dict[int, list[int]] = defaultdict(list)
        self.out: dict[int, list[int]] = defaultdict(list)
        for at, edge in enumerate(whole.edges):
            self.into[edge.target].append(at)
            if edge.kind != "call":
                self.out[edge.source].append(at)

    # -------------------------------------------------------------- threads
    def threads(self) -> Floats:
        """Executions of each block by threads."""
        try:
            from scipy.optimize import linprog
            from scipy.sparse import csr_array
        except ModuleNotFoundError:
            raise LaunchError(MISSING) from None
        blocks, edges, ends = len(self.graph.blocks), self.graph.edges, self.graph.ends
        enter, leave = np.zeros((blocks, len(edges) + len(ends))), np.zeros((blocks, len(edges) + len(ends)))
        exact: list[Floats] = []
        for at, edge in enumerate(edges):
            enter[edge.target, at] = 1
            leave[edge.source, at] = edge.kind != "call"
        for at, block in enumerate(ends):
            leave[block, len(edges) + at] = 1
        exact += list(enter - leave)
        entered = np.zeros(blocks)
        entered[0] = 1
        wanted = list(-entered)
        for at, edge in enumerate(edges):
            if edge.kind == "call" and not conditional(self.graph.last(edge.source)):
                every = enter[edge.source].copy()
                every[at] -= 1
                exact.append(every)
                wanted.append(-entered[edge.source])
        hints = self._hints()
        cost = np.zeros(enter.shape[1] + 2 * len(hints))
        sizes = [past - first for first, past in self.graph.blocks]
        cost[: len(edges)] = [_CALLED if e.kind == "call" else _SHORTER * sizes[e.target] for e in edges]
        rows = np.zeros((len(exact) + len(hints), len(cost)))
        rows[: len(exact), : enter.shape[1]] = exact
        for at, hint in enumerate(hints):
            row, expected = len(exact) + at, hint.executions / self.all_threads
            rows[row, : enter.shape[1]] = sum(n * enter[block] for block, n in hint.blocks.items())
            short = enter.shape[1] + 2 * at
            rows[row, short], rows[row, short + 1] = 1, -1
            cost[short], cost[short + 1] = hint.weight, 0 if hint.at_least else hint.weight
            wanted.append(expected - sum(n * entered[block] for block, n in hint.blocks.items()))
        bounds = [(0, 0 if e.kind == "apart" else None) for e in edges] + [(0, None)] * (len(cost) - len(edges))
        solution = linprog(cost, A_eq=csr_array(rows), b_eq=wanted, bounds=bounds, method="highs")
        if solution.status != 0:
            raise LaunchError(f"the flow through the compiled kernel has no solution: {solution.message}")
        found: Floats = (enter @ solution.x[: enter.shape[1]] + entered) * self.all_threads
        return np.where(abs(found - found.round()) < 1e-3, found.round(), found)

    def _hints(self) -> list[_Hint]:
        amounts, found = self.evidence.amounts, []
        members: dict[tuple[str, int, str], list[tuple[int, int, bool]]] = defaultdict(list)
        anchored = set()
        for block, n in self._numbered():
            instruction, place = self.graph.instructions[n], self.places[n]
            kind = _KINDS.get(instruction.opcode) or _CLASSES.get(instruction.opcode)
            if kind and (kind not in ("fp32", "sfu") or not self.evidence.divides(place)) and (*place, kind) in amounts:
                width = 4 if kind == "shuffle" else _width(instruction) if "_" in kind else 1
                members[*place, kind].append((block, width, bool(instruction.predicate)))
                if not instruction.predicate:
                    anchored.add(block)
        for key, each in members.items():
            unit = max(width for _, width, _ in each)
            weight = _EFFECT if key[2] in _KINDS.values() else _OPERATION
            blocks = {block: sum(w for b, w, _ in each if b == block) / unit for block, _, _ in each}
            found.append(_Hint(blocks, amounts[key] / unit, weight, any(p for _, _, p in each)))
        return found + self._line_hints(anchored)

    def _numbered(self) -> Iterator[tuple[int, int]]:
        """Block and index of every instruction."""
        for block, (first, past) in enumerate(self.graph.blocks):
            yield from ((block, n) for n in range(first, past))

    def _line_hints(self, anchored: set[int]) -> list[_Hint]:
        """A block that holds no anchor runs as often as its lines; copies of a line in several loops share its turns."""
        found = []
        shares: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
        for block, n in self._numbered():
            if block not in anchored and self.graph.instructions[n].opcode not in _CONTROL:
                share = shares[self.places[n]]
                share[block] = share.get(block, 0) + 1
        for place, share in shares.items():
            counts = {e.lanes for e in self.evidence.statements.get(place, ())}
            if not counts:
                continue
            weight, most = _LINE / len(counts), float(max(counts))
            loops: dict[tuple[int, int] | None, int] = defaultdict(int)
            for block, n in share.items():
                loops[self.graph.loop(block)] += n
            if len(loops) == 1:
                found += [_Hint({block: 1.0}, most, weight, False) for block in share]
            else:
                least = min(n for loop, n in loops.items() if loop is not None)
                found.append(_Hint({block: n / least for block, n in share.items()}, most, weight, False))
        return found

    # -------------------------------------------------------------- warps
    def warps(self, threads: Floats) -> Floats:
        """Executions of each block by warps, `threads` given."""
        together = np.array([self._together(block, threads[block]) for block in range(len(threads))])
        found = together.copy()
        for block in range(len(threads)):
            # Lanes come to a meeting point, or out of a loop that has none, group by group.
            if threads[block] and (self.graph.meets(block) or self._leaves_loop(block)):
                arriving = sum(self._along(w, threads, together, frozenset()) for w in self.into[block])
                found[block] = min(max(arriving, together[block]), threads[block])
        return found

    def _leaves_loop(self, block: int) -> bool:
        """Whether a loop ends right before the block."""
        loops = [self.graph.loop(self.graph.edges[way].source) for way in self.into[block]]
        return any(loop is not None and loop[1] == block - 1 for loop in loops)

    def _together(self, block: int, threads: float) -> float:
        """Executions by warps whose lanes are as many together as in the statements that the block stands for."""
        if threads <= 0 or threads == self.all_threads:
            return self.all_warps if threads > 0 else 0.0
        first, past = self.graph.blocks[block]
        near = [e for n in range(first, past) for e in self.evidence.statements.get(self.places[n], ()) if e.lanes]
        far = [e for statements in self.evidence.statements.values() for e in statements if e.lanes]
        for chosen in (near, far):
            if equal := [e for e in chosen if e.lanes == threads]:
                return float(np.median([e.warps for e in equal]))
        ratio = float(np.median([e.warps / e.lanes for e in near])) if near else self.all_warps / self.all_threads
        return max(threads * ratio, threads / 32)

    def _along(self, at: int, threads: Floats, together: Floats, passed: frozenset[int]) -> float:
        """Executions by warps of an edge: how many groups of lanes go that way."""
        edge = self.graph.edges[at]
        others = [o for o in self.out[edge.source] if o != at and self.graph.edges[o].kind != "apart"]
        if not others or edge.source in self.graph.ends:
            return float(together[edge.source])
        if (known := self._alone(edge, threads, together)) is not None:
            return known
        if others[0] in passed:
            return float(together[edge.source])
        other = self._along(others[0], threads, together, passed | {at})
        return float(max(together[edge.source] - other + self._divergent(edge.source, threads, together), 0))

    def _alone(self, edge: Edge, threads: Floats, together: Floats) -> float | None:
        """Where the edge's target says it: the only way there, or all but what came to a loop from outside."""
        ways = self.into[edge.target]
        if threads[edge.target] == 0:
            return 0.0
        if self.graph.meets(edge.target) or self._leaves_loop(edge.target):
            return None
        rest = [self.graph.edges[w] for w in ways if self.graph.edges[w] != edge]
        if all(len(self.out[r.source]) == 1 or threads[r.source] == 0 for r in rest):
            return float(max(together[edge.target] - sum(together[r.source] for r in rest), 0))
        return None

    def _divergent(self, block: int, threads: Floats, together: Floats) -> float:
        """How often lanes parted at the end of a block: as at the branch of its line, or a share of that where the
        compiler made several of it. A loop whose test moved to its end is tested once less an entry: no share."""
        place = self.places[self.graph.blocks[block][1] - 1]
        branches = [e for e in self.evidence.statements.get(place, ()) if e.kind == "branch" and e.warps]
        if not branches:
            return 0.0
        best = min(branches, key=lambda e: abs(e.lanes - threads[block]))
        share = together[block] / best.warps
        return best.divergent * float(share if share < 0.75 else 1.0)


@dataclass(frozen=True)
class _Hint:
    """Executions of blocks by threads, each times its factor, are so many together; or at least so many."""

    blocks: dict[int, float]
    executions: float
    weight: float
    at_least: bool


def _width(instruction: Instruction) -> int:
    """Bytes a lane that an access moves."""
    sizes = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}
    return next((size for name, size in sizes.items() if name in instruction.operation.split(".")), 4)
