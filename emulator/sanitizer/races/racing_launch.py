"""The launch of a report of races: its tracked arrays and its accesses."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...ir import nodes as ir
from ...ir.effects import written_array
from ...ir.walk import statements
from ...language.intrinsics import WARP_SIZE
from ...language.types import Array
from ...passes.grids import has_clusters
from ...passes.varying_control import Group, varying_control
from ...span import Span
from ..elements import Forms, element
from ..places import Dim3, in_one_cluster
from .detect import ARRAY, INDEX
from .placement import Placer


@dataclass(frozen=True)
class RacingArray:
    """A tracked array. units: shadow elements of an element. start: of its shadow elements among those of all arrays, if other arrays
    share its memory; else None."""

    name: str
    type: Array
    units: int = 1
    start: int | None = None


@dataclass(frozen=True)
class RacingLaunch:
    """The launch of a report. arrays: by number of the tracked array. of_sites: the number of each site's array. sites: span of each.
    roles: of sites, see `shadow.ACQUIRES`. cluster: blocks of a cluster by axis. forgotten: whether the blocks of earlier accesses
    are unknown."""

    kernel: ir.Function
    arrays: Sequence[RacingArray]
    of_sites: Mapping[int, int]
    sites: Mapping[int, Span]
    roles: Mapping[int, int]
    grid: Dim3
    block: Dim3
    forms: Forms
    forgotten: bool
    fenced: bool
    cluster: Dim3 = (1, 1, 1)

    def in_one_cluster(self, *blocks: int) -> bool:
        """Return whether blocks wait for each other at barriers of their cluster."""
        return has_clusters(self.kernel) and in_one_cluster(blocks, self.grid, self.cluster)

    @cached_property
    def indices(self) -> Mapping[int, ir.Expr]:
        """The index of each load and store, by site."""
        nodes = ((s.site, s.value if isinstance(s, ir.Let) else s) for s in statements(self.kernel.body))
        return {site: node.index for site, node in nodes if isinstance(node, ir.Load | ir.Store)}

    def writes_of(self, numbers: Collection[int]) -> int:
        """Return the number of places that write to one of several arrays."""
        names = {self.arrays[number].name for number in numbers}
        return len({s.span for s in statements(self.kernel.body) if written_array(s) in names})

    def element(self, number: int, row: Any) -> str:
        """Return the element of a finding, in terms of one of its two arrays."""
        array, current = self.arrays[number], self.arrays[int(row[ARRAY])]
        index = int(row[INDEX])
        if array != current:
            assert array.start is not None and current.start is not None
            index += current.start - array.start
        return element(array.name, array.type, index // array.units, self.forms)

    def placer(self, group: Group) -> Placer:
        """Return the placer of barriers of a group."""
        barriers = []
        for stmt in statements(self.kernel.body):
            node = stmt.value if isinstance(stmt, ir.Let) else stmt
            of_blocks = isinstance(node, ir.Barrier) and (group != "grid" or node.mode == "grid")
            if of_blocks or (group == "warp" and isinstance(node, ir.WarpBarrier) and _is_full(node.mask)):
                barriers.append(node.span)
        return Placer(barriers, varying_control(self.kernel, group, self.grid, self.block))


def _is_full(mask: ir.Expr) -> bool:
    return isinstance(mask, ir.Const) and mask.value == (1 << WARP_SIZE) - 1
