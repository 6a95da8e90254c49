"""Microbenchmarks of a GPU: latencies, rates and widths by section, and the device row derived from them."""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from simtbed import Device, Kernel, SimtbedError, UnavailableError

from . import microbenchmarks as kernels
from .microbenchmarks import regions_in_turn
from .patterns import FILLED, fours_from_l2, words_from_l1, words_from_l2

ITERATIONS, STEPS = 64, 16
"""Iterations of a chain, and operations an iteration."""
HOPS = 1 << 14
LINES, ADDS = 64, 256
"""Lines with timed atomic operations, and operations on each."""
SEED = 20
CHASED = (16, 64, 128, 192, 224, 512, *(size << 10 for size in (1, 4, 8, 16, 24, 32, 40, 48, 56)))
"""KiB of arrays for warm chains of loads. Sizes beyond L2 are omitted."""
BLOCK = 1024
REPEATS = 7
_PLAIN = 1.3
"""Smallest ratio of two times that shows a change."""

Values = npt.NDArray[Any]
Figures = dict[str, Any]


@dataclass(frozen=True)
class LaunchResult:
    """Result of a launch: its written arrays, and milliseconds (0 on an emulator)."""

    arrays: Mapping[str, Values]
    milliseconds: float


Run = Callable[[Kernel, int, int, Mapping[str, Any]], LaunchResult]
"""Launches a kernel on a grid of blocks: (kernel, grid, block, arguments). Arrays remain on the GPU between launches."""


def cycle(words: int, stride: int) -> npt.NDArray[np.int32]:
    """Return an array with a cycle through every `stride`-th element in random order: each holds the index of the next."""
    order = (np.random.default_rng(SEED).permutation(words // stride) * stride).astype(np.int32)
    next = np.zeros(words, np.int32)
    next[order] = np.roll(order, -1)
    return next


@dataclass
class Bench:
    """A GPU and its launcher. scale: divisor of sizes, for emulators. found: values of the sections so far."""

    device: Device
    run: Run
    scale: int = 1
    values: Figures = field(default_factory=dict)

    @property
    def threads(self) -> int:
        """Threads that fill the GPU."""
        return self.device.sms * 2 * BLOCK

    def chain(self, kernel: Kernel, **args: Any) -> float:
        """Return the cycles of an operation of a chain."""
        result = self.run(kernel, 1, 32, {"out": np.zeros(2, np.int64), **args, "TURNS": ITERATIONS, "STEPS": STEPS})
        return round(float(result.arrays["out"][0]) / (ITERATIONS * STEPS), 2)

    def milliseconds(self, kernel: Kernel, grid: int, block: int, args: Mapping[str, Any]) -> float:
        """Return the median time after one warm-up launch."""
        self.run(kernel, grid, block, args)
        return statistics.median(self.run(kernel, grid, block, args).milliseconds for _ in range(REPEATS))

    def net(self, kernel: Kernel, grid: int, block: int, args: Mapping[str, Any]) -> float:
        """Return milliseconds minus those of an empty kernel, at least a nanosecond."""
        return max(1e-6, self.milliseconds(kernel, grid, block, args) - float(self.values.get("empty_us", 0)) / 1000)

    @property
    def cycles(self) -> float:
        """SM cycles of a millisecond."""
        return 1000 * float(self.values.get("clock", self.device.clock))


def _clock(bench: Bench) -> Figures:
    """Return MHz from two lengths of a chain, without the constant overhead of a launch."""
    iterations, spun = 4_000_000 // bench.scale, []
    for factor in (8, 1, 3):  # the first one warms the clock up
        result = bench.run(kernels.spin, 1, 1, {"out": np.zeros(2, np.int64), "turns": factor * iterations})
        spun.append((float(result.arrays["out"][0]), result.milliseconds))
    (_, short, long) = spun
    return {"clock": round((long[0] - short[0]) / max(1e-9, long[1] - short[1]) / 1000)}


def _launches(bench: Bench) -> Figures:
    """Return microseconds of empty kernels: one block, a block an SM, and very many blocks of several sizes."""
    out = {"out": np.zeros(1, np.int32)}
    values = {
        "empty_us": bench.milliseconds(kernels.empty, 1, 32, out),
        "empty_all_us": bench.milliseconds(kernels.empty, bench.device.sms, 32, out),
    }
    many = (1 << 18) // bench.scale
    for block in (32, 256, 1024):
        values[f"empty_{many}_blocks_of_{block}_us"] = bench.milliseconds(kernels.empty, many, block, out)
    return {name: round(1000 * each, 3) for name, each in values.items()}


def _chains(bench: Bench) -> Figures:
    """Return cycles of dependent instructions."""
    return {
        "fp32_cycles": bench.chain(kernels.float_chain, x=0.0),
        "fp64_cycles": bench.chain(kernels.double_chain, x=0.0),
        "imul_cycles": bench.chain(kernels.product_chain, x=0),
        "convert_pair_cycles": bench.chain(kernels.convert_chain, x=0),
        "shuffle_cycles": bench.chain(kernels.shuffle_chain, x=0),
    }


def _barriers(bench: Bench) -> Figures:
    """Return cycles of a barrier by block size."""
    out = {"out": np.zeros(1, np.int64), "TURNS": ITERATIONS, "STEPS": STEPS}
    sizes, barriers = (64, 256, 1024), ITERATIONS * STEPS
    return {
        f"barrier_{n}_cycles": float(bench.run(kernels.barriers, 1, n, out).arrays["out"][0]) / barriers for n in sizes
    }


def _shared(bench: Bench) -> Figures:
    """Return cycles of a load from shared memory, with its address instruction."""
    args: dict[str, Any] = {"next": cycle(32, 1), "out": np.zeros(2, np.int64), "hops": HOPS // bench.scale}
    return {"shared_hop_cycles": float(bench.run(kernels.shared_chase, 1, 32, args).arrays["out"][0]) / args["hops"]}


def _chase(bench: Bench, words: int) -> Callable[[int, int], float]:
    """Return a chain of loads through an array on the GPU: (warm-up hops, timed hops) to cycles of a hop."""
    args: dict[str, Any] = {"next": cycle(words, 32), "out": np.zeros(2, np.int64)}

    def cycles(warm: int, hops: int) -> float:
        result = bench.run(kernels.chase, 1, 1, {**args, "warm": warm, "hops": hops})
        return round(float(result.arrays["out"][0]) / hops, 2)

    cycles(0, 1)
    return cycles


def _chased(bench: Bench) -> Figures:
    """Return cycles of a load with its address instruction, by the KiB of the warm chain."""
    values = {}
    for kib in CHASED:
        words = 256 * kib
        if 4 * words <= bench.device.l2:
            values[str(kib)] = _chase(bench, words)(words // 32, HOPS // bench.scale)
    return {"hop_cycles_by_kib": values}


def _beyond(bench: Bench) -> Figures:
    """Return cycles of a load from device memory, from arrays of four and eight times the size of L2."""
    values = {}
    n = bench.device.l2 // 4
    flush = {"x": np.zeros((n, 4), np.float32), "out": np.zeros(bench.device.sms * 256, np.float32), "n": n}
    for times in (4, 8):
        words = times * bench.device.l2 // 4
        chase = _chase(bench, words)
        bench.run(kernels.flush, bench.device.sms, 256, flush)
        values[str(words // 256)] = chase(0, HOPS // bench.scale)
    return {"dram_hop_cycles_by_kib": values}


def _halves(bench: Bench) -> Figures:
    """Return cycles of an atomic operation with a result, by line: the farther half of L2 takes longer."""
    x = np.zeros(32 * LINES, np.int32)
    x[::32] = 32 * np.arange(LINES)
    args = {"x": x, "out": np.zeros(LINES + 1, np.int64), "lines": LINES, "hops": ADDS}
    values = bench.run(kernels.atomic_lines, 1, 1, args).arrays["out"][:LINES] / ADDS
    return {"atomic_cycles_by_line": [round(float(each), 1) for each in values]}


def _rates(bench: Bench) -> Figures:
    """Return lanes a cycle and SM of each pipe."""
    iterations = max(1, 512 // bench.scale)
    operations = 32 * iterations * bench.threads
    values = {}
    pipes: tuple[tuple[str, Kernel, Any, Any, int], ...] = (
        ("fp32", kernels.float_rate, np.float32, 0.0, 1), ("fp64", kernels.double_rate, np.float64, 0.0, 1),
        ("imul", kernels.product_rate, np.int32, 3, 1), ("alu", kernels.logic_rate, np.int32, 3, 2),
        ("convert", kernels.convert_rate, np.int32, 3, 1), ("shuffle", kernels.shuffle_rate, np.int32, 3, 1),
    )  # fmt: skip
    for name, kernel, dtype, x, operations_an_iteration in pipes:
        args = {"out": np.zeros(bench.threads, dtype), "x": x, "TURNS": iterations}
        milliseconds = bench.net(kernel, bench.threads // 256, 256, args)
        values[name] = round(operations_an_iteration * operations / (milliseconds * bench.cycles * bench.device.sms), 1)
    return {"lanes_a_cycle": values}


def _caches(bench: Bench) -> Figures:
    """Return bytes a cycle and SM of L1 for 4 and 16 bytes a lane, and lines of L1 hits; bytes and missed lines a cycle
    of one SM from L2; GB/s of L2 for all SMs."""
    sms, iterations = bench.device.sms, max(1, 256 // bench.scale)
    near = {"x": np.ones(1 << 15, np.float32), "out": np.zeros(bench.threads, np.float32)}
    lane, accesses = np.arange(32, dtype=np.int32), bench.threads / 32 * 16 * iterations / sms
    values = {}
    for name, bytes_or_lines, at in (("l1_bytes_a_cycle", 128, lane), ("l1_lines_a_cycle_of_one_sm", 32, 33 * lane)):
        args = {**near, "at": at, "turns": iterations, "LINE": 1024}  # 32 lines: the lines of a load keep their order
        values[name] = bytes_or_lines * accesses / (bench.net(words_from_l1, 2 * sms, BLOCK, args) * bench.cycles)
    wide = {"x": np.ones((1 << 14, 4), np.float32), "out": near["out"], "mask": 2047, "step": 32, "turns": iterations}
    milliseconds = bench.net(kernels.wide_reads, 4 * sms, 512, wide)
    values["l1_wide_bytes_a_cycle"] = 64.0 * bench.threads * iterations / sms / (milliseconds * bench.cycles)
    few, size = max(1, sms // 8), FILLED // bench.scale
    accesses = BLOCK / 32 * 16 * iterations
    for name, kernel, bytes_or_lines, shape, at, distance in (
        ("l2_bytes_a_cycle_of_one_sm", fours_from_l2, 512, (size // 16, 4), lane, 4),
        ("missed_lines_a_cycle_of_one_sm", words_from_l2, 32, (size // 4,), 33 * lane, 33),
    ):
        of_line = {"mask": shape[0] - 1, "LINE": 128 * shape[0] // size}
        args = {
            "x": np.ones(shape, np.float32),
            "at": at,
            "out": near["out"],
            "turns": iterations,
            "apart": distance,
            **of_line,
        }
        values[name] = bytes_or_lines * accesses / (bench.net(kernel, few, BLOCK, args) * bench.cycles)
    far = {**near, "step": 16 * BLOCK}
    for mib in (8, 16, 32):  # all SMs read different lines at a time
        words = mib * (1 << 18) // bench.scale
        distance = max(1, words // (2 * sms) // BLOCK) * BLOCK
        far = {**far, "x": np.ones(words + (1 << 15), np.float32), "mask": words - 1, "apart": distance}
        if words * 4 <= bench.device.l2:
            milliseconds = bench.net(kernels.reads, 2 * sms, BLOCK, {**far, "turns": iterations})
            values[f"l2_{words * 4 >> 20}_mib_gb_s"] = 64.0 * bench.threads * iterations / milliseconds / 1e6
    words = (1 << 22) // bench.scale
    milliseconds = bench.net(kernels.scatter, 2 * sms, BLOCK, {"out": np.zeros(words, np.float32), "mask": words - 1})
    values["lines_written_a_cycle"] = 16.0 * bench.threads / (milliseconds * bench.cycles)
    whole = (1 << 20) // bench.scale
    milliseconds = bench.net(kernels.wide_write, 2 * sms, BLOCK, {"out": np.zeros((whole, 4), np.float32), "n": whole})
    values["whole_sectors_a_cycle"] = 0.5 * whole / (milliseconds * bench.cycles)
    iterations = max(1, 16 // bench.scale)
    words = (1 << 20) // bench.scale
    random = {"x": np.ones(words, np.float32), "out": near["out"], "mask": words - 1, "turns": iterations}
    milliseconds, lines = bench.net(kernels.gathers, 2 * sms, BLOCK, random), words / 32
    different = lines * (1 - (1 - 1 / lines) ** 32)  # expected different lines of a warp
    values["l2_lines_a_cycle"] = 8 * iterations * bench.threads / 32 / (milliseconds * bench.cycles) * different
    return {name: round(bytes_or_lines, 1) for name, bytes_or_lines in values.items()}


def _device_memory(bench: Bench) -> Figures:
    """Return GB/s of device memory: a copy, writes, reads, and sectors at random addresses."""
    n = (1 << 28) // bench.scale
    x, out = np.ones((n // 4, 4), np.float32), np.zeros((n // 4, 4), np.float32)
    grid = bench.threads // 256
    values = {"copy_gb_s": 8e-6 * n / bench.net(kernels.wide_copy, grid, 256, {"x": x, "out": out, "n": n // 4})}
    values["write_gb_s"] = 4e-6 * n / bench.net(kernels.wide_write, grid, 256, {"out": out, "n": n // 4})
    sums = np.zeros(bench.threads, np.float32)
    wide = {"x": x, "out": sums, "n": n // 4}
    values["read_gb_s"] = 4e-6 * n / bench.net(kernels.flush, bench.threads // 256, 256, wide)
    picked = n // 16
    index = np.random.default_rng(SEED).integers(0, n, picked, dtype=np.int32)
    few = {"x": x.reshape(-1), "index": index, "out": np.zeros(picked, np.float32)}
    values["drawn_sectors_gb_s"] = 40e-6 * picked / bench.net(kernels.pick, picked // 256, 256, few)
    return {name: round(each, 1) for name, each in values.items()}


def _atomics(bench: Bench) -> Figures:
    """Return nanoseconds of an addition: all to one address, to 32 of a line, to 1,024, to a million."""
    n = (1 << 22) // bench.scale
    random = np.random.default_rng(SEED).integers(0, 1 << 20, n, dtype=np.int32)
    places = {
        "one": np.zeros(n, np.int32), "line": (np.arange(n) % 32).astype(np.int32), "thousand": random % 1024, "million": random,
    }  # fmt: skip
    values = {}
    for name, index in places.items():
        milliseconds = bench.net(kernels.adds, n // 256, 256, {"index": index, "out": np.zeros(1 << 20, np.int32)})
        values[name] = round(1e6 * milliseconds / n, 5)
    milliseconds = bench.net(kernels.swaps, n // 1024, 256, {"index": random, "out": np.zeros(1 << 20, np.int32)})
    values["swaps of a million"] = round(1e6 * milliseconds / (2 * n), 5)
    milliseconds = bench.net(kernels.float_adds, n // 4096, 256, {"out": np.zeros(1, np.float32)})
    values["floats to one"] = round(1e6 * milliseconds / (n // 16), 5)
    return {"nanoseconds_an_addition": values}


def _stores(bench: Bench) -> Figures:
    """Return times of stores to lines with earlier stores of the warp, which L1 merges: nanoseconds of a store by the
    number of lines, for one warp an SM; cycles of a store by the products between two stores, for two warps with
    eight lines each; cycles to issue N stores."""
    sms, values = bench.device.sms, dict[str, Figures]({"in turn": {}, "later": {}, "queued": {}})
    for regions in range(4, 21):
        iterations = max(1, 256 // regions // bench.scale)
        region = sms * 64 * iterations
        args = {
            "out": np.zeros(region * regions, np.float32),
            "turns": iterations,
            "region": region,
            "REGIONS": regions,
        }
        milliseconds = bench.net(regions_in_turn, sms, 32, args)
        values["in turn"][str(2 * regions)] = round(1e6 * milliseconds / (2 * iterations * regions), 2)
    iterations = max(1, 64 // bench.scale)
    for later in range(0, 52, 4):
        args = {"out": np.zeros(sms * 64 * iterations * 8, np.float32), "turns": iterations, "WORDS": 8, "LATER": later}
        milliseconds = bench.net(kernels.stores_later, sms, 64, args)
        values["later"][str(later)] = round(milliseconds * bench.cycles / (iterations * 8), 1)
    for stores in range(1, 25):
        args = {"x": np.zeros(stores << 10, np.float32), "out": np.zeros(1, np.int64), "STORES": stores}
        bench.run(kernels.stores_queued, 1, 32, args)
        values["queued"][str(stores)] = int(bench.run(kernels.stores_queued, 1, 32, args).arrays["out"][0])
    return {"stores": values}


SECTIONS: Mapping[str, Callable[[Bench], Figures]] = {
    "clock": _clock, "launches": _launches, "chains": _chains, "barriers": _barriers, "shared memory": _shared,
    "halves of L2": _halves, "latencies of loads": _chased, "rates": _rates, "caches": _caches, "stores": _stores,
    "atomic operations": _atomics, "device memory": _device_memory, "latency of device memory": _beyond,
}  # fmt: skip
"""Sections in order of measurement; clock and launches are first, because others need them."""


def measure_all(bench: Bench, report: Callable[[str, str], None]) -> Figures:
    """Return the values of all sections. `done` is called with the name of each section and its error, or an empty
    text; an error does not stop the other sections."""
    for name, section in SECTIONS.items():
        trouble = ""
        try:
            bench.values |= section(bench)
        except UnavailableError:  # no GPU
            raise
        except (SimtbedError, MemoryError, ArithmeticError) as error:
            trouble = str(error) or type(error).__name__
        report(name, trouble)
    return bench.values


# ------------------------------------------------------------------ device row
def fields_of(values: Figures, device: Device) -> tuple[dict[str, int | float], dict[str, int]]:
    """Return the fields of the device's timing and of its rates, derived from the values of the sections."""
    timing: dict[str, int | float] = {}
    rates: dict[str, int] = {}
    if "fp32_cycles" in values:
        alu = round(values["fp32_cycles"])
        timing |= {
            "alu": alu, "fp64": round(values["fp64_cycles"]), "shuffle": round(values["shuffle_cycles"]),
            "sfu": round(values["convert_pair_cycles"]) - alu,
        }  # fmt: skip
    address = int(timing.get("alu", device.timing.alu))
    if "barrier_256_cycles" in values:
        timing["barrier"] = round(values["barrier_256_cycles"])
    if "shared_hop_cycles" in values:
        timing["shared"] = round(values["shared_hop_cycles"]) - address
    hops = {int(kib): each for kib, each in values.get("hop_cycles_by_kib", {}).items()}
    if hops:
        timing["l1"] = round(hops[min(hops)]) - address
    lines = sorted(values.get("atomic_cycles_by_line", []))
    far_latency = statistics.median(lines[LINES // 2 :]) - statistics.median(lines[: LINES // 2]) if lines else 0.0
    if lines:
        timing["atomic"] = round(statistics.mean(lines)) - address
    of_l2 = [each for kib, each in hops.items() if 2 * device.timing.l1_size <= 1024 * kib <= device.l2 // 4]
    if of_l2:
        timing["l2"] = round(min(of_l2)) - address
        timing["l2_far"] = round(min(of_l2) + far_latency) - address
    if beyond := values.get("dram_hop_cycles_by_kib"):
        timing["dram"] = round(min(beyond.values())) - address
    clock = values.get("clock", device.clock) / 1000
    timing |= _intervals(values, device, clock)
    if "l1_bytes_a_cycle" in values:
        timing["request_interval"] = max(0.01, round(128 / max(1.0, values["l1_bytes_a_cycle"]), 2))
    if "missed_lines_a_cycle_of_one_sm" in values:
        timing["miss_interval"] = max(0.01, round(1 / max(0.01, values["missed_lines_a_cycle_of_one_sm"]), 2))
    each_cycle = {
        "request_rate": "lines_written_a_cycle", "store_rate": "whole_sectors_a_cycle", "load_rate": "l2_lines_a_cycle",
        "lookup_rate": "l1_lines_a_cycle_of_one_sm",
    }  # fmt: skip
    timing |= {name: max(0.01, values[of]) for name, of in each_cycle.items() if of in values}
    if "stores" in values:
        timing |= of_stores(values["stores"], float(values.get("fp32_cycles", device.timing.alu)))
    widths = {"l1_width": "l1_wide_bytes_a_cycle", "l2_width": "l2_bytes_a_cycle_of_one_sm"}
    timing |= {name: max(1, round(values[of])) for name, of in widths.items() if of in values}
    of_all = [each for name, each in values.items() if name.startswith("l2_") and name.endswith("_gb_s")]
    if of_all:
        timing["l2_bandwidth"] = max(of_all)
    if "read_gb_s" in values:
        timing["dram_share"] = min(1000, round(values["read_gb_s"] / device.bandwidth * 1000))
    if "empty_us" in values:
        timing["launch"] = max(1, round(1000 * values["empty_us"]))
    for name, lanes in values.get("lanes_a_cycle", {}).items():
        rates[name] = max(1, 1 << round(float(np.log2(max(1.0, lanes)))))
    return timing, rates


def _intervals(values: Figures, device: Device, clock: float) -> dict[str, int | float]:
    """Return the intervals and rates of atomic operations, blocks and warps. clock: GHz."""
    timing: dict[str, int | float] = {}
    if added := values.get("nanoseconds_an_addition"):
        timing["atomic_interval"] = max(0.01, round(added["one"] * clock, 2))
        timing["atomic_rate"] = round(1 / max(1e-6, added["million"] * clock), 1)
        timing["float_interval"] = max(0.01, round(added["floats to one"] * clock, 2))
        timing["fetch_rate"] = round(1 / max(1e-6, added["swaps of a million"] * clock), 1)
    many = {
        int(name.split("_")[4]): (int(name.split("_")[1]), each)
        for name, each in values.items()
        if "_blocks_of_" in name
    }
    if many:
        intervals = {block: microseconds * 1000 * clock / blocks for block, (blocks, microseconds) in many.items()}
        timing["block_interval"] = max(0.01, round(min(intervals.values()), 2))
        timing["warp_interval"] = max(0.01, round(max(intervals.values()) * device.sms / (max(many) / 32), 1))
    return timing


def of_stores(values: Figures, product: float) -> dict[str, int | float]:
    """Return the number of open lines, the cycles for which they are open, and the length of the store queue, if the
    times of `_stores` show them. product: latency of a product in cycles."""
    timing: dict[str, int | float] = {}
    sequential = {int(lines): each for lines, each in values["in turn"].items()}
    least, most = min(sequential.values()), max(sequential.values())
    if most > _PLAIN * least:
        timing["open_lines"] = max(lines for lines, each in sequential.items() if each < (least + most) / 2)
    later = sorted((int(products), each) for products, each in values["later"].items())
    for (before, cycles), (products, longer) in pairwise(later):
        if longer - cycles > 2 * (products - before) * product:
            timing["open_cycles"] = max(1, round(cycles))
            break
    queued = [each for _, each in sorted((int(stores), each) for stores, each in values["queued"].items())]
    steps = [after - before for before, after in pairwise(queued)]
    if steps[-1] > _PLAIN * max(1, steps[0]):  # one store executes, the next one waits
        timing["queue"] = max(1, next(n for n, step in enumerate(steps) if step > steps[-1] / 2))
    return timing
