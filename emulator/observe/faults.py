"""The findings of one launch: one a site and kind, the first in execution order, with a count."""

from __future__ import annotations

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
    """Collects findings. Engines report them in whatever order they meet them."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, int], _Entry] = {}

    def add(self, kind: str, site: int, order: Order, count: int, build: Callable[[], Diagnostic]) -> None:
        """`order` is (block, phase, warp) of the first of `count` lanes; `build` describes that first one."""
        entry = self._entries.get((kind, site))
        if entry is None:
            self._entries[kind, site] = _Entry(order, _once(build), count)
            return
        entry.count += count
        if order < entry.order:
            entry.order, entry.build = order, _once(build)

    def diagnostics(self) -> list[Diagnostic]:
        """In execution order."""
        entries = sorted(self._entries.items(), key=lambda item: (item[1].order, item[0][1]))
        return [replace(entry.build(), count=entry.count) for _, entry in entries]


def _once(build: Callable[[], Diagnostic]) -> Callable[[], Diagnostic]:
    """Describe now: what the fault speaks of may change later."""
    described = build()
    return lambda: described
