"""The compiled view of a kernel, as tables and as JSON."""

from collections import Counter
from typing import Any

from simtbed.compiled.kernel import CompiledKernel

from .. import tables
from .annotate import short


def text(kernel: CompiledKernel) -> str:
    """Return counters compared with the source, the accesses that differ, and the outputs that differ."""
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
    for name, count in kernel.memory.items():
        if count or totals[name]:
            rows.append([name.replace("_", " "), f"{count:,}", f"{totals[name]:,}"])
    paragraphs = [title, tables.table(["", "compiled", "source"], rows)]
    paragraphs.append(tables.table(["pipe", "warp instructions", "share"], _pipes(kernel)))
    if kernel.differences:
        places = [(one.place[0], one.what) for one in kernel.differences]
        differences = [f"  {_place(kernel, at)}: {what}\n      {_line(kernel, at)}".rstrip() for at, what in places]
        paragraphs.append("\n".join(["lines with other memory accesses than in the source:", *differences]))
    if kernel.executed.sampled > 1:
        paragraphs.append(f"one of {kernel.executed.sampled:,} blocks was executed")
    if kernel.output_differences:
        rows_of_outputs = (f"  {name}: {reason}" for name, reason in kernel.output_differences.items())
        paragraphs.append("\n".join(["outputs with other bits than the emulator's:", *rows_of_outputs]))
    return "\n\n".join(paragraphs)


def _pipes(kernel: CompiledKernel) -> list[list[str]]:
    """Return the rows of the table of pipes. Their counts add up to the warp instructions."""
    rows = [(name, count) for name, count in kernel.pipes.items()]
    for text, sign, pipes in (("no pipe", 1, 0), ("in two pipes", -1, 2)):
        counts: Counter[str] = Counter()
        for executed in kernel.instructions:
            if len(executed.pipes) == pipes and executed.warps:
                counts[executed.instruction.opcode] += round(executed.warps)
        opcodes = [opcode for opcode, _ in counts.most_common()]
        rows.append((f"{text} ({', '.join(opcodes)})", float(sign * counts.total())))
    return [[name, f"{count:,.0f}", f"{count / kernel.warp_instructions:.0%}"] for name, count in rows if count]


def _place(kernel: CompiledKernel, line: int) -> str:
    """Return the place of a printed line in the source of the kernel."""
    span = kernel.launched.source_span(line)
    return span.place if span and span.line else f"line {line} of the printed kernel"


def _line(kernel: CompiledKernel, line: int) -> str:
    span = kernel.launched.source_span(line)
    return span.source.strip() if span and span.line else ""


def _located(kernel: CompiledKernel, line: int) -> dict[str, Any]:
    """Return file and line of a printed line in the source of the kernel; null if it has none."""
    span = kernel.launched.source_span(line)
    return {"file": short(span.file), "line": span.line} if span and span.line else {"file": None, "line": None}


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
        "memory": kernel.memory,
        "sampled": kernel.executed.sampled,
        "outputs": kernel.output_differences,
        "differences": [
            {
                **_located(kernel, one.place[0]),
                "access": one.kind,
                "source": one.source,
                "compiled": one.compiled,
                "what": one.what,
            }
            for one in kernel.differences
        ],
        "instructions": [
            {
                "text": one.instruction.text,
                **_located(kernel, one.place[0]),
                "pipes": list(one.pipes),
                "warps": round(one.warps),
                "threads": round(one.threads),
            }
            for one in kernel.instructions
        ],
    }
