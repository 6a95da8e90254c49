"""The history of one launch, for both emulators: which arrays it follows, and the findings in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..ir import nodes as ir
from ..ir.types import Array
from ..ir.walk import effect, statements
from ..span import Span
from . import history, races
from .faults import Faults
from .history import ACTS, LOADS, STORES, History
from .places import Dim3

VOLTA = (7, 0)
"""The compute capability from which on lanes of a warp are not in step."""


@dataclass(frozen=True)
class Followed:
    """What is looked for in an array. racy: whether for races; raw: whether for reads of what nobody wrote; atomic:
    whether the kernel acts atomically on it. number: in the history."""

    kernel: ir.Function
    number: int
    racy: bool
    raw: bool
    atomic: bool


@dataclass(frozen=True)
class Plan:
    """What of a kernel is followed, by array; the same for all its launches but for the lengths of arrays."""

    kernel: ir.Function
    followed: Mapping[str, Followed]
    types: Mapping[str, Array]
    sites: Mapping[int, Span]
    fences: bool

    @staticmethod
    def of(kernel: ir.Function, checks: frozenset[str], blank: frozenset[str]) -> Plan:
        """For races arrays that are shared, or global and written, are followed: what the kernel only reads cannot
        race. For reads of what nobody wrote, those that begin without contents; `blank` names the global ones."""
        types = {p.name: p.type for p in kernel.params if isinstance(p.type, Array)}
        types |= {s.array: s.type for s in statements(kernel.body) if isinstance(s, ir.Alloc)}
        acted = {e.array for s in statements(kernel.body) if isinstance(e := effect(s), ir.Atomic | ir.CompareSwap)}
        written = acted | {s.array for s in statements(kernel.body) if isinstance(s, ir.Store)}
        followed: dict[str, Followed] = {}
        for name, type in types.items():
            racy = "races" in checks and (type.space == "shared" or (type.space == "global" and name in written))
            raw = "uninitialised" in checks and (type.space in ("shared", "local") or name in blank)
            if racy or raw:
                followed[name] = Followed(kernel, len(followed), racy, raw, name in acted)
        sites = {
            s.site: s.value.span if effect(s) else s.span for s in statements(kernel.body) if isinstance(s, ir.Let)
        }
        sites |= {s.site: s.span for s in statements(kernel.body) if isinstance(s, ir.Store)}
        fences = any(isinstance(s, ir.Fence) for s in statements(kernel.body))
        return Plan(kernel, followed, types, sites, fences)

    def begin(
        self, lengths: Mapping[str, int], warps: int, lockstep: bool, moments: int = history.MOST_MOMENTS
    ) -> History:
        """A history for a launch. lengths: elements, by array; of local arrays those of all threads of a block."""
        where = history.layout({name: lengths[name] for name in self.followed})
        own = [self.types[name].space != "global" for name in self.followed]
        sites = 1 + max(self.sites, default=0)
        return history.new(where, own, sites, warps, lockstep, moments)

    def tell(self, found: History, faults: Faults, grid: Dim3, block: Dim3) -> None:
        """Add the races that a history holds to a launch's faults."""
        names = list(self.followed)
        types = [self.types[name] for name in names]
        told = races.findings(found, names, types, self.sites.__getitem__, grid, block)
        for number, (order, site, diagnostic) in enumerate(told):
            faults.add(f"race {number}", site, order, diagnostic.count, lambda d=diagnostic: d)  # type: ignore[misc]


def act(site: int, kind: str) -> int:
    """The act of a site whose kind is "shared_load" and so on."""
    word = kind.rpartition("_")[2]
    return 4 * site + {"load": LOADS, "store": STORES}.get(word, ACTS)


def lockstep(capability: tuple[int, int]) -> bool:
    """Whether the lanes of a warp run in step on a device."""
    return capability < VOLTA
