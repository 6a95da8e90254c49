"""The compiled view of a kernel, as tables and as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from simtbed.compiled.kernel import CompiledKernel

from .. import tables


def text(kernel: CompiledKernel) -> str:
    """Return counters compared with the source, the accesses that differ, and the instructions with uncertain counts."""
    launched, launches = kernel.launched, kernel.launched.launches
    count_of_launches = f"{launches:,} launch{'' if launches == 1 else 'es'}"
    title = (
        f"{kernel.name}, {count_of_launches}, {kernel.registers} registers, occupancy {kernel.occupancy.percent:g} %"
    )
    totals = launched.counters.totals()
    efficiency = launched.counters.derived()["warp_execution_efficiency"]
    rows = [
        ["warp instructions", f"{kernel.warp_instructions:,}", f"{totals['warp_instructions']:,}"],
        ["threads per instruction", f"{100 * kernel.efficiency:.1f} %", f"{100 * efficiency:.1f} %"],
    ]
    for name, count in kernel.memory.counters.items():
        if count or totals[name]:
            rows.append([name.replace("_", " "), f"{count:,}", f"{totals[name]:,}"])
    paragraphs = [title, tables.table(["", "compiled", "source"], rows)]
    pipes = [
        [name, f"{count:,.0f}", f"{count / kernel.warp_instructions:.0%}"]
        for name, count in kernel.pipes.items()
        if count
    ]
    paragraphs.append(tables.table(["pipe", "warp instructions", "share"], pipes))
    lines = launched.source.lines
    if kernel.memory.differences:
        differences = [f"  {one}\n      {_line(lines, one.place[0])}" for one in kernel.memory.differences]
        paragraphs.append("\n".join(["lines of the printed kernel with other memory accesses:", *differences]))
    if reasons := uncertain(kernel):
        lines_of_reasons = (f"  {n:,}: {reason}" for reason, n in reasons)
        paragraphs.append("\n".join(["instructions with uncertain execution counts:", *lines_of_reasons]))
    return "\n\n".join(paragraphs)


def _line(lines: Any, number: int) -> str:
    return str(lines[number - 1].text).strip() if 0 < number <= len(lines) else ""


def uncertain(kernel: CompiledKernel) -> list[tuple[str, int]]:
    """Return the reasons for uncertain execution counts, with numbers of instructions."""
    return Counter(one.uncertainty for one in kernel.instructions if one.uncertainty).most_common()


def content(kernel: CompiledKernel) -> dict[str, Any]:
    """Return the JSON content, with every instruction."""
    return {
        "kernel": kernel.name,
        "launches": kernel.launched.launches,
        "registers": kernel.registers,
        "occupancy": kernel.occupancy.percent,
        "warp_instructions": kernel.warp_instructions,
        "thread_instructions": kernel.thread_instructions,
        "efficiency": kernel.efficiency,
        "pipes": {name: round(count) for name, count in kernel.pipes.items()},
        "memory": kernel.memory.counters,
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
                **(
                    {"least": round(one.least), "most": round(one.most), "why": one.uncertainty}
                    if one.uncertainty
                    else {}
                ),
            }
            for one in kernel.instructions
        ],
    }
