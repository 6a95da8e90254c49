"""How often warps execute blocks, from the ways of their lanes: groups of lanes part where these do, and meet at BSYNC."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .nodes import Nodes

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Strand:
    """Lanes of a warp that go the same way. mask: a bit each. path: the nodes, one after the other."""

    mask: int
    path: npt.NDArray[np.int32]


@dataclass
class _Party:
    """The strands that meet at a meeting point, and those that have come."""

    members: frozenset[int]
    here: list[int] = field(default_factory=list)


def executions(nodes: Nodes, strands: Sequence[Strand]) -> tuple[Counts, Counts]:
    """How often a warp whose lanes are these strands executes each node, and its lanes together."""
    lanes = [one.mask.bit_count() for one in strands]
    if len(strands) == 1:
        warps = np.bincount(strands[0].path, minlength=len(nodes.blocks))
        return warps, warps * lanes[0]
    warps, threads = (np.zeros(len(nodes.blocks), np.int64) for _ in range(2))
    for node, group in _Warp(nodes, strands).run():
        warps[node] += 1
        threads[node] += sum(lanes[strand] for strand in group)
    return warps, threads


def visits(nodes: Nodes, strands: Sequence[Strand]) -> Iterator[tuple[int, int]]:
    """The nodes that a warp executes whose lanes are these strands, one after the other, and the lanes that do, a bit each."""
    if len(strands) == 1:
        yield from ((node, strands[0].mask) for node in strands[0].path.tolist())
        return
    for node, group in _Warp(nodes, strands).run():
        yield node, sum(strands[strand].mask for strand in group)


class _Warp:
    """One warp. at: the place of each strand on its path."""

    def __init__(self, nodes: Nodes, strands: Sequence[Strand]) -> None:
        self.nodes = nodes
        self.paths = [one.path.tolist() for one in strands]
        self.at = [0] * len(strands)
        self.parties: dict[int, list[_Party]] = defaultdict(list)
        self.waiting: dict[int, list[int]] = {}

    def run(self) -> Iterator[tuple[int, Sequence[int]]]:
        """The nodes that it executes, one after the other, and the strands that do."""
        ready = [list(range(len(self.paths)))]
        while ready or self.waiting:
            if not ready:  # all who have not left the kernel wait at barriers
                ready = [strands for strands in map(self._left_behind, self.waiting.values()) if strands]
                self.waiting = {}
                continue
            group = ready.pop()
            while group:
                node = self.paths[group[0]][self.at[group[0]]]
                yield node, group
                self._make(group, node)
                for strand in group:
                    self.at[strand] += 1
                if self.nodes.graph.waits(self.nodes.blocks[node]):
                    self.waiting.setdefault(node, []).extend(group)
                    break
                group, alone = self._meet(group, node)
                parted: dict[int, list[int]] = defaultdict(list)
                for strand in group:
                    if self.at[strand] < len(self.paths[strand]):
                        parted[self.paths[strand][self.at[strand]]].append(strand)
                group, *others = parted.values() or [[]]
                ready += [*others, *([alone] if alone else [])]

    def _left_behind(self, strands: list[int]) -> list[int]:
        """Those that go on."""
        return [strand for strand in strands if self.at[strand] < len(self.paths[strand])]

    def _make(self, group: list[int], node: int) -> None:
        """Those of a group that will come to the meeting points which a node makes."""
        for meeting in self.nodes.meetings.get(node, ()):
            members = frozenset(strand for strand in group if self._comes(strand, meeting, node))
            if len(members) > 1:
                self.parties[meeting].append(_Party(members))

    def _comes(self, strand: int, meeting: int, maker: int) -> bool:
        """Whether a strand comes to a meeting point before another is made there: others left the kernel, or break away."""
        path = self.paths[strand]
        for n in range(self.at[strand] + 1, len(path)):
            if path[n] == meeting:
                return True
            if path[n] == maker:
                return False
        return False

    def _meet(self, group: list[int], node: int) -> tuple[list[int], list[int]]:
        """Who goes on behind a node: at a meeting point all of its party once the last has come, none before; and those of a
        group who belong to no party there."""
        party = next((one for one in reversed(self.parties.get(node, ())) if not one.members.isdisjoint(group)), None)
        if party is None:
            return group, []
        party.here += [strand for strand in group if strand in party.members]
        alone = [strand for strand in group if strand not in party.members]
        if len(party.here) < len(party.members):
            return [], [strand for strand in alone if self.at[strand] < len(self.paths[strand])]
        self.parties[node].remove(party)
        return party.here, [strand for strand in alone if self.at[strand] < len(self.paths[strand])]
