"""Statements as objects that run teams: straight lines, branches, loops, frames, barriers, phases.

`Line`s run one team at a time. Control statements take a list of teams, because a structure that holds a
barrier is walked by all warps of a block together; everything else runs each team to its end in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ...errors import Diagnostic
from ...ir import nodes as ir
from ...profiler import events
from ...profiler.events import Counts
from ...sanitizer import barriers
from ...sanitizer.places import where
from ...sanitizer.races import happens_before
from . import lanes
from .warp_group import NONE, Mask, Team, Values

Condition = Callable[[Team], Values]


class Step(Protocol):
    """Anything a body is made of."""

    def run(self, teams: Sequence[Team]) -> None: ...


@dataclass
class Line:
    """Statements in a row that nobody enters or leaves in between; counted together."""

    counts: Counts | None
    sites: list[int] = field(default_factory=list)
    actions: list[Callable[[Team], None]] = field(default_factory=list)
    warps: int = 0
    lanes: int = 0

    def run(self, teams: Sequence[Team]) -> None:
        for team in teams:
            warps, lanes_active = team.population()
            if lanes_active:
                self.warps += warps
                self.lanes += lanes_active
                for action in self.actions:
                    action(team)

    def flush(self) -> None:
        """Hand the executions over to the sites."""
        if self.counts is not None:
            self.counts[self.sites, events.WARPS] += self.warps
            self.counts[self.sites, events.LANES] += self.lanes


@dataclass
class Phase:
    """Steps without a barrier: each team runs to the end before the next one starts."""

    steps: list[Step]

    def run(self, teams: Sequence[Team]) -> None:
        for team in scheduled(teams):
            if team.active is not NONE:
                one = (team,) if len(teams) > 1 else teams
                for step in self.steps:
                    step.run(one)


@dataclass
class Body:
    """A statement list."""

    steps: list[Step]

    def run(self, teams: Sequence[Team]) -> None:
        for step in self.steps:
            step.run(teams)


def split(team: Team, site: int, holds: Values, counts: Counts | None) -> tuple[Mask, Mask, bool]:
    """(lanes for which a condition holds, the other active lanes, whether the first are any); counts the branch."""
    active = team.active
    if active is NONE:
        return NONE, NONE, False
    if active.size == 1 and holds.size == 1:
        warps, active_lanes = team.population()
        yes, divergent = bool(holds.flat[0]), 0
        taken, rest = (active, NONE) if yes else (NONE, active)
    else:
        whole = (team.shape[0] * team.shape[1], 32)
        taken, rest = np.empty(whole, np.bool_), np.empty(whole, np.bool_)
        warps, active_lanes, n, divergent = lanes.branch(team.full(active), team.full(holds), taken, rest)
        yes = n > 0
        taken = active if n == active_lanes else taken.reshape(team.shape) if yes else NONE
        rest = active if n == 0 else NONE if n == active_lanes else rest.reshape(team.shape)
    if counts is not None and active_lanes:
        row = counts[site]
        row[events.WARPS] += warps
        row[events.LANES] += active_lanes
        row[events.DIVERGENT] += divergent
    return taken, rest, yes


@dataclass
class Branch:
    """if / else."""

    site: int
    condition: Condition
    then: Body
    orelse: Body | None
    counts: Counts | None

    def run(self, teams: Sequence[Team]) -> None:
        before = [(team.active, team.left) for team in teams]
        parts = [
            split(team, self.site, self.condition(team), self.counts)
            if team.active is not NONE
            else (NONE, NONE, False)
            for team in teams
        ]
        self._arm(self.then, teams, [taken for taken, _, _ in parts])
        if self.orelse is not None:
            self._arm(self.orelse, teams, [rest for _, rest, _ in parts])
        for team, (active, left) in zip(teams, before, strict=True):
            team.active = active if team.left is left else settled(active & ~team.left)

    def _arm(self, body: Body, teams: Sequence[Team], masks: list[Mask]) -> None:
        for team, mask in zip(teams, masks, strict=True):
            team.active = mask
        if any(mask is not NONE for mask in masks):
            body.run(teams)


@dataclass
class _Turn:
    """What a team keeps of the world outside a loop."""

    entry: Mask
    left: Mask
    gone: Mask
    continued: Mask


@dataclass
class Loop:
    """while, and for: `begin` sets the variable, `setup` and `condition` run before each turn, `advance` after."""

    site: int
    begin: Callable[[Team], None] | None
    setup: Body
    condition: Condition
    body: Body
    advance: Callable[[Team], None] | None
    counts: Counts | None
    node: ir.While | ir.For

    def run(self, teams: Sequence[Team]) -> None:
        outside = [_Turn(team.active, team.left, team.gone, team.continued) for team in teams]
        for team in teams:
            team.left = NONE
            if self.begin is not None and team.active is not NONE:
                self.begin(team)
        turns = 0
        while True:
            self.setup.run(teams)
            running = False
            for team in teams:
                if team.active is not NONE:
                    team.active, _, yes = split(team, self.site, self.condition(team), self.counts)
                    running |= yes
            if not running:
                break
            if turns == teams[0].request.step_limit:
                self._cut_off(teams)
                break
            turns += 1
            for team in teams:
                team.continued = NONE
            self.body.run(teams)
            for team in teams:
                if team.continued is not NONE:
                    team.active = team.active | team.continued
                team.left = NONE
                if self.advance is not None and team.active is not NONE:
                    self.advance(team)
        for team, kept in zip(teams, outside, strict=True):
            team.continued = kept.continued
            if team.gone is kept.gone:
                team.active, team.left = kept.entry, kept.left
            else:
                team.active, team.left = settled(kept.entry & ~team.gone), kept.left | team.gone

    def _endless(self, limit: int) -> Callable[[int, int, str], Diagnostic]:
        return lambda row, lane, place: barriers.endless(self.node.span, place, limit)

    def _cut_off(self, teams: Sequence[Team]) -> None:
        """Lanes still in the loop leave the kernel, and the fault says so."""
        for team in teams:
            if team.active is NONE:
                continue
            team.fault("step limit", self.site, team.full(team.active), self._endless(team.request.step_limit))
            team.killed = team.killed | team.active
            team.alive = team.alive & ~team.active
            team.leave(frame=True)


@dataclass
class Frame:
    """An inlined call: a return leaves only it."""

    body: Body

    def run(self, teams: Sequence[Team]) -> None:
        outside = [_Turn(team.active, team.left, team.gone, team.continued) for team in teams]
        killed = [team.killed for team in teams]
        for team in teams:
            team.left = team.gone = NONE
        self.body.run(teams)
        for team, kept, dead in zip(teams, outside, killed, strict=True):
            team.active, team.left, team.gone, team.continued = kept.entry, kept.left, kept.gone, kept.continued
            if team.killed is not dead:
                team.active = settled(kept.entry & ~team.killed)
                team.left, team.gone = kept.left | team.killed, kept.gone | team.killed


@dataclass
class BlockBarrier:
    """sync and its counting forms: the whole block is there, or it is a fault."""

    node: ir.Barrier
    site: int
    predicate: Condition
    result: Callable[[Team, Values], None]
    counts: Counts | None

    def run(self, teams: Sequence[Team]) -> None:
        arrived: Values | int = 1
        if self.node.mode != "sync" or any(team.active is not team.alive for team in teams):
            arrived = self._meet(teams)
        if "barriers" in teams[0].request.checks:
            self._all_alive(teams)
        for team in teams:
            warps, active_lanes = team.population()
            if self.counts is not None and active_lanes:
                self.counts[self.site, events.WARPS] += warps
                self.counts[self.site, events.LANES] += active_lanes
            team.phase += arrived
        race_state = teams[0].memory.race_state
        if race_state is not None and np.any(arrived):
            happens_before.barrier(race_state)

    def _meet(self, teams: Sequence[Team]) -> Values:
        """Compare who is here with who should be, and combine the predicates; which blocks are here at all."""
        active = np.concatenate([np.broadcast_to(t.active, t.shape) for t in teams], axis=1)
        alive = np.concatenate([np.broadcast_to(t.alive, t.shape) for t in teams], axis=1)
        arrived = active.sum(axis=(1, 2))
        waiting = np.where(arrived > 0, (alive & ~active).sum(axis=(1, 2)), 0)
        for block in np.flatnonzero(waiting):
            self._tell("barrier", barriers.divergent, teams, int(block), active[block], alive[block] & ~active[block])
        if self.node.mode != "sync":
            holds = np.concatenate(
                [np.broadcast_to(self.predicate(t) if t.active is not NONE else NONE, t.shape) for t in teams], axis=1
            )
            count = (holds & active).sum(axis=(1, 2)).reshape(-1, 1, 1)
            total = arrived.reshape(-1, 1, 1)
            results = {"count": count.astype(np.int32), "and": count == total, "or": count > 0}
            for team in teams:
                self.result(team, results[self.node.mode])
        return np.asarray(arrived > 0)

    def _all_alive(self, teams: Sequence[Team]) -> None:
        """No thread has returned yet."""
        everyone = np.concatenate([np.broadcast_to(t.everyone, t.shape) for t in teams], axis=1)
        alive = np.concatenate([np.broadcast_to(t.alive, t.shape) for t in teams], axis=1)
        active = np.concatenate([np.broadcast_to(t.active, t.shape) for t in teams], axis=1)
        gone = everyone & ~alive
        for block in np.flatnonzero(gone.any(axis=(1, 2)) & active.any(axis=(1, 2))):
            self._tell("returned", barriers.returned, teams, int(block), active[block], gone[block])

    def _tell(
        self, kind: str, tell: Callable[..., Diagnostic], teams: Sequence[Team], block: int, active: Mask, others: Mask
    ) -> None:
        team, request = teams[0], teams[0].request
        linear = int(team.blocks[block])
        threads = np.concatenate([t.warps for t in teams]).repeat(32) * 32 + np.tile(np.arange(32), active.shape[0])
        here, absent = (np.sort(threads[np.flatnonzero(mask)]) for mask in (active, others))
        place, away = (where(linear, int(t[0]), request.grid, request.block, 0) for t in (here, absent))
        order = (linear, int(team.phase[block]), int(here[0]) // 32)
        count = len(absent)
        team.faults.add(kind, self.site, order, count, lambda: tell(self.node.span, place, len(here), count, away))


def scheduled(teams: Sequence[Team]) -> Sequence[Team]:
    """The warps of a block in the order of their turns."""
    first = teams[0]
    if first.memory.schedule is None or len(teams) == 1:
        return teams
    order = first.memory.schedule.of_phase(int(first.blocks[0]), int(first.phase[0]), len(teams))
    return [teams[warp] for warp in order]


def settled(mask: Mask) -> Mask:
    """NONE where no lane is left, so that emptiness is a matter of identity."""
    return mask if mask.any() else NONE
