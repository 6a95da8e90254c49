"""Tables of Mangal and Jain 2014, compared with counters of the same kernels by the rules of their two GPUs.

The times need the GPUs; lanes, memory traffic and filter probes, their causes, do not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from simtbed import Counters, Device, Kernel, LaunchError, Result, devices, launch
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.printer import cuda_source
from simtbed.kernels import FunctionLauncher
from simtbed.kernels.correction.host import pipeline
from simtbed.kernels.correction.host.generate import genome, simulate
from simtbed.kernels.correction.host.problem import FilterName, Parameters, Reads
from simtbed.machine.occupancy import occupancy
from simtbed.runtime.registry import EngineName

from ... import tables
from ...launchers import Runner

LENGTH, K = 36, 21
"""K = 21 explains the 65.7 % of the paper: 21 of 32 lanes are 65.6 %."""
GENOME, READS, ERROR_RATE, SEED = 3000, 4096, 0.01, 1
ARCH = "sm_90"

PAPER = {
    "warp execution efficiency": ("3.5 %", "65.7 %"),
    "registers a thread": ("85", "56"),
    "shared memory a block, bytes": ("0", "1,997"),
    "occupancy": ("24.6 %", "47.1 %"),
    "with one lane per warp, times as much": ("4.62", ""),
}
"""Tables 1 and 3, on a K20m: the thread-per-read kernel, the warp-per-read kernel. The last is not in them: by Table 4
the kernel ran 26.17 s with one active lane per warp, and 5.67 s with all. So 4.6 lanes did the work of one at a
time, 14.4 % of a warp: more than the 3.5 % of Table 1, and as many as the emulator counts (14.2 %) and as Nsight Compute
counted of the compiled kernel on an H200, of these reads (14.1 %; 17.8 % at 2 % errors)."""

OFF = pipeline.Optimisations(unroll=False, reads_in_shared=False, votes_in_shared=False)
UNROLLED = pipeline.Optimisations(unroll=True, reads_in_shared=False, votes_in_shared=False)
SHARED = pipeline.Optimisations(unroll=True, reads_in_shared=True, votes_in_shared=True)
STEPS: tuple[tuple[str, str, str, pipeline.Optimisations], ...] = (
    ("original code", "5.67", "thread-per-read-lean", OFF),
    ("only one thread executing per warp", "26.17", "one-lane-per-warp-lean", OFF),
    ("loop unrolling", "5.78", "thread-per-read-lean", UNROLLED),
    ("reads in shared memory", "", "thread-per-read-lean", pipeline.Optimisations(True, True, False)),
    ("reads and votes in shared memory", "5.94", "thread-per-read-lean", SHARED),
    ("warp divergence", "4.94", "warp-per-read", SHARED),
    ("... reads in global memory", "", "warp-per-read", pipeline.Optimisations(True, False, True)),
    ("... reads and votes in global memory", "", "warp-per-read", UNROLLED),
    ("... not unrolled", "", "warp-per-read", pipeline.Optimisations(False, True, True)),
    ("shuffles (future work)", "", "warp-per-read-shuffle", SHARED),
)
"""Table 4: step, seconds on an M2090 if printed, variant."""


@dataclass(frozen=True)
class Workload:
    """Reads, their k-mer spectrum, and the filter and engine of the correction."""

    reads: Reads
    solid: pipeline.Solid
    k: int
    filter: FilterName
    engine: EngineName

    @staticmethod
    def simulated(
        k: int = K, error_rate: float = ERROR_RATE, filter: FilterName = "bloom", engine: EngineName = "jit"
    ) -> Workload:
        """Simulate 36-base reads of a random genome."""
        reads = simulate(SEED, genome(SEED, GENOME), READS, (LENGTH, LENGTH), error_rate).reads
        counter = pipeline.Counter(k, Runner(engine))
        counter.add(reads.text)
        return Workload(reads, counter.solid(Parameters().min_multiplicity), k, filter, engine)

    def counters(self, variant: str, switches: pipeline.Optimisations, device: Device) -> Counters:
        """Return the counters of correcting all reads."""
        parameters = Parameters(k=self.k, filter=self.filter)
        runner = Runner(self.engine, device, counting=True)
        built = pipeline.Filter.build(self.solid, parameters, Runner(self.engine), words=False)
        pipeline.correct(self.reads, built, parameters, variant, runner, switches)
        assert runner.counters is not None
        return runner.counters


# ------------------------------------------------------------------ what is measured
def vote_phase(counters: Counters) -> float:
    """Return the warp execution efficiency of the selection of mutants."""
    return counters.at("other = i32(code(letters[first + p + v])) ^ change").derived()["warp_execution_efficiency"]


def one_lane(all_lanes: Counters, lonely: Counters) -> float:
    """How often as many warp instructions there are if only one lane of each warp has a read."""
    return lonely.total("warp_instructions") / all_lanes.total("warp_instructions")


@dataclass(frozen=True)
class Probes:
    """Queries of a Bloom filter, with the negative ones and the bits read.

    lines: 128-byte lines per warp probe touches. A query that reaches the eighth hash function counts as positive.
    """

    queries: int
    negative: int
    bits: int
    lines: float

    @property
    def bits_a_negative(self) -> float:
        return (self.bits - 8 * (self.queries - self.negative)) / self.negative

    @staticmethod
    def from_counters(counters: Counters, k: int) -> Probes:
        first = (
            counters.at("a *= 378551").total("thread_instructions") // k
        )  # RS, the first: one multiplication a letter
        last = counters.at("h = (h << 5) ^ (h >> 27)").total("thread_instructions") // (4 * k)  # DEK, the eighth
        words = counters.at("word = bits[bit >> 5]")
        bits, requests = words.total("global_load_bytes") // 4, words.total("global_load_requests")
        return Probes(first, first - last, bits, words.total("global_load_lines") / requests)


def profile_rows(work: Workload, device: Device) -> list[dict[str, Any]]:
    """Tables 1 and 3: a metric, the paper's two figures and ours."""
    before, after, lonely = (
        work.counters(variant, switches, device)
        for variant, switches in (
            ("thread-per-read-lean", OFF),
            ("warp-per-read", SHARED),
            ("one-lane-per-warp-lean", OFF),
        )
    )
    compiled = [_compiled(work, variant, switches, device) for _, _, variant, switches in (STEPS[0], STEPS[5])]
    ours = {
        "warp execution efficiency": [_percent(c.derived()["warp_execution_efficiency"]) for c in (before, after)],
        "... of the vote phase": [_percent(vote_phase(c)) for c in (before, after)],
        "registers a thread": [c["registers"] for c in compiled],
        "shared memory a block, bytes": [c["shared"] for c in compiled],
        "occupancy": [c["occupancy"] for c in compiled],
        "with one lane per warp, times as much": [f"{one_lane(before, lonely):.2f}", ""],
        "global sectors per read": [_a_read(_sectors(c), work) for c in (before, after)],
        "local accesses per read": [_a_read(_local(c), work) for c in (before, after)],
        "shared wavefronts per read": [_a_read(_wavefronts(c), work) for c in (before, after)],
    }
    return [
        {"metric": name, "paper before": PAPER.get(name, ("", ""))[0], "before": values[0],
         "paper after": PAPER.get(name, ("", ""))[1], "after": values[1]}
        for name, values in ours.items()
    ]  # fmt: skip


def filter_rows(work: Workload, device: Device) -> list[dict[str, Any]]:
    """Table 2: queries of the two filter layouts."""
    rows = []
    filters: tuple[FilterName, ...] = ("bloom", "split-first")
    for name, paper in zip(filters, ("68,381,701", "91,551,531"), strict=True):
        probes = Probes.from_counters(replace(work, filter=name).counters("thread-per-read-lean", OFF, device), work.k)
        rows.append({
            "layout": name, "paper's accesses": paper, "probes": probes.bits, "queries": probes.queries,
            "negative": _percent(probes.negative / probes.queries), "bits a negative": f"{probes.bits_a_negative:.3f}",
            "lines per warp probe": f"{probes.lines:.2f}",
        })  # fmt: skip
    return rows


def step_rows(work: Workload, device: Device) -> list[dict[str, Any]]:
    """Table 4: each step and what it moves, a read."""
    rows = []
    for step, seconds, variant, switches in STEPS:
        counters = work.counters(variant, switches, device)
        rows.append({
            "step": step, "paper's seconds": seconds, "variant": variant,
            "efficiency": _percent(counters.derived()["warp_execution_efficiency"]),
            "warp instructions": _a_read(counters.total("warp_instructions"), work),
            "global sectors": _a_read(_sectors(counters), work), "local accesses": _a_read(_local(counters), work),
            "shared wavefronts": _a_read(_wavefronts(counters), work),
        })  # fmt: skip
    return rows


def _sectors(counters: Counters) -> int:
    return counters.total("global_load_sectors") + counters.total("global_store_sectors")


def _local(counters: Counters) -> int:
    return counters.total("local_loads") + counters.total("local_stores")


def _wavefronts(counters: Counters) -> int:
    return counters.total("shared_load_wavefronts") + counters.total("shared_store_wavefronts")


def _a_read(count: int, work: Workload) -> str:
    return f"{count / len(work.reads):,.1f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _compiled(work: Workload, variant: str, switches: pipeline.Optimisations, device: Device) -> dict[str, str]:
    """Registers, shared memory and the device's theoretical occupancy, where nvcc is."""
    results = []

    @FunctionLauncher
    def noted(kernel: Kernel, **how: Any) -> Result:
        result = launch(kernel, counters=False, engine=work.engine, **how)
        results.append(result.request)
        return result

    parameters = Parameters(k=work.k, filter=work.filter)
    built = pipeline.Filter.build(work.solid, parameters, Runner(work.engine), words=False)
    pipeline.correct(work.reads.subset(0, 64), built, parameters, variant, noted, switches)
    (request,) = results
    source = cuda_source(request.program, request.block)
    try:
        resources = nvcc.build(source.with_lines(), source.kernel, ARCH).resources
    except LaunchError:
        return dict.fromkeys(("registers", "shared", "occupancy"), "no nvcc")
    shared = resources.shared_bytes + source.carved_bytes
    resident = occupancy(device, request.block[0], resources.registers, shared)
    return {"registers": str(resources.registers), "shared": f"{shared:,}", "occupancy": f"{resident.percent:.1f} %"}


# ------------------------------------------------------------------ what is printed
def content(engine: EngineName) -> dict[str, list[dict[str, Any]]]:
    """All tables, by name."""
    work = Workload.simulated(engine=engine)
    return {
        "Tables 1 and 3, by the rules of a K20m": profile_rows(work, devices.K20m),
        "Table 2, k = 20": filter_rows(Workload.simulated(k=20, engine=engine), devices.K20m),
        "Table 4, a read, by the rules of an M2090": step_rows(work, devices.M2090),
    }


def text(content: dict[str, list[dict[str, Any]]]) -> str:
    """The tables one below the other."""
    shown = [
        f"{title}\n\n{tables.table(list(rows[0]), [list(row.values()) for row in rows], left=1)}"
        for title, rows in content.items()
    ]
    note = (
        f"{READS:,} reads of {LENGTH} bases, {100 * ERROR_RATE:g} % errors, k = {K}, Bloom filter; registers by nvcc for {ARCH}, "
        "occupancy theoretical (the paper's is achieved)"
    )
    return "\n\n".join([*shown, note])
