"""How fast the jit engine emulates on this machine: measured in one run, beside scalar code and other emulators."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from simtbed import SimtbedError
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.llvm.compiler import host
from simtbed.profiler.events import WARPS
from simtbed.runtime.engine import Request
from simtbed.runtime.prepared import prepare

from .. import tables
from ..terminal import progress
from . import oclgrind
from .kernels import CONTINUATION, FULL, SMALL, Size, Work, works

STARTS = 3
"""Processes that compile a work anew, and as many that find it in the cache."""
SAMPLE = 0.02
"""Seconds a sample takes at least: shorter works are done several times over."""

COMPILED_PEER = Size(SMALL.reads, SMALL.haplotypes, FULL.side)
"""For a peer whose small launches would be over too soon to be measured."""

RETURNING = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
"""Has glibc give freed arrays back at once. Otherwise a launch takes its memory from what making the problem left
behind, and the peak does not show it."""


@dataclass(frozen=True)
class Figure:
    """The median of several measurements, the smallest and the largest."""

    median: float
    least: float
    most: float

    @staticmethod
    def of(measured: Sequence[float]) -> Figure:
        return Figure(statistics.median(measured), min(measured), max(measured))

    def shown(self, digits: int, unit: float = 1.0) -> str:
        """Median (least-most), divided by the unit."""
        median, least, most = (f"{n / unit:,.{digits}f}" for n in (self.median, self.least, self.most))
        return f"{median} ({least}-{most})"


def bench(repeat: int, peers: bool, json: bool, size: Size = FULL) -> int:
    """Measure and print; a median of `repeat` rounds, in each of which everything is done once, in turns."""
    rows, starts = [], []
    for work in works(size):
        with progress(f"{work.name}: throughput"):
            rows.append(throughput(work, repeat))
        with progress(f"{work.name}: compiling"):
            starts.append(start(work.name, size))
    compared = []
    if peers:
        compared = against_peers(min(repeat, STARTS), {row["work"]: row["counters"] for row in rows})
    notes = _notes(size, repeat, peers)
    if json:
        content: dict[str, Any] = {
            "processor": _processor(), "processors": os.cpu_count(), "notes": notes, "throughput": rows, "starts": starts,
        }  # fmt: skip
        if peers:
            content["peers"] = compared
        print(tables.as_json(_plain(content)))
        return 0
    print(f"{_processor()}, {os.cpu_count()} processors\n")
    print(_throughput_table(rows) + "\n")
    print(_starts_table(starts) + "\n")
    if peers:
        print(_peers_table(compared) + "\n")
    print("\n".join(notes))
    return 0


# ------------------------------------------------------------------ throughput
def throughput(work: Work, repeat: int) -> dict[str, Any]:
    """Elements a second with counters, without, on two threads and in scalar code; the ratios round by round."""
    counting = work.request()
    one, two = LlvmEngine(threads=1), LlvmEngine(threads=2)
    actions: dict[str, Callable[[], object]] = {
        "counters": lambda: one.run(counting),
        "plain": lambda: one.run(replace(counting, counters=False)),
        "two_threads": lambda: two.run(counting),
        "scalar": work.scalar,
    }
    seconds = rounds(actions, repeat)
    rates = {name: [work.elements / s for s in taken] for name, taken in seconds.items()}
    instructions = warp_instructions(one, counting)
    return {
        "work": work.name,
        "unit": work.unit,
        "elements": work.elements,
        "launch_seconds": Figure.of(seconds["counters"]),
        **{name: Figure.of(rate) for name, rate in rates.items()},
        "counters_over_plain": _ratio(rates, "counters", "plain"),
        "counters_over_scalar": _ratio(rates, "counters", "scalar"),
        "two_threads_over_one": _ratio(rates, "two_threads", "counters"),
        "warp_instructions": Figure.of([instructions / s for s in seconds["counters"]]),
    }


def rounds(actions: Mapping[str, Callable[[], object]], repeat: int) -> dict[str, list[float]]:
    """Seconds of each action in each round. Before the first, each is done twice: to compile, and to see how long
    it takes."""
    calls = {}
    for name, action in actions.items():
        action()
        calls[name] = max(1, math.ceil(SAMPLE / _seconds(action, 1)))
    taken: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(repeat):
        for name, action in actions.items():
            taken[name].append(_seconds(action, calls[name]))
    return taken


def warp_instructions(engine: LlvmEngine, request: Request) -> int:
    """Instructions the warps of a launch execute."""
    counts = engine.run(request).counts
    assert counts is not None  # the request asks for them
    sites = prepare(request.program).sites
    return sum(int(row[WARPS]) * sum(site.costs.values()) for site, row in zip(sites, counts, strict=True))


def _seconds(action: Callable[[], object], calls: int) -> float:
    begin = time.perf_counter()
    for _ in range(calls):
        action()
    return (time.perf_counter() - begin) / calls


def _ratio(rates: Mapping[str, Sequence[float]], above: str, below: str) -> Figure:
    return Figure.of([a / b for a, b in zip(rates[above], rates[below], strict=True)])


# ------------------------------------------------------------------ other processes
def start(name: str, size: Size) -> dict[str, Any]:
    """Front end, compiling, reading the cache (seconds), and memory beyond the buffers (bytes or None)."""
    cold: list[dict[str, Any]] = []
    cached: list[dict[str, Any]] = []
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory() as folder:
            for found in (cold, cached):
                found.append(_process("start", [name, *_words(size)], SIMTBED_CACHE=folder, **RETURNING))
    memory = [each["memory"] for each in cached]
    return {
        "work": name,
        "front_end": Figure.of([each["front_end"] for each in cold + cached]),
        "compile": Figure.of([each["compile"] for each in cold]),
        "from_cache": Figure.of([each["compile"] for each in cached]),
        "memory": None if None in memory else Figure.of(memory),
    }


def against_peers(repeat: int, full: Mapping[str, Figure]) -> list[dict[str, Any]]:
    """Numba CUDASIM and, where it is installed, Oclgrind, beside the jit engine on the same works, and on the full
    size, where `full` is its rate with counters."""
    with progress("Numba CUDASIM"):
        seconds = _process("cudasim", [str(repeat), *_words(SMALL)], NUMBA_ENABLE_CUDASIM="1")
        found = [_beside("CUDASIM", work, seconds[work.name], full) for work in works(SMALL) if work.name in seconds]
    if program := oclgrind.installed():
        for work in works(COMPILED_PEER):
            if work.name in oclgrind.NAMES:
                with progress(f"Oclgrind: {work.name}"):
                    found.append(_beside("Oclgrind", work, oclgrind.simulated(program, work, repeat), full))
    return found


def _beside(peer: str, work: Work, seconds: Sequence[float], full: Mapping[str, Figure]) -> dict[str, Any]:
    engine, request = LlvmEngine(threads=1), work.request()
    taken = rounds({"jit": lambda: engine.run(request)}, len(seconds))["jit"]
    same, rate = (Figure.of([work.elements / s for s in measured]) for measured in (taken, seconds))
    return {
        "work": work.name, "unit": work.unit, "elements": work.elements, "peer": peer, "rate": rate,
        "jit_same_size": same, "same_size_over_peer": same.median / rate.median,
        "full_size_over_peer": full[work.name].median / rate.median,
    }  # fmt: skip


def _process(module: str, words: list[str], **environment: str) -> dict[str, Any]:
    command = [sys.executable, "-m", f"{__package__}.{module}", *words]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise SimtbedError(f"{module} failed: {reason}")
    return dict(json.loads(done.stdout))


def _words(size: Size) -> list[str]:
    return [str(size.reads), str(size.haplotypes), str(size.side)]


# ------------------------------------------------------------------ what is printed
def _throughput_table(rows: list[dict[str, Any]]) -> str:
    headers = [
        "million a second", "of", "counters", "no counters", "on / off", "scalar Numba", "jit / scalar", "2 threads / 1",
        "warp instr.", "launch ms",
    ]  # fmt: skip
    cells = [
        [
            r["work"], r["unit"], r["counters"].shown(0, 1e6), r["plain"].shown(0, 1e6), r["counters_over_plain"].shown(2),
            r["scalar"].shown(0, 1e6), r["counters_over_scalar"].shown(2), r["two_threads_over_one"].shown(2),
            r["warp_instructions"].shown(0, 1e6), r["launch_seconds"].shown(1, 1e-3),
        ]
        for r in rows
    ]  # fmt: skip
    return tables.table(headers, cells, left=2)


def _starts_table(starts: list[dict[str, Any]]) -> str:
    headers = ["milliseconds", "front end", "compile", "from cache", "memory beyond buffers, MiB"]
    cells = [
        [
            s["work"], *(s[name].shown(1, 1e-3) for name in ("front_end", "compile", "from_cache")),
            "not measured" if s["memory"] is None else s["memory"].shown(2, 2.0**20),
        ]
        for s in starts
    ]  # fmt: skip
    return tables.table(headers, cells)


def _peers_table(compared: list[dict[str, Any]]) -> str:
    headers = [
        "thousand a second", "of", "peer", "elements", "its rate", "jit, same size", "jit / peer", "jit at full size / peer",
    ]  # fmt: skip
    cells = [
        [
            c["work"], c["unit"], c["peer"], f"{c['elements']:,}", c["rate"].shown(1, 1e3), c["jit_same_size"].shown(0, 1e3),
            f"{c['same_size_over_peer']:,.0f}", f"{c['full_size_over_peer']:,.0f}",
        ]
        for c in compared
    ]  # fmt: skip
    return tables.table(headers, cells, left=3)


def _notes(size: Size, repeat: int, peers: bool) -> list[str]:
    notes = [
        f"median (least-most) of {repeat} rounds, of {STARTS} processes for starts; one thread, ratios round by round",
        f"pairs: {size.reads} reads x {size.haplotypes} haplotypes, generated, gap continuation quality {CONTINUATION}: "
        "no denormals",
        "kernels compute pairs in float, the scalar oracle in double; a launch copies the arrays it changes",
        "compile: a program's first launch less its second; front end: Python source to a checked request",
        "memory: by how much a launch raises the peak of resident memory, less the arrays it returns (/proc, VmHWM)",
    ]
    if peers:
        notes += [
            f"peers: {SMALL.reads * SMALL.haplotypes} pairs; CUDASIM {SMALL.side} x {SMALL.side} elements, Oclgrind "
            f"{COMPILED_PEER.side} x {COMPILED_PEER.side}; neither counts, and without warp shuffles neither runs wavefront"
        ]
        if not oclgrind.installed():
            notes.append("Oclgrind is not installed and was not measured")
    return notes


def _processor() -> str:
    """The host as LLVM names it."""
    return host().cpu


def _plain(value: Any) -> Any:
    """Figures as dictionaries, for JSON."""
    if isinstance(value, Figure):
        return asdict(value)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
