"""The report of a profile, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from simtbed import Profile, Run
from simtbed.escaping import printable
from simtbed.profiler.explain import NO_EXPLANATION

from .. import tables
from . import counter_tables
from .annotate import annotated, hottest, short
from .memory_traffic import Traffic, memory_traffic

if TYPE_CHECKING:  # imported late: it takes half a second
    from simtbed.compiled.kernel import CompiledKernel


def text(profile: Profile, shipped: bool) -> str:
    """Return totals, ratios, the most expensive lines, avoidable costs, global memory traffic, and the annotated source.

    shipped: whether the kernels are those of a family, whose traffic is compared with that of a row per lane.
    """
    traffic = memory_traffic(profile)
    paragraphs = [
        counter_tables.totals(profile),
        counter_tables.derived(profile),
        "\n".join(str(line) for line in hottest(profile)),
        "\n".join(map(str, profile.explanations())) or NO_EXPLANATION,
        *([_traffic(traffic, shipped)] if traffic else []),
        annotated(profile),
    ]
    return "\n\n".join(paragraphs)


def content(profile: Profile, shipped: bool) -> dict[str, Any]:
    """Return the JSON content. shipped: as of `text`."""
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
                "lines": [[short(place.span.file), place.span.line] for place in one.places],
                "savings": dict(one.savings),
                "cycles": one.cycles,
                "share": one.share,
            }
            for one in profile.explanations()
        ],
        "traffic": [
            {**asdict(t), "file": short(t.file)} | ({"sectors_if_scattered": t.sectors_if_scattered} if shipped else {})
            for t in memory_traffic(profile)
        ],
        "lines": [{"file": short(file), "line": line, **row} for (file, line), row in profile.by_line().items()],
    }


def kernels(run: Run) -> str:
    """Return the table of the kernels of a run: launches, time and main counters."""
    profiles: Mapping[str, Profile] = run.profiles()
    rows = []
    for name, launches in run.by_kernel().items():
        row: list[Any] = [name, len(launches), f"{1000 * sum(launch.seconds for launch in launches):,.1f}"]
        if name in profiles:
            counters = profiles[name].counters
            sectors = sum(counters.total(f"global_{kind}_sectors") for kind in ("load", "store", "atomic", "reduction"))
            wavefronts = sum(counters.total(f"shared_{kind}_wavefronts") for kind in ("load", "store", "atomic"))
            row += [counters.total("warp_instructions"), sectors, wavefronts]
        rows.append(row)
    return tables.table(["kernel", "launches", "host ms", "warp instructions", "sectors", "wavefronts"], rows)


def instructions(compiled: Sequence[CompiledKernel] | str) -> str:
    """Return the table of instructions of the source and of the SASS. compiled: the kernels, or the reason why there are none."""
    if isinstance(compiled, str):
        return f"warp instructions are those of the source, without the compiler's: {printable(compiled)}"
    rows = []
    for kernel in compiled:
        source = kernel.launched.counters
        counts = [f"{source.total('warp_instructions'):,}", f"{kernel.warp_instructions:,}"]
        efficiencies = (source.derived()["warp_execution_efficiency"], kernel.efficiency)
        rows.append([kernel.name, kernel.launched.launches, *counts, *(f"{100 * each:.1f} %" for each in efficiencies)])
    headers = ["kernel", "launches", "warp instructions", "compiled", "threads per instruction", "compiled"]
    return tables.table(headers, rows)


def instructions_as_json(compiled: Sequence[CompiledKernel] | str) -> dict[str, Any]:
    """Return the JSON content of `instructions`."""
    if isinstance(compiled, str):
        return {"compiled": None, "compiled_reason": compiled}
    names = ("name", "registers", "warp_instructions", "thread_instructions", "efficiency")
    rows = ({name: getattr(kernel, name) for name in names} for kernel in compiled)
    return {
        "compiled": [{"launches": kernel.launched.launches, **row} for kernel, row in zip(compiled, rows, strict=True)]
    }


def _traffic(traffic: list[Traffic], shipped: bool) -> str:
    """Return the table of global memory accesses by line; of shipped kernels, with the sectors of a scattered layout."""
    headers = ["global memory", "access", "bytes/lane", "requests", "sectors", "sectors/request", "efficiency"]
    rows: list[list[Any]] = [
        [
            f"{short(t.file)}:{t.line}", t.kind.removeprefix("global_"), t.size, t.requests, t.sectors,
            f"{t.sectors / t.requests:.2f}", f"{100 * t.efficiency:.1f} %",
        ]
        for t in traffic
    ]  # fmt: skip
    if shipped:
        headers.append("sectors if scattered")
        for t, row in zip(traffic, rows, strict=True):
            row.append("" if t.sectors_if_scattered is None else t.sectors_if_scattered)
    text = tables.table(headers, rows, left=2)
    if any(t.sectors_if_scattered is None for t in traffic):
        text += "\nefficiency above 100 %: lanes request the same bytes; the layout has no effect"
    disjoint = [t for t in traffic if t.sectors_if_scattered is not None]
    if not (shipped and disjoint):
        return text
    sectors, scattered = sum(t.sectors for t in disjoint), sum(t.sectors_if_scattered or 0 for t in disjoint)
    efficiency = 100 * sum(t.bytes for t in disjoint) / (scattered * disjoint[0].sector)
    return (
        f"{text}\nscattered: with a separate row per lane (pair-major for pairs), these accesses transfer {scattered:,} sectors\n"
        f"instead of {sectors:,}, {scattered / sectors:.1f} times as many, with an efficiency of {efficiency:.1f} %"
    )
