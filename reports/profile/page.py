"""A profile as a page of text, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from simtbed import Profile, Run

from .. import tables
from . import counter_tables
from .annotate import annotated, hottest, short
from .memory_traffic import Traffic, memory_traffic


def text(profile: Profile) -> str:
    """Totals, ratios, the worst lines, global memory, and the source line by line."""
    moved = memory_traffic(profile)
    parts = [
        counter_tables.totals(profile),
        counter_tables.derived(profile),
        "\n".join(str(line) for line in hottest(profile)),
        *(["\n".join(str(one) for one in told)] if (told := profile.explanations()) else []),
        *([_traffic(moved)] if moved else []),
        annotated(profile),
    ]
    return "\n\n".join(parts)


def content(profile: Profile) -> dict[str, Any]:
    """The same for programs."""
    return {
        "totals": profile.totals(),
        "derived": profile.derived(),
        "hottest": [
            {"what": h.what, "file": short(h.place[0]), "line": h.place[1], "count": h.count} for h in hottest(profile)
        ],
        "explanations": [
            {
                "file": short(one.place.span.file),
                "line": one.place.span.line,
                "what": one.what,
                "sentence": one.sentence,
                "remedy": one.remedy,
                "cycles": one.cycles,
                "share": one.share,
            }
            for one in profile.explanations()
        ],
        "traffic": [{**asdict(t), "file": short(t.file), "apart": t.apart} for t in memory_traffic(profile)],
        "lines": [{"file": short(file), "line": line, **row} for (file, line), row in profile.by_line().items()],
    }


def kernels(run: Run) -> str:
    """The kernels of a run, each with its launches and the largest of its counters."""
    profiles: Mapping[str, Profile] = run.profiles()
    rows = []
    for name, launches in run.by_kernel().items():
        row: list[Any] = [name, len(launches), f"{1000 * sum(one.seconds for one in launches):,.1f}"]
        if name in profiles:
            counters = profiles[name].counters
            sectors = sum(counters.total(f"global_{kind}_sectors") for kind in ("load", "store", "atomic", "reduction"))
            wavefronts = sum(counters.total(f"shared_{kind}_wavefronts") for kind in ("load", "store", "atomic"))
            row += [counters.total("warp_instructions"), sectors, wavefronts]
        rows.append(row)
    return tables.table(["kernel", "launches", "ms here", "instructions", "sectors", "wavefronts"], rows)


def _traffic(moved: list[Traffic]) -> str:
    """Global memory line by line, as it is and as it would be with one row a lane."""
    headers = ["global memory", "access", "bytes a lane", "requests", "sectors", "a request", "used", "sectors apart"]
    rows = [
        [
            f"{short(t.file)}:{t.line}", t.kind.removeprefix("global_"), t.size, t.requests, t.sectors,
            f"{t.sectors / t.requests:.2f}", f"{100 * t.used:.1f} %", "" if t.apart is None else t.apart,
        ]
        for t in moved
    ]  # fmt: skip
    text = tables.table(headers, rows, left=2)
    if any(t.apart is None for t in moved):
        text += "\nused above 100 %: lanes ask for the same bytes, which no layout changes"
    spread = [t for t in moved if t.apart is not None]
    if not spread:
        return text
    sectors, apart, asked = (
        sum(t.sectors for t in spread),
        sum(t.apart or 0 for t in spread),
        sum(t.bytes for t in spread),
    )
    used = 100 * asked / (apart * spread[0].sector)
    return (
        f"{text}\napart: with a row of its own for each lane (for pairs: pair-major), these accesses would move {apart:,} sectors\n"
        f"instead of {sectors:,}, {apart / sectors:.1f} times as many, of which {used:.1f} % would be used"
    )
