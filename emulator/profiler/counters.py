"""Counters of a launch, by name, source text and line, and the efficiencies derived from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..checked import closest, shown
from ..errors import SimtbedError
from ..language.intrinsics import WARP_SIZE
from ..span import Span
from .events import GLOBAL, MEANING, SHARED, Counts, by_site

Key = tuple[Span, str]
Row = dict[str, int]


@dataclass(frozen=True, repr=False)
class Counters:
    """Named counters of source places. Sites of one place and kind are one row."""

    rows: Mapping[Key, Row]
    sector: int = 32
    warp: int = WARP_SIZE

    def __repr__(self) -> str:
        lines = len({(span.file, span.line) for span, _ in self.rows})
        sectors = sum(self.total(f"{kind}_sectors") for kind in GLOBAL)
        return f"<Counters: lines {lines}; warp instructions {self.total('warp_instructions'):,}; sectors {sectors:,}>"

    @staticmethod
    def from_sites(sites: Iterable[tuple[str, Span, int, dict[str, int]]], counts: Counts, sector: int) -> Counters:
        """Return the counters of sites (kind, span, bytes per lane, costs) with int64[site, column] counts."""
        rows: dict[Key, Row] = {}
        for (kind, span, size, costs), count in zip(sites, counts, strict=True):
            row = rows.setdefault((Span(span.file, span.line, span.column, span.end_line, span.end_column), kind), {})
            for name, n in by_site(kind, size, costs, count):
                row[name] = row.get(name, 0) + n
        return Counters(rows, sector)

    def __add__(self, other: Counters) -> Counters:
        """Return the sum of the counts of both launches, place by place."""
        rows = {key: dict(row) for key, row in self.rows.items()}
        for key, row in other.rows.items():
            into = rows.setdefault(key, {})
            for name, n in row.items():
                into[name] = into.get(name, 0) + n
        return Counters(rows, self.sector, self.warp)

    def total(self, name: str) -> int:
        """Return the sum of one counter. Raises SimtbedError if there is no such counter."""
        if not isinstance(name, str) or name not in MEANING:
            near = closest(name, MEANING) if isinstance(name, str) else None
            first = [one for one in MEANING if "." not in one][:6]
            others = f"there are {', '.join(first)} and {len(MEANING) - len(first)} others, the keys of totals()"
            advice = f"do you mean {near}?" if near else others
            raise SimtbedError(f"no counter is called {shown(name)}; {advice}")
        return sum(row.get(name, 0) for row in self.rows.values())

    def totals(self) -> Row:
        """Return every counter, in the order of `events.MEANING`."""
        return {name: self.total(name) for name in MEANING}

    def at(self, text: str) -> Counters:
        """Return the counters of source lines that contain `text`. Raises SimtbedError if there are none."""
        if not isinstance(text, str):
            raise SimtbedError(f"a place is given by a text in its line, not by {shown(text)}")
        rows = {key: row for key, row in self.rows.items() if text in key[0].source}
        if not rows:
            raise SimtbedError(f"no counted line holds {text!r}")
        return Counters(rows, self.sector, self.warp)

    def by_line(self) -> dict[tuple[str, int], Row]:
        """Return the counters by (file, line), without zeros."""
        lines: dict[tuple[str, int], Row] = defaultdict(dict)
        for (span, _), row in self.rows.items():
            line = lines[span.file, span.line]
            for name, n in row.items():
                if n:
                    line[name] = line.get(name, 0) + n
        return dict(sorted(lines.items()))

    def derived(self) -> dict[str, float]:
        """Return ratios, without those whose denominator is 0.

        warp_execution_efficiency: active lanes per warp instruction, of 32. branch_efficiency: fraction of branches without
        divergence. global_*_efficiency: requested bytes per byte of the sectors moved. *_sectors_per_request.
        shared_efficiency: wavefronts of conflict-free accesses per wavefront executed.
        arithmetic_intensity: floating-point operations (an fma counts once) per byte of global sectors.
        """
        t = self.totals()
        ratios: dict[str, float] = {}

        def ratio(name: str, a: float, b: int) -> None:
            if b:
                ratios[name] = a / b

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
            floats * ratios.get("warp_execution_efficiency", 0.0),
            sum(t[f"{kind}_sectors"] for kind in GLOBAL) * self.sector,
        )
        return ratios
