"""What kernels cost, place by place: every counter by source place, kind of statement and array, and groupings of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeVar

from ..machine.device import Device
from ..span import Span
from .counters import Counters, Row
from .samples import Table, merge_tables

Key = TypeVar("Key")


class Place(NamedTuple):
    """A place in the source that costs something.

    span: without the calls through which inlining reached it. kind: what the statement does, as `events` names it
    ("global_load", "branch", "compute"). array: what it accesses, as the user named it; "" for what is no access.
    size: bytes that each lane moves.
    """

    span: Span
    kind: str
    array: str
    size: int


@dataclass(frozen=True)
class Costs:
    """What launches of one kernel, or of several, cost on a device.

    kernels: their names. rows: the counters of each place, as `events.MEANING` defines them. sources: the text of each
    file, by the file's name in spans. under: of each if, while and for, the counters of the statements in it, those of
    the functions called there too. accesses, loops: of launches with detail, the sample tables of `samples`.
    """

    kernels: tuple[str, ...]
    launches: int
    device: Device
    rows: Mapping[Place, Row]
    sources: Mapping[str, str]
    under: Mapping[Place, Row]
    accesses: Mapping[Place, Table]
    loops: Mapping[Place, Table]

    def __add__(self, other: Self) -> Self:
        """Both together, place by place. The device is that of the first: sectors of two sizes do not add up."""
        rows, under = _sums(self.rows, other.rows), _sums(self.under, other.under)
        accesses, loops = _merges(self.accesses, other.accesses), _merges(self.loops, other.loops)
        kernels = tuple(dict.fromkeys((*self.kernels, *other.kernels)))
        sources = {**self.sources, **other.sources}
        launches = self.launches + other.launches
        return type(self)(kernels, launches, self.device, rows, sources, under, accesses, loops)

    @property
    def counters(self) -> Counters:
        """The same counts by span and kind: totals, ratios, lines that hold a text."""
        rows: dict[tuple[Span, str], Row] = {}
        for place, row in self.rows.items():
            add(rows.setdefault((place.span, place.kind), {}), row)
        return Counters(rows, self.device.sector)

    def totals(self) -> Row:
        """Every counter, in the order of `events.MEANING`."""
        return self.counters.totals()

    def derived(self) -> dict[str, float]:
        """Efficiencies and ratios, as `Counters.derived` defines them."""
        return self.counters.derived()

    def by_line(self) -> dict[tuple[str, int], Row]:
        """Counters by (file, line), in that order; zeros left out."""
        return dict(sorted(self._grouped(lambda place: (place.span.file, place.span.line)).items()))

    def by_array(self) -> dict[str, Row]:
        """Counters of accesses by array, the array named first where it is accessed first in the source."""
        return self._grouped(lambda place: place.array or None)

    def by_line_and_array(self) -> dict[tuple[str, int, str], Row]:
        """Counters of accesses by (file, line, array), in that order."""
        grouped = self._grouped(lambda p: (p.span.file, p.span.line, p.array) if p.array else None)
        return dict(sorted(grouped.items()))

    def branches(self) -> dict[Span, Row]:
        """Counters of each if, while and for: `branches` it took, `divergent_branches` among them."""
        return self._grouped(lambda place: place.span if place.kind == "branch" else None)

    def _grouped(self, key: Callable[[Place], Key | None]) -> dict[Key, Row]:
        """The rows added up by key; places whose key is None are left out."""
        groups: dict[Key, Row] = {}
        for place, row in self.rows.items():
            if (group := key(place)) is not None:
                add(groups.setdefault(group, {}), row)
        return groups


def _sums(one: Mapping[Place, Row], other: Mapping[Place, Row]) -> dict[Place, Row]:
    rows = {place: dict(row) for place, row in one.items()}
    for place, row in other.items():
        add(rows.setdefault(place, {}), row)
    return rows


def _merges(one: Mapping[Place, Table], other: Mapping[Place, Table]) -> dict[Place, Table]:
    both = {place: merge_tables([one[place], other[place]]) for place in one.keys() & other.keys()}
    return {**one, **other, **both}


def add(into: Row, row: Mapping[str, int]) -> None:
    """Add a row of counters to another; zeros are not kept."""
    for name, n in row.items():
        if n:
            into[name] = into.get(name, 0) + n
