"""The compiled view of a kernel, as tables and as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from simtbed.compiled.kernel import CompiledKernel

from .. import tables


def text(kernel: CompiledKernel) -> str:
    """Figures beside the source's, where accesses differ and why, and what could not be counted."""
    launched, launches = kernel.launched, kernel.launched.launches
    launches_made = f"{launches:,} launch{'' if launches == 1 else 'es'}"
    title = f"{kernel.name}, {launches_made}, {kernel.registers} registers, occupancy {kernel.occupancy.percent:g} %"
    totals = launched.counters.totals()
    efficiency = launched.counters.derived()["warp_execution_efficiency"]
    rows = [
        ["warp instructions", f"{kernel.warp_instructions:,}", f"{totals['warp_instructions']:,}"],
        ["threads of an instruction", f"{100 * kernel.efficiency:.1f} %", f"{100 * efficiency:.1f} %"],
    ]
    for name, count in kernel.memory.figures.items():
        if count or totals[name]:
            rows.append([name.replace("_", " "), f"{count:,}", f"{totals[name]:,}"])
    parts = [title, tables.table(["", "compiled", "source"], rows)]
    pipes = [
        [name, f"{count:,.0f}", f"{count / kernel.warp_instructions:.0%}"]
        for name, count in kernel.pipes.items()
        if count
    ]
    parts.append(tables.table(["pipe", "warp instructions", "of all"], pipes))
    lines = launched.source.lines
    if kernel.memory.differences:
        differences = [f"  {one}\n      {_line(lines, one.place[0])}" for one in kernel.memory.differences]
        parts.append("\n".join(["lines of the printed kernel that access memory otherwise:", *differences]))
    if unsure := uncertain(kernel):
        parts.append(
            "\n".join(["instructions whose executions are not certain:", *(f"  {n:,}: {why}" for why, n in unsure)])
        )
    return "\n\n".join(parts)


def _line(lines: Any, number: int) -> str:
    return str(lines[number - 1].text).strip() if 0 < number <= len(lines) else ""


def uncertain(kernel: CompiledKernel) -> list[tuple[str, int]]:
    """Why executions are not certain, and of how many instructions."""
    return Counter(one.why for one in kernel.instructions if one.why).most_common()


def content(kernel: CompiledKernel) -> dict[str, Any]:
    """For `--json`: every instruction too."""
    return {
        "kernel": kernel.name,
        "launches": kernel.launched.launches,
        "registers": kernel.registers,
        "occupancy": kernel.occupancy.percent,
        "warp_instructions": kernel.warp_instructions,
        "thread_instructions": kernel.thread_instructions,
        "efficiency": kernel.efficiency,
        "pipes": {name: round(count) for name, count in kernel.pipes.items()},
        "memory": kernel.memory.figures,
        "differences": [
            {
                "line": one.place[0],
                "access": one.kind,
                "accesses": one.accesses,
                "compiled": one.compiled,
                "what": one.what,
            }
            for one in kernel.memory.differences
        ],
        "instructions": [
            {
                "text": one.instruction.text,
                "line": one.place[0],
                "pipes": list(one.pipes),
                "warps": round(one.warps),
                "threads": round(one.threads),
                **({"least": round(one.least), "most": round(one.most), "why": one.why} if one.why else {}),
            }
            for one in kernel.instructions
        ],
    }
