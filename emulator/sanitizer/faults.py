"""Findings of one launch: for each site and kind the first in execution order, with a count."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..errors import Diagnostic

Order = tuple[int, ...]


@dataclass
class _Entry:
    order: Order
    build: Callable[[], Diagnostic]
    count: int


class Faults:
    """Collects findings, in any order."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, int], _Entry] = {}

    def add(self, kind: str, site: int, order: Order, count: int, build: Callable[[], Diagnostic]) -> None:
        """Add a finding. order: (block, phase, warp) of the first of `count` lanes. build: describes that first finding."""
        entry = self._entries.get((kind, site))
        if entry is None:
            self._entries[kind, site] = _Entry(order, _once(build), count)
            return
        entry.count += count
        if order < entry.order:
            entry.order, entry.build = order, _once(build)

    def drop(self, kind: str, site: int) -> None:
        """Remove a finding explained by another finding."""
        self._entries.pop((kind, site), None)

    def diagnostics(self) -> list[Diagnostic]:
        """Return the findings in execution order. Copies of an unrolled line are merged."""
        merged: dict[tuple[object, ...], Diagnostic] = {}
        for (kind, _), entry in sorted(self._entries.items(), key=lambda item: (item[1].order, item[0][1], item[0][0])):
            finding = entry.build()
            place = (kind, finding.span, finding.related)
            count = entry.count + (merged[place].count if place in merged else 0)
            first = merged.get(place, finding)
            merged[place] = replace(first, count=count, blocks=first.blocks or entry.order[:1])
        return list(merged.values())


def _once(build: Callable[[], Diagnostic]) -> Callable[[], Diagnostic]:
    """Build the diagnostic now: the values it shows may change later."""
    described = build()
    return lambda: described
