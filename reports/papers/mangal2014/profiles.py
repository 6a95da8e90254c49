"""Tables 1 to 3 and Figure 1 of Mangal and Jain 2014: profiles of the two kernels, and queries of the Bloom filter."""

from __future__ import annotations

from simtbed import Counters
from simtbed.kernels.correction.cuda_ec import BLOCK
from simtbed.machine.occupancy import occupancy

from .. import recorded
from ..claims import Origin, Source, Value, counted_by, predicted_for, quotient
from ..paper import Cell, Chart, Column, Figures, Row, Series, Setting, Table, about, emulator, gpu, model, paper
from ..predicted import CAVEAT
from ..values import predicted_cells
from .counting import ALL_READS, ALONE, GPU, REGISTERS, TIMED, Data, Throughput, Work, counted, throughput
from .profiled import K, Probes, vote_phase

BEFORE, AFTER = "thread-per-read", "warp-per-read"
ERROR_RATES = 0.005, 0.01, 0.025
"""The range of the paper is 0.5 % to 2.5 %."""
DATA = (
    "Reads of a random genome as often covered as the paper's: 1.7 million of 36 bases for a genome of 3.6 million bases. k = 21 is "
    "inferred from 65.7 % of 32 lanes, multiplicity 5 is chosen, the error rate is the middle of the paper's range. Random k-mers fill the "
    "filter to the paper's 18 MB. `--data` takes other reads."
)
TEXTS = {"data": DATA, "caveat": CAVEAT}


def work(setting: Setting, variant: str, split: int | None = None, error_rate: float | None = None) -> Work:
    """Return a variant on the reads of a report."""
    rate = error_rate or float(setting["error_rate"])
    return Work(
        variant, Data(setting.whole("genome"), setting.whole("reads"), rate, setting.data), setting.engine, split
    )


def efficiency(counters: Counters) -> float:
    """Return the warp execution efficiency in percent."""
    return 100 * counters.derived()["warp_execution_efficiency"]


def by_rule(registers: int, shared: int = 0) -> float:
    """Return the occupancy of a K20m in percent, for blocks of 256 threads."""
    return occupancy(GPU, BLOCK, registers, shared).percent


def _occupancy(registers: int) -> list[Value]:
    return [Value(Origin(Source.paper, "CUDA's rule for its registers"), by_rule(registers))]


# ------------------------------------------------------------------ Tables 1 and 3
def traffic(counters: Counters, reads: int) -> dict[Column, Cell]:
    """Return accesses per read by kind of memory."""

    def per_read(*events: str) -> int:
        return round(sum(counters.total(event) for event in events) / reads)

    return {
        emulator("global sectors per read"): per_read("global_load_sectors", "global_store_sectors"),
        emulator("local accesses per read"): per_read("local_loads", "local_stores"),
        emulator("shared wavefronts per read"): per_read("shared_load_wavefronts", "shared_store_wavefronts"),
    }


def _measured_efficiency(variant: str) -> float | None:
    value = recorded.warp_execution_efficiency(
        f"correction {variant} bloom", "cuda_ec" if variant != AFTER else "warp_per_read"
    )
    return None if value is None else 100 * value


def _profile(
    setting: Setting, variant: str, reported: tuple[float, int, float], bandwidths: tuple[float, float]
) -> list[Row]:
    """Return rows of metrics. reported: efficiency, shared bytes and achieved occupancy in the paper. bandwidths: of L2 and of
    device memory."""
    counters, registers, prediction = counted(work(setting, variant)), REGISTERS[variant], _predicted(setting, variant)
    percent, shared, achieved = reported
    ours = recorded.registers(f"correction {variant}")
    rows: list[Row] = [
        {about("metric"): "warp execution efficiency, %", paper("Kepler K20m"): percent, emulator(variant): round(efficiency(counters), 1),
         gpu(recorded.DEVICES[0]): _measured_efficiency(variant)},
        {about("metric"): "L2 bandwidth, GB/s", paper("Kepler K20m"): bandwidths[0], model("K20m"): round(prediction.l2_bandwidth, 1)},
        {about("metric"): "device memory bandwidth, GB/s", paper("Kepler K20m"): bandwidths[1],
         model("K20m"): round(prediction.dram_bandwidth, 1)},
        {about("metric"): "shared memory per block, bytes", paper("Kepler K20m"): shared, emulator(variant): prediction.shared_bytes},
        {about("metric"): "registers per thread", paper("Kepler K20m"): registers, gpu(recorded.DEVICES[0]): ours},
        {about("metric"): "occupancy, %; ours by rule from the paper's registers", paper("Kepler K20m"): achieved,
         emulator(variant): by_rule(registers, shared)},
    ]  # fmt: skip
    for column, count in traffic(counters, setting.whole("reads")).items():
        rows.append({about("metric"): column.name, emulator(variant): count})
    return rows


def _predicted(setting: Setting, variant: str, split: int | None = None) -> Throughput:
    return throughput(work(setting, variant, split), GPU)


def _efficiencies(setting: Setting, variant: str) -> list[Value]:
    """Return the efficiency: counted, and measured on a GPU."""
    counted_efficiency = Value(counted_by(GPU), efficiency(counted(work(setting, variant))))
    return [counted_efficiency, Value(recorded.origin(), _measured_efficiency(variant))]


def _bandwidths(setting: Setting, variant: str) -> dict[str, list[Value]]:
    prediction = _predicted(setting, variant)
    return {"dram": [prediction.rate(prediction.dram_bandwidth)], "l2": [prediction.rate(prediction.l2_bandwidth)]}


def before(setting: Setting) -> Figures:
    """Table 1."""
    counters = counted(work(setting, BEFORE))
    rates = [(100 * rate, efficiency(counted(work(setting, BEFORE, error_rate=rate)))) for rate in ERROR_RATES]
    lines: list[Row] = [
        {about("errors, %"): percent, emulator("warp execution efficiency, %"): round(value, 1)}
        for percent, value in rates
    ]
    return Figures(
        {
            "efficiency": _efficiencies(setting, BEFORE),
            "shared": [Value(counted_by(GPU), counters.total("shared_store_requests"))],
            "local": [Value(counted_by(GPU), counters.total("local_stores"))],
            "occupancy": _occupancy(REGISTERS[BEFORE]),
            **_bandwidths(setting, BEFORE),
        },
        [Table("The original kernel", _profile(setting, BEFORE, (3.5, 0, 24.6), (7.5, 2.0))), Table("By error rate", lines)],
        [Chart("warp execution efficiency", "errors, %", "%", [
            Series("original kernel", Source.emulator, rates), Series("Table 1", Source.paper, [(rate, 3.5) for rate, _ in rates]),
        ])],
        {**TEXTS, "alone": efficiency(counted(work(setting, ALONE)))},
    )  # fmt: skip


def after(setting: Setting) -> Figures:
    """Table 3."""
    now, previous = _bandwidths(setting, AFTER), _bandwidths(setting, BEFORE)
    return Figures(
        {
            "efficiency": _efficiencies(setting, AFTER),
            "shared": [Value(counted_by(GPU), _predicted(setting, AFTER).shared_bytes)],
            "occupancy": _occupancy(REGISTERS[AFTER]),
            **now,
            "rises": [quotient(now[level][0], previous[level][0], level) for level in ("l2", "dram")],
        },
        [Table("The new kernel", _profile(setting, AFTER, (65.7, 1997, 47.1), (40.3, 37.31)))],
        texts={**TEXTS, "vote": 100 * vote_phase(counted(work(setting, AFTER)))},
    )


# ------------------------------------------------------------------ Figure 1 and Table 2
LAYOUTS = "before", "after"


def filters(setting: Setting) -> Figures:
    """Figure 1 and Table 2: queries of the standard filter and of the split filter."""
    values: dict[str, list[Value]] = {name: [] for name in ("hits", "texture", "seconds", "accesses", "lines each")}
    rows: list[Row] = []
    probes: list[Probes] = []
    rule, reads = counted_by(GPU), setting.whole("reads")
    for name, split in zip(LAYOUTS, (None, max(3, round(1 / float(setting["split"])))), strict=True):
        p = Probes.from_counters(counted(work(setting, BEFORE, split)), K)
        profiled, timed = _predicted(setting, BEFORE, split), throughput(work(setting, BEFORE, split), TIMED)
        accesses = round(p.bits / reads * ALL_READS)
        probes.append(p)
        values["hits"].append(Value(predicted_for(GPU), 100 * profiled.hits, name))
        values["texture"].append(profiled.rate(profiled.texture, name))
        values["seconds"].append(timed.seconds)
        values["accesses"].append(Value(rule, accesses))
        values["lines each"].append(Value(rule, p.lines / p.bits))
        rows.append({
            about("filter"): name, emulator("accesses of 1.7 million reads"): accesses,
            **predicted_cells("M2090, seconds", timed.seconds),
            model("K20m, L2 hits of the filter, %"): 100 * profiled.hits,
            model("K20m, L2 throughput of the filter, GB/s"): profiled.texture,
            emulator("queries per read"): round(p.queries / reads), emulator("negative, %"): round(100 * p.negative / p.queries, 1),
            emulator("bits per negative query"): round(p.bits_a_negative, 3),
            emulator("lines per lane's access"): round(p.lines / p.bits, 3),
            emulator("lines per warp access"): round(p.lines / p.requests, 2),
        })  # fmt: skip
    standard = probes[0]

    def change(name: str) -> list[Value]:
        first, second = values[name]
        return [quotient(second, first, "")]

    return Figures(
        {
            "better": change("hits"), "lines": change("lines each"), "times": change("seconds"), "more": change("accesses"),
            "accesses": values["accesses"][:1],
            "negative": [Value(rule, 100 * standard.negative / standard.queries)],
            "bits": [Value(rule, standard.bits_a_negative)],
            "all bits": [Value(rule, standard.bits / standard.queries)],
            "hits": values["hits"], "texture": values["texture"],
        },
        [Table("Filter queries of the original kernel", rows)],
        texts={**TEXTS, "warp_lines": " and ".join(f"{p.lines / p.requests:.2f}" for p in probes)},
    )  # fmt: skip
