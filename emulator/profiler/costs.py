"""Counters of kernels by source place, kind of statement and array."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeVar

from ..machine.device import Device
from ..span import Span
from .counters import Counters, Row
from .remedies import Remedy, sum_remedies
from .samples import Table, merge_tables

Key = TypeVar("Key")


class Place(NamedTuple):
    """A place in the source that has counters.

    span: without the calls through which inlining reached it. kind: of the statement, as in `events`
    ("global_load", "branch", "compute"). array: the accessed array, named as in the source; "" if the statement is no access.
    size: bytes per lane.
    """

    span: Span
    kind: str
    array: str
    size: int


RemedyKey = tuple[str, tuple[Place, ...]]


@dataclass(frozen=True)
class Costs:
    """Counters of the launches of one kernel, or of several, on a device.

    kernels: their names. rows: the counters of each place, as `events.MEANING` defines them. sources: the text of each
    file, by the file's name in spans. under: for each if, while and for, the counters of the statements in it, called
    functions included. around: for each place, the ifs, whiles and fors that contain it. accesses, loops: the sample tables of
    launches with detail (`samples`). remedies: changes of their accesses, by rule and places.
    """

    kernels: tuple[str, ...]
    launches: int
    device: Device
    rows: Mapping[Place, Row]
    sources: Mapping[str, str]
    under: Mapping[Place, Row]
    around: Mapping[Place, frozenset[Place]]
    accesses: Mapping[Place, Table]
    loops: Mapping[Place, Table]
    remedies: Mapping[RemedyKey, Remedy]

    def __add__(self, other: Self) -> Self:
        """Return the sum, place by place. The device is that of the first operand."""
        rows, under = _sums(self.rows, other.rows), _sums(self.under, other.under)
        accesses, loops = _merges(self.accesses, other.accesses), _merges(self.loops, other.loops)
        kernels = tuple(dict.fromkeys((*self.kernels, *other.kernels)))
        sources = {**self.sources, **other.sources}
        launches = self.launches + other.launches
        around = {place: self.around.get(place, frozenset()) | other.around.get(place, frozenset()) for place in rows}
        remedies = merge_by_key([*self.remedies.items(), *other.remedies.items()])
        return type(self)(kernels, launches, self.device, rows, sources, under, around, accesses, loops, remedies)

    @property
    def counters(self) -> Counters:
        """The same counts by span and kind."""
        rows: dict[tuple[Span, str], Row] = {}
        for place, row in self.rows.items():
            add(rows.setdefault((place.span, place.kind), {}), row)
        return Counters(rows, self.device.sector)

    def totals(self) -> Row:
        """Return every counter, in the order of `events.MEANING`."""
        return self.counters.totals()

    def derived(self) -> dict[str, float]:
        """Return the efficiencies and ratios of `Counters.derived`."""
        return self.counters.derived()

    def by_line(self) -> dict[tuple[str, int], Row]:
        """Return the counters by (file, line), sorted, without zeros."""
        return dict(sorted(self._grouped(lambda place: (place.span.file, place.span.line)).items()))

    def by_array(self) -> dict[str, Row]:
        """Return the counters of accesses by array, in the order of the first access in the source."""
        return self._grouped(lambda place: place.array or None)

    def by_line_and_array(self) -> dict[tuple[str, int, str], Row]:
        """Return the counters of accesses by (file, line, array), sorted."""
        grouped = self._grouped(lambda p: (p.span.file, p.span.line, p.array) if p.array else None)
        return dict(sorted(grouped.items()))

    def branches(self) -> dict[Span, Row]:
        """Return the counters of each if, while and for, with `branches` and `divergent_branches`."""
        return self._grouped(lambda place: place.span if place.kind == "branch" else None)

    def _grouped(self, key: Callable[[Place], Key | None]) -> dict[Key, Row]:
        """Return the sums of rows by key, without places whose key is None."""
        groups: dict[Key, Row] = {}
        for place, row in self.rows.items():
            if (group := key(place)) is not None:
                add(groups.setdefault(group, {}), row)
        return groups


def merge_by_key(remedies: Iterable[tuple[RemedyKey, Remedy]]) -> dict[RemedyKey, Remedy]:
    """Return the sum of the remedies of each rule and its places."""
    groups: dict[RemedyKey, list[Remedy]] = {}
    for key, remedy in remedies:
        groups.setdefault(key, []).append(remedy)
    return {key: sum_remedies(group) for key, group in groups.items()}


def _sums(first: Mapping[Place, Row], second: Mapping[Place, Row]) -> dict[Place, Row]:
    rows = {place: dict(row) for place, row in first.items()}
    for place, row in second.items():
        add(rows.setdefault(place, {}), row)
    return rows


def _merges(first: Mapping[Place, Table], second: Mapping[Place, Table]) -> dict[Place, Table]:
    both = {place: merge_tables([first[place], second[place]]) for place in first.keys() & second.keys()}
    return {**first, **second, **both}


def add(into: Row, row: Mapping[str, int]) -> None:
    """Add a row of counters to another, without zeros."""
    for name, n in row.items():
        if n:
            into[name] = into.get(name, 0) + n
