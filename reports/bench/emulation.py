"""`simtbed bench emulator`: throughput of the jit engine, compared with scalar code and other emulators."""

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
from ..printing import print_text
from ..terminal import announced
from . import oclgrind
from .kernels import CONTINUATION, FULL, SMALL, Size, Work, works

STARTS = 3
"""Number of processes that compile a workload, and of processes that load it from the cache."""
SAMPLE = 0.02
"""Minimum seconds of a sample; shorter workloads are repeated."""

COMPILED_PEER = Size(SMALL.reads, SMALL.haplotypes, FULL.side)
"""Size for a compiled peer: a small launch is too short to measure."""

RETURNING = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
"""Settings of glibc to return freed arrays to the system at once. Otherwise a launch reuses memory of the problem setup, and
the peak does not include it."""


@dataclass(frozen=True)
class Statistics:
    """Median, minimum and maximum of several measurements."""

    median: float
    least: float
    most: float

    @staticmethod
    def from_samples(measured: Sequence[float]) -> Statistics:
        return Statistics(statistics.median(measured), min(measured), max(measured))

    def shown(self, digits: int, unit: float = 1.0) -> str:
        """Format as median (min-max), divided by the unit."""
        median, least, most = (f"{n / unit:,.{digits}f}" for n in (self.median, self.least, self.most))
        return f"{median} ({least}-{most})"


def bench(repeat: int, peers: bool, json: bool, size: Size = FULL) -> int:
    """Measure and print medians of `repeat` rounds; a round runs every action once."""
    rows, starts = [], []
    for work in works(size):
        with announced(f"{work.name}: throughput"):
            rows.append(throughput(work, repeat))
        with announced(f"{work.name}: compiling"):
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
        print_text(tables.as_json(_plain(content)))
        return 0
    print_text(f"{_processor()}, {os.cpu_count()} processors\n")
    print_text(_throughput_table(rows) + "\n")
    print_text(_starts_table(starts) + "\n")
    if peers:
        print_text(_peers_table(compared) + "\n")
    print_text("\n".join(notes))
    return 0


# ------------------------------------------------------------------ throughput
def throughput(work: Work, repeat: int) -> dict[str, Any]:
    """Return elements per second with and without counters, on two threads and in scalar code, and ratios by round."""
    counting = work.request()
    single, double = LlvmEngine(threads=1), LlvmEngine(threads=2)
    actions: dict[str, Callable[[], object]] = {
        "counters": lambda: single.run(counting),
        "plain": lambda: single.run(replace(counting, counters=False)),
        "two_threads": lambda: double.run(counting),
        "scalar": work.scalar,
    }
    seconds = rounds(actions, repeat)
    rates = {name: [work.elements / s for s in taken] for name, taken in seconds.items()}
    instructions = warp_instructions(single, counting)
    return {
        "work": work.name,
        "unit": work.unit,
        "elements": work.elements,
        "launch_seconds": Statistics.from_samples(seconds["counters"]),
        **{name: Statistics.from_samples(rate) for name, rate in rates.items()},
        "counters_over_plain": _ratio(rates, "counters", "plain"),
        "counters_over_scalar": _ratio(rates, "counters", "scalar"),
        "two_threads_over_one": _ratio(rates, "two_threads", "counters"),
        "warp_instructions": Statistics.from_samples([instructions / s for s in seconds["counters"]]),
    }


def rounds(actions: Mapping[str, Callable[[], object]], repeat: int) -> dict[str, list[float]]:
    """Return the seconds of each action in each round. Each action is first run twice, to compile and to estimate its time."""
    calls = {}
    for name, action in actions.items():
        action()
        calls[name] = max(1, math.ceil(SAMPLE / _seconds(action, 1)))
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(repeat):
        for name, action in actions.items():
            seconds[name].append(_seconds(action, calls[name]))
    return seconds


def warp_instructions(engine: LlvmEngine, request: Request) -> int:
    """Return the warp instructions of a launch."""
    counts = engine.run(request).counts
    assert counts is not None  # the request enables counters
    sites = prepare(request.program).sites
    return sum(int(row[WARPS]) * sum(site.costs.values()) for site, row in zip(sites, counts, strict=True))


def _seconds(action: Callable[[], object], calls: int) -> float:
    begin = time.perf_counter()
    for _ in range(calls):
        action()
    return (time.perf_counter() - begin) / calls


def _ratio(rates: Mapping[str, Sequence[float]], above: str, below: str) -> Statistics:
    return Statistics.from_samples([a / b for a, b in zip(rates[above], rates[below], strict=True)])


# ------------------------------------------------------------------ other processes
def start(name: str, size: Size) -> dict[str, Any]:
    """Measure the seconds of the front end, the compiler and a cache read, and memory beyond the buffers in bytes, or None."""
    cold: list[dict[str, Any]] = []
    cached: list[dict[str, Any]] = []
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory() as folder:
            for samples in (cold, cached):
                samples.append(_process("start", [name, *_words(size)], SIMTBED_CACHE=folder, **RETURNING))
    memory = [each["memory"] for each in cached]
    return {
        "work": name,
        "front_end": Statistics.from_samples([each["front_end"] for each in cold + cached]),
        "compile": Statistics.from_samples([each["compile"] for each in cold]),
        "from_cache": Statistics.from_samples([each["compile"] for each in cached]),
        "memory": None if None in memory else Statistics.from_samples(memory),
    }


def against_peers(repeat: int, full: Mapping[str, Statistics]) -> list[dict[str, Any]]:
    """Compare Numba CUDASIM and, if installed, Oclgrind with the jit engine on the same workloads and at full size.

    full: rates of the jit engine with counters at full size.
    """
    with announced("Numba CUDASIM"):
        seconds = _process("cudasim", [str(repeat), *_words(SMALL)], NUMBA_ENABLE_CUDASIM="1")
        rows = [_compare("CUDASIM", work, seconds[work.name], full) for work in works(SMALL) if work.name in seconds]
    if program := oclgrind.installed():
        for work in works(COMPILED_PEER):
            if work.name in oclgrind.NAMES:
                with announced(f"Oclgrind: {work.name}"):
                    rows.append(_compare("Oclgrind", work, oclgrind.simulated(program, work, repeat), full))
    return rows


def _compare(peer: str, work: Work, seconds: Sequence[float], full: Mapping[str, Statistics]) -> dict[str, Any]:
    engine, request = LlvmEngine(threads=1), work.request()
    jit_seconds = rounds({"jit": lambda: engine.run(request)}, len(seconds))["jit"]
    same, rate = (Statistics.from_samples([work.elements / s for s in measured]) for measured in (jit_seconds, seconds))
    return {
        "work": work.name, "unit": work.unit, "elements": work.elements, "peer": peer, "rate": rate,
        "jit_same_size": same, "same_size_over_peer": same.median / rate.median,
        "full_size_over_peer": full[work.name].median / rate.median,
    }  # fmt: skip


def _process(module: str, words: list[str], **environment: str) -> dict[str, Any]:
    command = [sys.executable, "-m", f"{__package__}.{module}", *words]
    completed = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    if completed.returncode:
        reason = (completed.stderr.strip().splitlines() or [f"exit code {completed.returncode}"])[-1]
        raise SimtbedError(f"{module} failed: {reason}")
    return dict(json.loads(completed.stdout))


def _words(size: Size) -> list[str]:
    return [str(size.reads), str(size.haplotypes), str(size.side)]


# ------------------------------------------------------------------ output
def _throughput_table(rows: list[dict[str, Any]]) -> str:
    headers = [
        "million/s", "unit", "counters", "no counters", "on / off", "scalar Numba", "jit / scalar", "2 threads / 1",
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
        "thousand/s", "unit", "peer", "elements", "peer rate", "jit, same size", "jit / peer", "jit at full size / peer",
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
        f"median (min-max) of {repeat} rounds, of {STARTS} processes for starts; one thread, ratios by round",
        f"pairs: {size.reads} reads x {size.haplotypes} haplotypes, generated, gap continuation quality {CONTINUATION}: "
        "no denormals",
        "kernels compute pairs in float, the scalar oracle in double; a launch copies the modified arrays",
        "compile: a program's first launch less its second; front end: Python source to a checked request",
        "memory: increase of the peak resident memory by a launch, less the returned arrays (/proc, VmHWM)",
    ]
    if peers:
        notes += [
            f"peers: {SMALL.reads * SMALL.haplotypes} pairs; CUDASIM {SMALL.side} x {SMALL.side} elements, Oclgrind "
            f"{COMPILED_PEER.side} x {COMPILED_PEER.side}; both lack counters and warp shuffles, hence wavefront"
        ]
        if not oclgrind.installed():
            notes.append("Oclgrind is not installed and was not measured")
    return notes


def _processor() -> str:
    """Return the LLVM name of the processor."""
    return host().cpu


def _plain(value: Any) -> Any:
    """Convert statistics to dictionaries, for JSON."""
    if isinstance(value, Statistics):
        return asdict(value)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
