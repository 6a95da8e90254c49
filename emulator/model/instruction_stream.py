"""A compiled kernel as what warps of an SM execute: its instructions with the compiler's control bits, what its accesses find in
the caches, and how often each branch goes which way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from ..compiled.control_flow import Graph, graph
from ..compiled.instruction_counts import InstructionCount
from ..compiled.kernel import CompiledKernel
from ..compiled.memory import phases_of
from ..compiled.opcode_classes import EFFECTS, access_width, is_indexed_constant_load
from ..language.intrinsics import WARP_SIZE
from ..machine.device import Device
from ..passes.work_queues import uses_dynamic_work
from ..profiler import events
from ..profiler.events import Counts
from ..profiler.warp_decisions import WarpDecisions
from .line_trace import ATOMIC, LINE, LOCAL_STORE, STORE
from .traffic import (
    ACCESSES,
    AGAIN,
    ASKED,
    AWAITED,
    BETWEEN,
    CYCLES,
    DRAM_AWAITED,
    FAR_AWAITED,
    FAR_HITS,
    LASTING,
    LINES,
    LONE,
    MERGED,
    MISSES,
    NEAR_HITS,
    PARTIAL,
    SAME,
    SECTORS,
    STREWN,
    Traffic,
)
from .warp_classes import WarpClasses, classify_warps

Words = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

STALL, WAITS, WRITES, READS, PIPE, COST, KIND, LATENCY, HEAVY = range(9)
WORDS = 9
"""Words of an instruction: cycles until the warp's next, a mask of scoreboards that it waits for, the scoreboards that it holds
until its result is written and its operands are read (-1: none), its pipe (-1: none) and for how many cycles, what it does,
when its result is written, and for how many cycles it takes the half of the pipe of products that multiplies integers: products of
floating point numbers go through the other one then."""
PLAIN, GLOBAL, SHARED, BARRIER, COUNTED = range(5)
"""What an instruction does. COUNTED: it reads what a barrier counted, and comes to it as a barrier does."""
SHARE, LSU, SECTORS_OUT, MISSED, WRITTEN, FAR, BEYOND, WAITED, SENT, SENT_AGAIN, OUT_AGAIN, BACK, REPEATED, MISSING = (
    range(14)
)
WITH, LASTS = range(14, 16)
FIGURES = 16
"""Figures of an access, of one execution: the share of executions that access memory at all; cycles of the load and store unit;
sectors asked of L2, or what its requests cost as sectors, of device memory, and written to it; how likely it waits for the far
half of L2, for device memory, and for L2 at all. SENT: lines of a store; REPEATED: the share of stores to what the warp has
stored to before; BACK: how many lines of its stores ago that was; SENT_AGAIN, OUT_AGAIN: lines, and sectors asked of L2, of such a store
that goes with the one before. MISSING: lines of a load of which L2 is asked. WITH: the instruction with which this one stands for the
same of the source, so that a warp waits at both in turn; LASTS: the part of all accesses of a warp that pass while it waits or does not:
1 / how many are waited for one after the other, times how likely that is."""
OWN_PIPES = ("alu", "fma", "fp64", "xu", "adu", "uniform", "cbu")
"""Of a scheduler; the load and store unit is one for all of an SM."""
_LSU = len(OWN_PIPES)
_LONE = 1.3
"""Sectors more that device memory could move in the time of one that is alone: another one that nobody asked for. Where the lines of an
access do not lie side by side it is another row (`Timing.dram_row`). One number of 64 and of 128 bytes each, on an H200."""
_LASTS = 1.5
"""How much likelier than by chance an access waits for L2 behind one that did, for those that do to come one after the other."""
_FEW = 8
"""Different lines of a class of warps, of which less tell nothing where not all were looked at: their standard error is 35 %."""
_MEMORIES = ("global", "shared", "local", "constant")
_DEFERRED = 8
"""Cycles behind a barrier until the compiler has a warp wait there: barriers with and without an addition between them take as long on
an H100."""
_CONSTANT = 2.05
"""Cycles of an SM between different addresses of constant memory: tables looked up by 30 addresses a warp on an H200."""
_INDEXED = 8
"""Cycles of a scheduler that a load from constant memory takes whose address is a register's: one in 2.1 cycles of an SM, on an H100."""
_SLOW = {
    "LDC": 35,
    "S2R": 25,
    "S2UR": 25,
    "CS2R": 15,
    "R2UR": 10,
    "B2R": 35,
    "SHFL": 0,
    "VOTE": 12,
    "POPC": 0,
    "FLO": 0,
    "BREV": 0,
}
"""Cycles of instructions whose results a scoreboard announces and that are no access."""


@dataclass(frozen=True)
class InstructionStream:
    """What a warp executes.

    code: int64[instruction, WORDS]. memory: float64[class, instruction, FIGURES]. ways: which warps go which way.
    executed: instructions by warps, of the whole launch; pipes: of them by pipe.
    """

    code: Words
    memory: Floats
    warp_classes: WarpClasses
    executed: float
    pipes: dict[str, float]


def ways_of(compiled: CompiledKernel, decided: WarpDecisions) -> WarpClasses:
    """Which warps of a compiled kernel go which way, by what single ones decided."""
    whole, request = _graph(compiled), compiled.launched.request
    return classify_warps(
        whole, _executed(whole, compiled), [one.place for one in compiled.instructions], compiled.source, decided, prod(request.grid),
        -(-prod(request.block) // WARP_SIZE), uses_dynamic_work(request.prepared.program.kernel),
    )  # fmt: skip


def _graph(compiled: CompiledKernel) -> Graph:
    return graph(tuple(one.instruction for one in compiled.instructions))


def _executed(whole: Graph, compiled: CompiledKernel) -> Floats:
    """How often the blocks of the graph were, by all warps."""
    return np.array([compiled.instructions[first].warps for first, _ in whole.blocks])


def stream(compiled: CompiledKernel, traffic: Traffic, device: Device, found: WarpClasses) -> InstructionStream:
    """From the counts of a compiled kernel, what caches were found to answer, and which warps go which way."""
    whole = _graph(compiled)
    code = np.zeros((len(compiled.instructions), WORDS), np.int64)
    memory = np.zeros((len(found.lengths), len(code), FIGURES))
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
            row[COST] = _INDEXED if is_indexed_constant_load(instruction) else costs[pipe]
            if instruction.opcode == "IMAD":
                row[HEAVY] = costs["imul"] * _passes(instruction.operation)
                row[COST] = row[HEAVY] if _passes(instruction.operation) > 1 else costs[pipe]
        elif pipe == "lsu":
            row[PIPE], row[COST] = _LSU, 1
        row[LATENCY] = _latency(instruction.opcode, pipe, device)
        if instruction.opcode == "BAR":
            row[KIND], row[PIPE] = BARRIER, -1
        if instruction.opcode == "B2R":
            row[KIND], row[PIPE] = COUNTED, -1
        if instruction.opcode == "SHFL":
            memory[:, n, SHARE], memory[:, n, LSU], row[KIND] = 1.0, WARP_SIZE / max(1, device.rates.shuffle), SHARED
    each = np.array([past - first for first, past in whole.blocks])
    by_class = np.repeat(found.executions * found.warps[:, None], each, axis=1)
    _accesses(compiled, traffic, device, by_class, code, memory)
    _in_order_of_source(compiled, whole, memory)
    _defer_barriers(whole, code)
    executed = _executed(whole, compiled)
    return InstructionStream(code, memory, found, float((executed * each).sum()), _by_pipe(whole, compiled, executed))


def _defer_barriers(whole: Graph, code: Words) -> None:
    """A warp waits at a barrier as late as the compiler lets it: what comes within _DEFERRED cycles behind is issued before."""
    alone = {
        first
        for block, (first, _) in enumerate(whole.blocks)
        if whole.predecessors[block] != (block - 1,) or whole.successors[block - 1] != (block,)
    }
    for at in np.flatnonzero(code[:, KIND] == BARRIER).tolist():
        last, issued = at, int(code[at, STALL])
        while issued < _DEFERRED and last + 1 < len(code) and last + 1 not in alone:
            if code[last + 1, KIND] != PLAIN or code[last + 1, PIPE] == _LSU:
                break
            last += 1
            issued += int(code[last, STALL])
        code[at, KIND], code[last, KIND] = PLAIN, BARRIER


def _in_order_of_source(compiled: CompiledKernel, whole: Graph, memory: Floats) -> None:
    """Stores of a basic block find what those of the source find, in their order: which one comes first to a line hangs on it."""
    sites: dict[tuple[object, str], int] = {}
    for number, one in sorted(compiled.source.statements.items()):
        sites.setdefault((one.place, one.site.kind), number)
    for first, past in whole.blocks:
        stores = [n for n in range(first, past) if _kind(compiled.instructions[n]) == "global_store"]
        ordered = sorted(stores, key=lambda n: sites.get((compiled.instructions[n].place, "global_store"), -1))
        memory[:, stores] = memory[:, ordered]


def _by_pipe(whole: Graph, compiled: CompiledKernel, executed: Floats) -> dict[str, float]:
    """Executions by pipe, products of integers apart from the others of their pipe."""
    found: dict[str, float] = defaultdict(float)
    for block, (first, past) in enumerate(whole.blocks):
        for one in compiled.instructions[first:past]:
            for pipe in one.pipes:
                found[pipe] += float(executed[block])
            if one.instruction.opcode == "IMAD":
                found["imul"] += float(executed[block]) * _passes(one.instruction.operation)
    return dict(found)


def _passes(operation: str) -> int:
    """Products that one of integers is made of: of all of 64 bits, and of the higher 32 of them, two. These let nothing else through
    their pipe: products of 32 bits and of floating point numbers in turn take a cycle each on an H100, such and others 2.7."""
    return 2 if {"WIDE", "HI"} & {*operation.split(".")} else 1


def _costs(device: Device) -> dict[str, int]:
    """Cycles that an instruction keeps a pipe of a scheduler busy."""
    each = device.timing.schedulers * WARP_SIZE
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
def _accesses(
    compiled: CompiledKernel, traffic: Traffic, device: Device, by_class: Floats, code: Words, memory: Floats
) -> None:
    """Fill in what accesses find: those that stand for the same statements of the source share what these found. by_class:
    float64[class, instruction], executions."""
    launched = compiled.launched
    assert launched.counts is not None
    source = compiled.source
    sites: dict[tuple[object, str], list[int]] = defaultdict(list)
    spread: dict[str, list[int]] = defaultdict(list)
    for statement in source.statements.values():
        if statement.lanes and statement.site.kind.partition("_")[0] in _MEMORIES:
            sites[statement.place, statement.site.kind].append(statement.number)
            spread[statement.site.kind].append(statement.number)
    standing: dict[tuple[str, tuple[int, ...]], list[int]] = defaultdict(list)
    for n, one in enumerate(compiled.instructions):
        kind = _kind(one)
        if one.warps and kind.partition("_")[0] in _MEMORIES and one.instruction.predicate != "@!PT":
            known = compiled.memory.sites_by_offset.get(one.instruction.offset, ()) or tuple(
                sites.get((one.place, kind), [])
            )
            standing[kind, known].append(n)
    for kind, known, at in _shared_out(standing):
        found = list(known) or spread.get(kind, [])
        executed = sum(compiled.instructions[n].warps for n in at)
        if kind == "constant_load":
            apart = _apart(traffic, list(known))
            for n in at if apart > 1 else ():
                memory[:, n, SHARE], memory[:, n, LSU], code[n, KIND], code[n, PIPE] = (
                    1.0,
                    _CONSTANT * apart,
                    SHARED,
                    _LSU,
                )
            continue
        if kind.startswith("shared") or (kind.startswith("local") and not found):
            if kind.startswith("shared"):
                figures = _of_shared(launched.counts, found, executed, device)
                latency = device.timing.shared
            else:
                figures, latency = np.zeros(FIGURES), device.timing.l1
                figures[SHARE], figures[LSU] = 1.0, device.timing.request_interval
            for n in at:
                memory[:, n], code[n, KIND], code[n, LATENCY], code[n, PIPE] = figures, SHARED, latency, _LSU
                one = compiled.instructions[n]
                least = (
                    phases_of(kind, access_width(one.instruction), WARP_SIZE) * WARP_SIZE / max(1, device.rates.shared)
                )
                memory[:, n, LSU] = max(figures[LSU], least if kind.startswith("shared") else _returned(one, device))
            continue
        of_classes = _of_classes(
            traffic,
            launched.counts,
            found,
            by_class[:, at].sum(axis=1),
            device,
            kind,
            compiled.memory.warp_aggregated,
            bool(known),
        )
        loads = kind in ("global_load", "local_load", "global_atomic")
        of_classes[:, WITH] = at[0]
        for n in at:
            memory[:, n], code[n, KIND], code[n, PIPE] = of_classes, GLOBAL, _LSU
            memory[:, n, LSU] = np.maximum(of_classes[:, LSU], _returned(compiled.instructions[n], device))
            code[n, LATENCY] = device.timing.l1 if kind.endswith("load") else device.timing.atomic if loads else 0


def _shared_out(
    standing: Mapping[tuple[str, tuple[int, ...]], Sequence[int]],
) -> Iterator[tuple[str, tuple[int, ...], list[int]]]:
    """Instructions and the sites that they stand for, of a kind; those together that stand for a site in common."""
    left = [(kind, set(known), list(at)) for (kind, known), at in standing.items()]
    while left:
        kind, known, at = left.pop(0)
        common = [one for one in left if one[0] == kind and known & one[1]]
        if common:
            left = [one for one in left if one not in common]
            left.append(
                (kind, known.union(*(sites for _, sites, _ in common)), at + [n for one in common for n in one[2]])
            )
        else:
            yield kind, tuple(sorted(known)), at


def _kind(one: InstructionCount) -> str:
    """Of an access."""
    return "constant_load" if one.instruction.opcode == "LDC" else EFFECTS.get(one.instruction.opcode, "")


def _returned(one: InstructionCount, device: Device) -> float:
    """Cycles in which the registers of a warp are filled from L1, whatever they are filled with."""
    return access_width(one.instruction) * WARP_SIZE / (4.0 * max(1, device.rates.shared))


def _apart(traffic: Traffic, sites: list[int]) -> float:
    """Different addresses of constant memory that the lanes of an access want."""
    accesses, lines = (int(traffic.sites[sites, column].sum()) for column in (ACCESSES, LINES))
    return lines / accesses if accesses else 0.0


def _of_shared(counts: Words, sites: list[int], executed: float, device: Device) -> Floats:
    figures = np.zeros(FIGURES)
    requests = sum(int(counts[site, events.REQUESTS]) for site in sites)
    wavefronts = sum(int(counts[site, events.WAVEFRONTS]) for site in sites)
    figures[SHARE] = min(1.0, requests / executed) if executed else 1.0
    figures[LSU] = max(1.0, wavefronts / requests * WARP_SIZE / max(1, device.rates.shared)) if requests else 1.0
    return figures


def as_sectors(lines: float, sectors: float, device: Device, stored: bool) -> float:
    """What L2 does for requests of so many sectors in so many lines, as sectors of lines that are read whole. stored: of stores."""
    timing = device.timing
    rate = timing.l2_bandwidth * 1000 / 32 / device.clock  # sectors a cycle
    first = rate / (timing.request_rate if stored else timing.load_rate)
    more = max(0.0, ((4 * rate / timing.store_rate if stored else 4.0) - first) / 3)
    return lines * first + max(0.0, sectors - lines) * more


def _of_classes(
    traffic: Traffic, counts: Counts, sites: list[int], executed: Floats, device: Device, kind: str, together: frozenset[int],
    made: bool,
) -> Floats:  # fmt: skip
    """float64[class, FIGURES] of accesses to global or local memory. executed: by class. together: sites whose atomics one lane makes
    for all. made: that these sites are what is executed; else it is as much of them. A class of whose lines none was looked at, or few
    of many, finds what the average warp does."""
    every, rows = traffic.sites[sites].sum(0).astype(np.float64), traffic.classes[:, sites].sum(1)
    if not made and every[ACCESSES]:
        part = min(1.0, executed.sum() / every[ACCESSES])
        every, rows = part * every, part * rows
    looked_at = traffic.sampled[:, sites].sum(1)
    adds = sum(int(counts[s, events.REQUESTS if s in together else events.SECTORS]) for s in sites)
    adds_each = adds / every[ACCESSES] if every[ACCESSES] else 0.0
    alike = _alike(looked_at.sum(0), every[LINES] / max(1.0, every[ACCESSES]), traffic.apart)
    most = _at_most(every) if kind.endswith("load") else 1.0
    average = _of_global(traffic, every, looked_at.sum(0), float(executed.sum()), device, kind, adds_each, alike, most)
    found = np.repeat(average[None], len(rows), axis=0)
    known = traffic.distinct_lines[:, sites].sum(1) >= (_FEW if traffic.apart > 1 else 1)
    for one, row in enumerate(rows if len(rows) > 1 else ()):
        if not known[one] or not executed[one]:
            continue
        row[ACCESSES] = row[ACCESSES] or every[ACCESSES] * executed[one] / executed.sum()
        found[one] = _of_global(
            traffic, row, looked_at[one], float(executed[one]), device, kind, adds_each, alike, most
        )
    return found


def _waits(looked_at: Words, lines: float, apart: int) -> tuple[Floats, Floats]:
    """Which parts of the lines that were looked at, and of the accesses that have such, are waited for: from device memory, from
    there or the far half of L2, and from L2 at all. Of so many lines an access, one of `apart` was looked at. What another warp has
    asked for is waited for too: so lines are waited for more often than L2 is asked for them, where accesses say so."""
    accesses = np.minimum(1.0, looked_at[[DRAM_AWAITED, FAR_AWAITED, AWAITED]] / max(1, looked_at[ACCESSES]))
    none = _none(lines, apart)
    by_itself = apart * (1 - (none + (1 - accesses) * (1 - none)) ** (1 / max(1.0, lines)))
    answered = np.cumsum(looked_at[[MISSES, FAR_HITS, NEAR_HITS]].astype(np.float64))
    asked = answered / max(1.0, answered[-1]) * looked_at[ASKED] / max(1, looked_at[LINES])
    found: Floats = np.clip(asked, np.minimum(by_itself, accesses), accesses)
    return found, accesses


def _none(lines: float, apart: int) -> float:
    """Which part of accesses has no line that was looked at."""
    return float((1 - 1 / apart) ** max(1.0, lines))


def _alike(looked_at: Words, lines: float, apart: int) -> Floats:
    """How far the lines of an access are waited for together, and not each by itself: 1 where one of them tells of all, 0 where it
    tells nothing."""
    of_lines, of_accesses = _waits(looked_at, lines, apart)
    none = _none(lines, apart)
    by_itself = 1 - ((1 - of_lines / apart) ** max(1.0, lines) - none) / (1 - none)
    room = by_itself - of_lines
    found: Floats = np.clip(np.divide(by_itself - of_accesses, room, out=np.zeros(3), where=room > 1e-6), 0.0, 1.0)
    return found


def _any(alone: Floats, lines: float, alike: Floats) -> Floats:
    """Which part of accesses waits for any of so many lines."""
    found: Floats = (1 - alike) * (1 - (1 - alone) ** max(1.0, lines)) + alike * alone
    return found


def _lasts(looked_at: Words) -> float:
    """1 / how many accesses of a warp wait for L2 one after the other; 0 where that is what chance has so."""
    waiting, lasting = looked_at[AWAITED], looked_at[LASTING]
    if not waiting or lasting < _LASTS * waiting * waiting / max(1, looked_at[ACCESSES]):
        return 0.0
    return float((waiting - lasting) / waiting)


def _at_most(total: Floats) -> float:
    """Which part of loads can wait for L2: those of sectors that the warp's last one did not have, and of the others those of which L2 is
    asked for more lines than these touch."""
    if not total[ACCESSES]:
        return 1.0
    lines, same = total[LINES] / total[ACCESSES], total[SAME] / total[ACCESSES]
    more = max(0.0, total[ASKED] / total[ACCESSES] - (1 - same) * lines)
    each = min(1.0, more / max(1e-9, same * lines))
    return float(1 - same * (1 - each) ** max(1.0, lines))


def _of_global(
    traffic: Traffic, total: Floats, looked_at: Words, executed: float, device: Device, kind: str, adds: float, alike: Floats, most: float
) -> Floats:  # fmt: skip
    """total, looked_at: of the sites, as traffic has it of each. adds: what an atomic operation of a warp is for L2, in operations.
    alike: as `_alike`; most: as `_at_most`."""
    figures, timing = np.zeros(FIGURES), device.timing
    if not total[ACCESSES] or not executed:
        return figures
    share = figures[SHARE] = min(1.0, total[ACCESSES] / executed)
    accesses = share * executed  # those of the source that nvcc did not merge
    lines, sectors = total[LINES] / total[ACCESSES], total[SECTORS] / total[ACCESSES]
    figures[LSU] = max(
        timing.request_interval, total[CYCLES] / total[ACCESSES] * LINE / timing.l1_width, lines / timing.lookup_rate
    )
    misses = total[MISSES]
    out = misses + total[FAR_HITS] + total[NEAR_HITS]
    figures[SECTORS_OUT] = as_sectors(total[ASKED], out, device, stored=False) / accesses
    figures[MISSING] = total[ASKED] / accesses if kind.endswith("load") else 0.0
    strewn = total[STREWN] / total[ACCESSES]
    figures[MISSED] = (misses + (_LONE + strewn * (timing.dram_row - _LONE)) * total[LONE]) / accesses

    if not looked_at[ACCESSES]:  # all go to a few lines
        waited = np.minimum(1.0, np.array([misses, misses + total[FAR_HITS], out]) / max(1.0, total[SECTORS]))
    else:
        of_lines, of_accesses = _waits(looked_at, lines, traffic.apart)
        waited = of_accesses if traffic.apart == 1 else _any(of_lines, lines, alike)
    figures[[BEYOND, FAR, WAITED]] = np.minimum(waited, most)
    figures[LASTS] = _lasts(looked_at) * figures[WAITED]
    if not kind.endswith("load"):
        rate = timing.l2_bandwidth * 1000 / 32 / device.clock  # sectors a cycle
        stored = max(1, traffic.total(SECTORS, STORE, ATOMIC, LOCAL_STORE))
        figures[WRITTEN] = sectors * (traffic.dram_written + traffic.dram_filled + traffic.dram_wasted) / 32 / stored
        if kind.endswith("store"):
            requests = max(total[LINES], total[PARTIAL]) if kind.startswith("local") else total[LINES]
            figures[SECTORS_OUT] = as_sectors(requests, total[SECTORS], device, stored=True) / total[ACCESSES]
            figures[MISSED] = 0.0
            figures[SENT] = lines
            if total[AGAIN]:
                again = total[AGAIN] / total[LINES]
                asked, sent = total[ASKED] - total[LINES] + total[AGAIN], again * total[SECTORS] - total[MERGED]
                figures[OUT_AGAIN] = as_sectors(asked, sent, device, stored=True) / (again * total[ACCESSES])
                figures[SENT_AGAIN] = asked / (again * total[ACCESSES])
                figures[BACK], figures[REPEATED] = total[BETWEEN] / total[AGAIN], again
        else:
            rate /= timing.fetch_rate if kind == "global_atomic" else timing.atomic_rate
            figures[SECTORS_OUT] = max(sectors, adds * rate)
    return figures
