"""The counters of a launch, by name, source text and line, and the efficiencies derived from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..checked import shown
from ..errors import SimtbedError
from ..span import Span
from .events import GLOBAL, MEANING, SHARED, Counts, by_site

Key = tuple[Span, str]
Row = dict[str, int]


@dataclass(frozen=True)
class Counters:
    """Named counters of source places. Sites that come from the same place and kind are one row."""

    rows: Mapping[Key, Row]
    sector: int = 32
    warp: int = 32

    @staticmethod
    def of(sites: Iterable[tuple[str, Span, int, dict[str, int]]], counts: Counts, sector: int) -> Counters:
        """From sites as (kind, span, bytes a lane, costs) and their int64[site, column] counts."""
        rows: dict[Key, Row] = {}
        for (kind, span, size, costs), count in zip(sites, counts, strict=True):
            row = rows.setdefault((Span(span.file, span.line, span.column, span.end_line, span.end_column), kind), {})
            for name, n in by_site(kind, size, costs, count):
                row[name] = row.get(name, 0) + n
        return Counters(rows, sector)

    def __add__(self, other: Counters) -> Counters:
        """Both launches' counts, place by place."""
        rows = {key: dict(row) for key, row in self.rows.items()}
        for key, row in other.rows.items():
            into = rows.setdefault(key, {})
            for name, n in row.items():
                into[name] = into.get(name, 0) + n
        return Counters(rows, self.sector, self.warp)

    def total(self, name: str) -> int:
        """One counter over the whole selection. Raises SimtbedError for a name that is not counted."""
        if not isinstance(name, str) or name not in MEANING:
            raise SimtbedError(f"no counter is called {shown(name)}; the names are in simtbed.profiler.events.MEANING")
        return sum(row.get(name, 0) for row in self.rows.values())

    def totals(self) -> Row:
        """Every counter, in the order of `events.MEANING`."""
        return {name: self.total(name) for name in MEANING}

    def at(self, text: str) -> Counters:
        """Only the places on source lines that hold `text`. Raises SimtbedError when there is none."""
        if not isinstance(text, str):
            raise SimtbedError(f"a place is given by a part of its line, not by {shown(text)}")
        rows = {key: row for key, row in self.rows.items() if text in key[0].source}
        if not rows:
            raise SimtbedError(f"no counted line holds {text!r}")
        return Counters(rows, self.sector, self.warp)

    def by_line(self) -> dict[tuple[str, int], Row]:
        """Counters by (file, line), zeros left out."""
        lines: dict[tuple[str, int], Row] = defaultdict(dict)
        for (span, _), row in self.rows.items():
            line = lines[span.file, span.line]
            for name, n in row.items():
                if n:
                    line[name] = line.get(name, 0) + n
        return dict(sorted(lines.items()))

    def derived(self) -> dict[str, float]:
        """Ratios, left out where nothing was counted.

        warp_execution_efficiency: active lanes a warp instruction, of 32. branch_efficiency: branches that did
        not diverge. global_*_efficiency: bytes asked for, of the bytes of the sectors moved. *_sectors_per_request.
        shared_efficiency: wavefronts a conflict-free kernel would need, of those it took.
        arithmetic_intensity: floating-point operations (an fma counts once) a byte of global sectors.
        """
        t = self.totals()
        found: dict[str, float] = {}

        def ratio(name: str, a: float, b: int) -> None:
            if b:
                found[name] = a / b

        ratio("warp_execution_efficiency", t["thread_instructions"], t["warp_instructions"] * self.warp)
        ratio("branch_efficiency", t["branches"] - t["divergent_branches"], t["branches"])
        for kind in GLOBAL:
            if kind in ("global_load", "global_store"):
                ratio(f"{kind}_efficiency", t[f"{kind}_bytes"], t[f"{kind}_sectors"] * self.sector)
            ratio(f"{kind}_sectors_per_request", t[f"{kind}_sectors"], t[f"{kind}_requests"])
        wavefronts = sum(t[f"{kind}_wavefronts"] for kind in SHARED)
        ratio("shared_efficiency", wavefronts - sum(t[f"{kind}_conflicts"] for kind in SHARED), wavefronts)
        floats = sum(t[f"warp_instructions.{c}"] for c in ("fp32", "fp64", "fdiv")) * self.warp
        ratio(
            "arithmetic_intensity",
            floats * found.get("warp_execution_efficiency", 0.0),
            sum(t[f"{kind}_sectors"] for kind in GLOBAL) * self.sector,
        )
        return found
