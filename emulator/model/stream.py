"""A compiled kernel as what warps of an SM execute: its instructions with the compiler's control bits, what its accesses find in
the caches, and how often each branch goes which way."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from ..compiled.classes import EFFECTS, width_of
from ..compiled.control_flow import Graph, graph
from ..compiled.counted import Counted
from ..compiled.kernel import CompiledKernel
from ..compiled.memory import phases_of
from ..machine.device import WARP, Device
from ..profiler import events
from ..profiler.events import Counts
from ..profiler.warps import WarpDecisions
from .caches import (
    ACCESSES,
    ASKED,
    BANKS,
    FAR_HITS,
    LATE,
    LINES,
    LONE,
    MERGED,
    MISSES,
    NEAR_HITS,
    SECTORS,
    STREWN,
    Traffic,
)
from .lines import ATOMIC, LOCAL_STORE, STORE
from .ways import Ways, ways

Words = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

STALL, WAITS, WRITES, READS, PIPE, COST, KIND, LATENCY = range(8)
WORDS = 9
"""Words of an instruction: cycles until the warp's next, a mask of scoreboards that it waits for, the scoreboards that it holds
until its result is written and its operands are read (-1: none), its pipe (-1: none) and for how many cycles, what it does, and
when its result is written."""
PLAIN, GLOBAL, SHARED, BARRIER = range(4)
SHARE, LSU, SECTORS_OUT, MISSED, WRITTEN, FAR, BEYOND, WAITED = range(8)
FIGURES = 8
"""Figures of an access, of one execution: the share of executions that access memory at all; cycles of the load and store unit;
sectors asked of L2, or what its requests cost as sectors, of device memory, and written to it; how likely it waits for the far
half of L2, for device memory, and for L2 at all."""
OWN_PIPES = ("alu", "fma", "fp64", "xu", "adu", "uniform", "cbu")
"""Of a scheduler; the load and store unit is one for all of an SM."""
_LSU = len(OWN_PIPES)
_LONE = 1.3
"""Sectors more that device memory could move in the time of one that is alone: another one that nobody asked for. Where the lines of an
access do not lie side by side it is another row (`Timing.dram_row`). One number of 64 and of 128 bytes each, on an H200."""
_MEMORIES = ("global", "shared", "local", "constant")
_CONSTANT = 2.05
"""Cycles of an SM between different addresses of constant memory: tables looked up by 30 addresses a warp on an H200."""
_SLOW = {
    "LDC": 35,
    "S2R": 25,
    "S2UR": 25,
    "CS2R": 15,
    "R2UR": 10,
    "SHFL": 0,
    "VOTE": 12,
    "POPC": 0,
    "FLO": 0,
    "BREV": 0,
}
"""Cycles of instructions whose results a scoreboard announces and that are no access."""


@dataclass(frozen=True)
class Stream:
    """What a warp executes.

    code: int64[instruction, WORDS]. memory: float64[instruction, FIGURES]. ways: which warps go which way.
    executed: instructions by warps, of the whole launch; pipes: of them by pipe.
    """

    code: Words
    memory: Floats
    ways: Ways
    executed: float
    pipes: dict[str, float]


def stream(compiled: CompiledKernel, traffic: Traffic, device: Device, decided: WarpDecisions) -> Stream:
    """From the counts of a compiled kernel, what caches were found to answer, and what single warps decided."""
    whole = graph(tuple(one.instruction for one in compiled.instructions))
    code = np.zeros((len(compiled.instructions), WORDS), np.int64)
    memory = np.zeros((len(compiled.instructions), FIGURES))
    costs = _costs(device)
    for n, one in enumerate(compiled.instructions):
        instruction, control = one.instruction, one.instruction.control
        row = code[n]
        row[STALL] = max(1, control.stall) if control else device.timing.alu
        row[WRITES] = row[READS] = row[PIPE] = -1
        if control:
            row[WAITS] = sum(1 << board for board in control.waits)
            row[WRITES] = -1 if control.writes is None else control.writes
            row[READS] = -1 if control.reads is None else control.reads
        pipe = next((pipe for pipe in one.pipes), "")
        if pipe in OWN_PIPES:
            row[PIPE] = OWN_PIPES.index(pipe)
            row[COST] = costs["imul"] if instruction.opcode == "IMAD" else costs[pipe]
        elif pipe == "lsu":
            row[PIPE], row[COST] = _LSU, 1
        row[LATENCY] = _latency(instruction.opcode, pipe, device)
        if instruction.opcode == "BAR":
            row[KIND], row[PIPE] = BARRIER, -1
        if instruction.opcode == "SHFL":
            memory[n, SHARE], memory[n, LSU], row[KIND] = 1.0, WARP / max(1, device.rates.shuffle), SHARED
    _accesses(compiled, traffic, device, code, memory)
    executed = np.array([compiled.instructions[first].warps for first, _ in whole.blocks])
    each = np.array([past - first for first, past in whole.blocks])
    request = compiled.launched.request
    found = ways(
        whole, executed, [one.place for one in compiled.instructions], compiled.source, decided, prod(request.grid),
        -(-prod(request.block) // WARP),
    )  # fmt: skip
    return Stream(code, memory, found, float((executed * each).sum()), _by_pipe(whole, compiled, executed))


def _by_pipe(whole: Graph, compiled: CompiledKernel, executed: Floats) -> dict[str, float]:
    """Executions by pipe, products of integers apart from the others of their pipe."""
    found: dict[str, float] = defaultdict(float)
    for block, (first, past) in enumerate(whole.blocks):
        for one in compiled.instructions[first:past]:
            for pipe in one.pipes:
                found[pipe] += float(executed[block])
            if one.instruction.opcode == "IMAD":
                found["imul"] += float(executed[block])
    return dict(found)


def _costs(device: Device) -> dict[str, int]:
    """Cycles that an instruction keeps a pipe of a scheduler busy."""
    each = device.timing.schedulers * WARP
    rates = device.rates
    of = {"alu": rates.alu, "fma": rates.fp32, "fp64": rates.fp64, "xu": rates.sfu, "imul": rates.imul}
    return {"adu": 2, "uniform": 2, "cbu": 2} | {pipe: max(1, each // max(1, rate)) for pipe, rate in of.items()}


def _latency(opcode: str, pipe: str, device: Device) -> int:
    timing = device.timing
    if opcode == "SHFL":
        return timing.shuffle
    if pipe == "xu":
        return timing.sfu
    if pipe == "fp64":
        return timing.fp64
    return _SLOW.get(opcode, timing.alu)


# ------------------------------------------------------------------ accesses
def _accesses(compiled: CompiledKernel, traffic: Traffic, device: Device, code: Words, memory: Floats) -> None:
    """Fill in what accesses find: those of a place of the source share what its statements found."""
    launched = compiled.launched
    assert launched.counts is not None
    source = compiled.source
    sites: dict[tuple[object, str], list[int]] = defaultdict(list)
    spread: dict[str, list[int]] = defaultdict(list)
    for statement in source.statements.values():
        if statement.lanes and statement.site.kind.partition("_")[0] in _MEMORIES:
            sites[statement.place, statement.site.kind].append(statement.number)
            spread[statement.site.kind].append(statement.number)
    compiled_at: dict[tuple[object, str], list[int]] = defaultdict(list)
    for n, one in enumerate(compiled.instructions):
        kind = "constant_load" if one.instruction.opcode == "LDC" else EFFECTS.get(one.instruction.opcode, "")
        if kind.partition("_")[0] in _MEMORIES:
            compiled_at[one.place, kind].append(n)
    for (place, kind), at in compiled_at.items():
        found = sites.get((place, kind)) or spread.get(kind, [])
        executed = sum(compiled.instructions[n].warps for n in at)
        if kind == "constant_load":
            apart = _apart(traffic, sites.get((place, kind), []))
            for n in at if apart > 1 else ():
                memory[n, SHARE], memory[n, LSU], code[n, KIND], code[n, PIPE] = 1.0, _CONSTANT * apart, SHARED, _LSU
            continue
        if kind.startswith("shared") or (kind.startswith("local") and not found):
            if kind.startswith("shared"):
                figures = _of_shared(launched.counts, found, executed, device)
                latency = device.timing.shared
            else:
                figures, latency = np.zeros(FIGURES), device.timing.l1
                figures[SHARE], figures[LSU] = 1.0, device.timing.request_interval
            for n in at:
                memory[n], code[n, KIND], code[n, LATENCY], code[n, PIPE] = figures, SHARED, latency, _LSU
                one = compiled.instructions[n]
                least = phases_of(kind, width_of(one.instruction), WARP) * WARP / max(1, device.rates.shared)
                memory[n, LSU] = max(figures[LSU], least if kind.startswith("shared") else _returned(one, device))
            continue
        figures = _of_global(traffic, launched.counts, found, executed, device, kind, compiled.memory.together)
        loads = kind in ("global_load", "local_load", "global_atomic")
        for n in at:
            memory[n], code[n, KIND], code[n, PIPE] = figures, GLOBAL, _LSU
            memory[n, LSU] = max(figures[LSU], _returned(compiled.instructions[n], device))
            code[n, LATENCY] = device.timing.l1 if kind.endswith("load") else device.timing.atomic if loads else 0


def _returned(one: Counted, device: Device) -> float:
    """Cycles in which the registers of a warp are filled from L1, whatever they are filled with."""
    return width_of(one.instruction) * WARP / (4.0 * max(1, device.rates.shared))


def _apart(traffic: Traffic, sites: list[int]) -> float:
    """Different addresses of constant memory that the lanes of an access want."""
    accesses, lines = (int(traffic.sites[sites, column].sum()) for column in (ACCESSES, LINES))
    return lines / accesses if accesses else 0.0


def _of_shared(counts: Words, sites: list[int], executed: float, device: Device) -> Floats:
    figures = np.zeros(FIGURES)
    requests = sum(int(counts[site, events.REQUESTS]) for site in sites)
    wavefronts = sum(int(counts[site, events.WAVEFRONTS]) for site in sites)
    figures[SHARE] = min(1.0, requests / executed) if executed else 1.0
    figures[LSU] = max(1.0, wavefronts / requests * WARP / max(1, device.rates.shared)) if requests else 1.0
    return figures


def as_sectors(lines: float, sectors: float, device: Device, stored: bool) -> float:
    """What L2 does for requests of so many sectors in so many lines, as sectors of lines that are read whole. stored: of stores."""
    timing = device.timing
    rate = timing.l2_bandwidth * 1000 / 32 / device.clock  # sectors a cycle
    first = rate / (timing.request_rate if stored else timing.load_rate)
    more = max(0.0, ((4 * rate / timing.store_rate if stored else 4.0) - first) / 3)
    return lines * first + max(0.0, sectors - lines) * more


def _of_global(
    traffic: Traffic, counts: Counts, sites: list[int], executed: float, device: Device, kind: str,
    together: frozenset[int],
) -> Floats:  # fmt: skip
    """together: sites whose atomics one lane makes for all."""
    figures, timing = np.zeros(FIGURES), device.timing
    rows = (
        traffic.sites[sites].astype(np.float64)
        if sites
        else np.zeros((1, len(traffic.sites[0]) if len(traffic.sites) else 8))
    )
    total = rows.sum(0)
    if not total[ACCESSES] or not executed:
        return figures
    share = figures[SHARE] = min(1.0, total[ACCESSES] / executed)
    accesses = share * executed  # those of the source that nvcc did not merge
    lines, sectors = total[LINES] / total[ACCESSES], total[SECTORS] / total[ACCESSES]
    banks, looked_up = total[BANKS] / total[ACCESSES], lines / timing.lookup_rate
    figures[LSU] = max(timing.request_interval, banks, looked_up, sectors * 32 / timing.l1_width)
    misses = total[MISSES]
    out = misses + total[FAR_HITS] + total[NEAR_HITS]
    figures[SECTORS_OUT] = as_sectors(total[ASKED], out, device, stored=False) / accesses
    strewn = total[STREWN] / total[ACCESSES]
    figures[MISSED] = (misses + (_LONE + strewn * (timing.dram_row - _LONE)) * total[LONE]) / accesses

    def likely(part: float) -> float:
        """That one of an access's lines is among so many sectors."""
        return float(1 - (1 - min(1.0, part / max(1.0, total[SECTORS]))) ** max(1.0, lines))

    later = 1 + total[LATE] / out if out else 1.0  # lines that another warp waits for already are waited for as long
    figures[BEYOND] = likely(misses * later)
    figures[FAR] = likely((misses + total[FAR_HITS]) * later)
    figures[WAITED] = likely(out * later)
    if not kind.endswith("load"):
        rate = timing.l2_bandwidth * 1000 / 32 / device.clock  # sectors a cycle
        stored = max(1, traffic.total(SECTORS, STORE, ATOMIC, LOCAL_STORE))
        figures[WRITTEN] = sectors * (traffic.dram_written + traffic.dram_filled + traffic.dram_wasted) / 32 / stored
        if kind.endswith("store"):
            sent = total[SECTORS] - total[MERGED]
            figures[SECTORS_OUT] = as_sectors(total[ASKED], sent, device, stored=True) / total[ACCESSES]
            figures[MISSED] = 0.0
            figures[LSU] = max(figures[LSU], total[ASKED] / total[ACCESSES] * timing.line_interval)
        else:
            requests = sum(int(counts[s, events.REQUESTS if s in together else events.SECTORS]) for s in sites)
            rate /= timing.fetch_rate if kind == "global_atomic" else timing.atomic_rate
            figures[SECTORS_OUT] = max(sectors, requests / total[ACCESSES] * rate)
    return figures
