"""Tables, Figure 1, section 5.2 and algorithms of Mangal and Jain 2014: profiles, filter queries, speedups, answers."""

from collections.abc import Iterator
from functools import lru_cache, partial

from simtbed import Counters
from simtbed.kernels.correction import FAMILY
from simtbed.kernels.correction.cuda_ec import BLOCK
from simtbed.kernels.correction.host import pipeline
from simtbed.kernels.correction.host.problem import Problem
from simtbed.language.intrinsics import WARP_SIZE
from simtbed.machine.occupancy import occupancy
from simtbed.oracles.correction import Bloom, correct, solid_kmers

from ...explanation import choices
from ...launchers import Runner, kernel_times
from .. import measured, recorded
from ..claims import Origin, Source, Value, counted_by, predicted_for, quotient
from ..definitions import printed
from ..measured import Benchmark, Machine
from ..paper import Chart, Figures, Row, Series, Setting, Table
from ..values import floors, limit, predicted_cells, speedups, timed_cells
from . import counting

BEFORE, AFTER = "thread-per-read", "warp-per-read"
ERROR_RATES = 0.005, 0.01, 0.025
"""The range of the paper is 0.5 % to 2.5 %."""
KERNELS = {BEFORE: "cuda_ec", AFTER: "warp_per_read"}
TRAFFIC = {
    "global sectors per read": ("global_load_sectors", "global_store_sectors"),
    "local accesses per read": ("local_loads", "local_stores"),
    "shared wavefronts per read": ("shared_load_wavefronts", "shared_store_wavefronts"),
}


def work(setting: Setting, variant: str, split: int | None = None, error_rate: float | None = None) -> counting.Work:
    """Return a variant on the reads of a report."""
    rate = error_rate or float(setting["error_rate"])
    data = counting.Data(setting.whole("genome"), setting.whole("reads"), rate, setting.data)
    return counting.Work(variant, data, setting.engine, split)


def efficiency(counters: Counters) -> float:
    """Return the warp execution efficiency in percent."""
    return 100 * counters.derived()["warp_execution_efficiency"]


def traffic(counters: Counters, reads: int) -> Row:
    """Return accesses per read by kind of memory."""
    return {name: round(sum(counters.total(event) for event in events) / reads) for name, events in TRAFFIC.items()}


# ------------------------------------------------------------------ Tables 1 and 3
def _profile(setting: Setting, variant: str) -> tuple[list[Row], dict[str, list[Value]]]:
    """Return the rows of metrics, and the values by name."""
    counters, prediction, printed = (
        counting.counted(work(setting, variant)),
        counting.throughput(work(setting, variant), counting.GPU),
        counting.PROFILES[variant],
    )
    device, shared, registers = recorded.DEVICES[0], prediction.shared_bytes, printed["registers"]
    measured = recorded.warp_execution_efficiency(f"correction {variant} bloom", KERNELS[variant])
    percent = None if measured is None else 100 * measured
    # in blocks of 256 threads
    by_rule = occupancy(counting.GPU, BLOCK, registers, int(1024 * printed["shared"])).percent
    rates = {name: prediction.bandwidth(name) for name in ("l2", "dram")}
    ours = recorded.registers(f"correction {variant}")
    model, gpu, emulated = "time model: K20m", f"GPU: {device}", f"emulator: {variant}"
    cells: dict[str, tuple[float, Row]] = {
        "warp execution efficiency, %": (printed["efficiency"], {emulated: round(efficiency(counters), 1), gpu: percent}),
        "L1/shared bandwidth, GB/s": (printed["l1"], {}),
        "L2 bandwidth, GB/s": (printed["l2"], {model: round(rates["l2"].amount, 1)}),
        "device memory bandwidth, GB/s": (printed["dram"], {model: round(rates["dram"].amount, 1)}),
        "shared memory per block, KB": (printed["shared"], {emulated: round(shared / 1024, 2)}),
        "registers per thread": (registers, {gpu: ours}),
        "occupancy, %; ours by rule from the paper's registers": (printed["occupancy"], {emulated: by_rule}),
    }  # fmt: skip
    rows: list[Row] = [{"metric": name, "paper: Kepler K20m": value, **row} for name, (value, row) in cells.items()]
    rows += [{"metric": name, emulated: count} for name, count in traffic(counters, setting.whole("reads")).items()]
    values = {
        "efficiency": [Value(counted_by(counting.GPU), efficiency(counters)), Value(recorded.origin(), percent)],
        "occupancy": [Value(Origin(Source.paper, "CUDA's rule for its registers"), by_rule)],
        "registers": [Value(recorded.origin(), ours)], **{name: [rate] for name, rate in rates.items()},
    }  # fmt: skip
    return rows, values


def before(setting: Setting) -> Figures:
    """Table 1."""
    counters = counting.counted(work(setting, BEFORE))
    rows, values = _profile(setting, BEFORE)
    rates = [(100 * rate, efficiency(counting.counted(work(setting, BEFORE, error_rate=rate)))) for rate in ERROR_RATES]
    lines: list[Row] = [{"errors, %": x, "emulator: warp execution efficiency, %": round(y, 1)} for x, y in rates]
    memory = {"shared": counters.total("shared_store_requests"), "local": counters.total("local_stores")}
    return Figures(
        {**values, **memory},
        [Table("The original kernel", rows), Table("By error rate", lines)],
        [Chart("warp execution efficiency", "errors, %", "%", [
            Series("original kernel", Source.emulator, rates), Series("Table 1", Source.paper, [(rate, 3.5) for rate, _ in rates]),
        ])],
        {"alone": efficiency(counting.counted(work(setting, counting.ALONE)))},
        counted_by(counting.GPU),
    )  # fmt: skip


def after(setting: Setting) -> Figures:
    """Table 3."""
    (rows, now), (_, previous) = _profile(setting, AFTER), _profile(setting, BEFORE)
    shared = counting.throughput(work(setting, AFTER), counting.GPU).shared_bytes / 1024
    changes = {
        "rises": [quotient(now[level][0], previous[level][0], level) for level in ("l2", "dram")],
        "registers": [quotient(now["registers"][0], previous["registers"][0])],
    }
    texts = {"vote": 100 * counting.vote_phase(counting.counted(work(setting, AFTER)))}
    tables = [Table("The new kernel", rows)]
    return Figures({**now, **changes, "shared": shared}, tables, texts=texts, rule=counted_by(counting.GPU))


# ------------------------------------------------------------------ Figure 1 and Table 2
def filters(setting: Setting) -> Figures:
    """Figure 1 and Table 2: queries of the standard filter and of the split filter."""
    values: dict[str, list[Value]] = {name: [] for name in ("hits", "texture", "seconds", "accesses")}
    rows: list[Row] = []
    probes: list[counting.Probes] = []
    rule, reads = counted_by(counting.GPU), setting.whole("reads")
    for name, split in (("before", None), ("after", max(3, round(1 / float(setting["split"]))))):
        p = counting.Probes.from_counters(counting.counted(work(setting, BEFORE, split)))
        profiled, timed = (
            counting.throughput(work(setting, BEFORE, split), device) for device in (counting.GPU, counting.TIMED)
        )
        accesses, texture = round(p.bits / reads * counting.ALL_READS), profiled.bandwidth("texture", name)
        probes.append(p)
        values["hits"].append(Value(predicted_for(counting.GPU), 100 * profiled.hits, name))
        values["texture"].append(texture)
        values["seconds"].append(timed.seconds)
        values["accesses"].append(Value(rule, accesses))
        rows.append({
            "filter": name, "emulator: accesses of 1.7 million reads": accesses, **predicted_cells("M2090, seconds", timed.seconds),
            "time model: K20m, L2 hits of the filter, %": 100 * profiled.hits,
            "time model: K20m, L2 throughput of the filter, GB/s": texture.value,
            "emulator: queries per read": round(p.queries / reads), "emulator: negative, %": round(100 * p.negative / p.queries, 1),
            "emulator: bits per negative query": round(p.bits_a_negative, 3),
            "emulator: lines per lane's access": round(p.lines / p.bits, 3),
            "emulator: lines per warp access": round(p.lines / p.requests, 2),
        })  # fmt: skip
    standard = probes[0]
    changes = {"better": "hits", "times": "seconds", "more": "accesses"}
    queries = {
        "negative": 100 * standard.negative / standard.queries,
        "bits": standard.bits_a_negative,
        "all bits": standard.bits / standard.queries,
    }
    return Figures(
        {
            **{change: [quotient(values[name][1], values[name][0], "")] for change, name in changes.items()},
            **queries,
            "accesses": values["accesses"][:1], "hits": values["hits"], "texture": values["texture"],
        },
        [Table("Filter queries of the original kernel", rows)],
        rule=rule,
    )  # fmt: skip


MEMORY = ("DRAM", "L2", "L1")
"""Limits of the time model that are memory."""
STEPS: list[tuple[str, float, str]] = printed("mangal2014")["steps"]
"""Table 4: step, seconds, variant."""
CHECKED = counting.Data(600, 300, 0.02)
"""Reads of the correctness check."""
READS_IN_GLOBAL, READS_IN_SHARED = (
    pipeline.Optimisations(unroll=False, reads_in_shared=shared, votes_in_shared=False) for shared in (False, True)
)
"""The step of section 5.2, by `thread-per-read-lean`."""


def benchmarks(setting: Setting) -> Iterator[Benchmark]:
    """Yield the kernel of each step on a GPU."""
    for _, _, variant in STEPS:
        check = measured.on_gpu(FAMILY, variant, CHECKED.problem)
        yield Benchmark(variant, Machine.gpu, partial(_kernel, setting, variant), check)


@lru_cache(maxsize=1)
def _prepared(data: counting.Data) -> tuple[Problem, pipeline.Filter]:
    problem = data.problem()
    return problem, pipeline.filter_of(problem, Runner("cuda"), words=False)


def _kernel(setting: Setting, variant: str, repeat: int) -> tuple[list[float], float]:
    data = work(setting, variant).data
    problem, filter = _prepared(data)
    solve = partial(pipeline.correct, problem.reads, filter, problem.parameters, variant)
    return kernel_times(solve, repeat), data.reads


# ------------------------------------------------------------------ Table 4 and section 5.2
def _seconds(setting: Setting, variant: str) -> Value:
    return counting.throughput(work(setting, variant), counting.TIMED).seconds


def _speedup(setting: Setting, before: str, after: str) -> list[Value]:
    """Return the speedup of a step, by the time model and on each GPU."""
    return [
        quotient(_seconds(setting, before), _seconds(setting, after)),
        *speedups(setting, Machine.gpu, before, after),
    ]


def steps(setting: Setting) -> Figures:
    """Table 4."""
    rows: list[Row] = []
    for step, seconds, variant in STEPS:
        corrected_reads, counters = counting.corrected(work(setting, variant))
        reads = len(corrected_reads.reads)
        resource, nanoseconds = limit(floors(counters, reads, counting.TIMED))
        prediction = counting.throughput(work(setting, variant), counting.TIMED)
        rows.append({
            "step": step, "variant": variant, "paper: seconds": seconds,
            "emulator: warp instructions per read": round(counters.total("warp_instructions") / reads),
            "emulator: efficiency, %": round(efficiency(counters), 1),
            **{f"emulator: {name}": count for name, count in traffic(counters, reads).items()},
            **predicted_cells("M2090, seconds of 1.7 million reads", prediction.seconds),
            "time model: bound by": prediction.pace.estimate.bound,
            "emulator: seconds by counts": round(counting.ALL_READS * nanoseconds / 1e9, 2), "emulator: for": resource,
            **timed_cells(setting, variant, Machine.gpu, "seconds of 1.7 million reads", counting.ALL_READS),
        })  # fmt: skip
    first, alone, direct, unrolled, shared, warp = (variant for _, _, variant in STEPS)
    pairs = {
        "whole": (first, warp), "alone": (alone, first), "direct": (first, direct), "unrolled": (direct, unrolled),
        "in shared": (unrolled, shared), "warp": (shared, warp),
    }  # fmt: skip
    times = [(variant, _seconds(setting, variant).amount) for _, _, variant in STEPS]
    by_memory = rows[-1]["time model: bound by"] in MEMORY
    memory = [Value(predicted_for(counting.TIMED), int(by_memory))]
    return Figures(
        {**{name: _speedup(setting, *pair) for name, pair in pairs.items()}, "memory": memory},
        [Table("Steps, each with those before it", rows)],
        [Chart("Table 4", "", "seconds of 1.7 million reads", [
            Series("paper, M2090", Source.paper, [(variant, seconds) for _, seconds, variant in STEPS]),
            Series("time model, M2090", Source.model, times),
        ], bars=True)],
    )  # fmt: skip


def reads_in_shared(setting: Setting) -> Figures:
    """Section 5.2."""
    data, engine = work(setting, BEFORE).data, setting.engine
    slow, fast = (
        counting.throughput(
            counting.Work("thread-per-read-lean", data, engine, switches=switches), counting.TIMED
        ).seconds
        for switches in (READS_IN_GLOBAL, READS_IN_SHARED)
    )
    rows: list[Row] = [
        {"reads": where, "paper: seconds": seconds, "time model: M2090, seconds of 1.7 million reads": time.value}
        for where, seconds, time in (("in global memory", 5.6, slow), ("in shared memory", 5.11, fast))
    ]
    return Figures({"speedup": [quotient(slow, fast)]}, [Table("Reads of 36 bases", rows)])


# ------------------------------------------------------------------ the algorithms
FEW = 64
"""Reads for the oracle, which is slow."""


def differing(setting: Setting, variant: str) -> int:
    """Return how many of the first reads differ from the oracle's, with a filter of the reads' own k-mers."""
    data = work(setting, variant).data
    problem = data.problem()
    runner = Runner(setting.engine)
    filter = pipeline.filter_of(problem, runner, words=False)
    corrected_reads = pipeline.correct(problem.reads, filter, problem.parameters, variant, runner)
    reads = problem.reads.strings()
    bloom = Bloom(solid_kmers(reads, counting.K, counting.MIN_MULTIPLICITY), "standard", 16)
    expected = [correct(read, bloom, counting.K, 2, 20, True) for read in reads[:FEW]]
    actual = [(chr(corrected_reads.flags[r]), corrected_reads.sequence(r)) for r in range(len(expected))]
    return sum(one != (e.flag, e.sequence) for one, e in zip(actual, expected, strict=True))


def original_algorithm(setting: Setting) -> Figures:
    """Algorithm 1."""
    texts = {"choices": choices(FAMILY, BEFORE)}
    return Figures({"differing": {f"of {FEW}": differing(setting, BEFORE)}}, texts=texts)


def new_algorithm(setting: Setting) -> Figures:
    """Algorithm 2."""
    before, after = (
        [str(answer) for answer in counting.corrected(work(setting, variant))[0].answer()]
        for variant in (BEFORE, AFTER)
    )
    changed = sum(old != new for old, new in zip(before, after, strict=True))
    return Figures(
        {
            "differing": {f"of {FEW}": differing(setting, AFTER)},
            "changed": {f"of {len(before):,}": changed},
            "visited": len(range(0, counting.K, WARP_SIZE)),
        },
        texts={"choices": choices(FAMILY, AFTER)},
    )
