"""Figures of a GPU from microbenchmarks: parts that fail or succeed one by one, and the device's row that follows from them."""

from __future__ import annotations

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

TURNS, STEPS = 64, 16
"""Iterations of a chain, and operations that each of them has."""
HOPS = 1 << 14
LINES, ADDS = 64, 256
"""Lines whose atomic operations are timed, and how many of them on each."""
SEED = 20
CHASED = (
    16,
    64,
    128,
    192,
    224,
    512,
    1 << 10,
    4 << 10,
    8 << 10,
    16 << 10,
    24 << 10,
    32 << 10,
    40 << 10,
    48 << 10,
    56 << 10,
)
"""KiB of arrays through which chains of loads go, warm. Those that do not fit in L2 are left out."""
BLOCK = 1024
REPEATS = 7
_PLAIN = 1.3
"""By how much two figures differ at least that show a change."""

Values = npt.NDArray[Any]
Figures = dict[str, Any]


@dataclass(frozen=True)
class Taken:
    """What a launch gave: its written arrays, and milliseconds, 0 where nobody measured them."""

    arrays: Mapping[str, Values]
    milliseconds: float


Run = Callable[[Kernel, int, int, Mapping[str, Any]], Taken]
"""Launches a kernel on a grid of blocks: (kernel, grid, block, arguments). Arrays stay from launch to launch on the GPU."""


def cycle(words: int, stride: int) -> npt.NDArray[np.int32]:
    """An array of which every `stride`-th element names the next of one cycle through all of them, in an order as drawn."""
    order = (np.random.default_rng(SEED).permutation(words // stride) * stride).astype(np.int32)
    next = np.zeros(words, np.int32)
    next[order] = np.roll(order, -1)
    return next


@dataclass
class Bench:
    """A GPU and how its kernels are launched. scale: what sizes are divided by, for emulators. found: of the parts so far."""

    device: Device
    run: Run
    scale: int = 1
    found: Figures = field(default_factory=dict)

    @property
    def threads(self) -> int:
        """That fill the GPU."""
        return self.device.sms * 2 * BLOCK

    def chain(self, kernel: Kernel, **args: Any) -> float:
        """Cycles of an operation of a chain."""
        taken = self.run(kernel, 1, 32, {"out": np.zeros(2, np.int64), **args, "TURNS": TURNS, "STEPS": STEPS})
        return round(float(taken.arrays["out"][0]) / (TURNS * STEPS), 2)

    def milliseconds(self, kernel: Kernel, grid: int, block: int, args: Mapping[str, Any]) -> float:
        """The median after a launch that is not counted."""
        self.run(kernel, grid, block, args)
        return statistics.median(self.run(kernel, grid, block, args).milliseconds for _ in range(REPEATS))

    def net(self, kernel: Kernel, grid: int, block: int, args: Mapping[str, Any]) -> float:
        """Milliseconds without those of an empty kernel, a nanosecond at least."""
        return max(1e-6, self.milliseconds(kernel, grid, block, args) - float(self.found.get("empty_us", 0)) / 1000)

    @property
    def cycles(self) -> float:
        """Of the SM's clock, a millisecond's."""
        return 1000 * float(self.found.get("clock", self.device.clock))


def _clock(bench: Bench) -> Figures:
    """MHz, from two lengths of a chain, so that what a launch takes besides does not count."""
    turns, spun = 4_000_000 // bench.scale, []
    for factor in (8, 1, 3):  # the first one warms the clock up
        taken = bench.run(kernels.spin, 1, 1, {"out": np.zeros(2, np.int64), "turns": factor * turns})
        spun.append((float(taken.arrays["out"][0]), taken.milliseconds))
    (_, short, long) = spun
    return {"clock": round((long[0] - short[0]) / max(1e-9, long[1] - short[1]) / 1000)}


def _launches(bench: Bench) -> Figures:
    """Microseconds of kernels that do nothing: one block, a block an SM, and very many blocks of several sizes."""
    out = {"out": np.zeros(1, np.int32)}
    found = {
        "empty_us": bench.milliseconds(kernels.empty, 1, 32, out),
        "empty_all_us": bench.milliseconds(kernels.empty, bench.device.sms, 32, out),
    }
    many = (1 << 18) // bench.scale
    for block in (32, 256, 1024):
        found[f"empty_{many}_blocks_of_{block}_us"] = bench.milliseconds(kernels.empty, many, block, out)
    return {name: round(1000 * each, 3) for name, each in found.items()}


def _chains(bench: Bench) -> Figures:
    """Cycles of instructions that wait for each other."""
    return {
        "fp32_cycles": bench.chain(kernels.float_chain, x=0.0),
        "fp64_cycles": bench.chain(kernels.double_chain, x=0.0),
        "imul_cycles": bench.chain(kernels.product_chain, x=0),
        "convert_pair_cycles": bench.chain(kernels.convert_chain, x=0),
        "shuffle_cycles": bench.chain(kernels.shuffle_chain),
    }


def _barriers(bench: Bench) -> Figures:
    """Cycles of a barrier by the size of the block."""
    out = {"out": np.zeros(1, np.int64), "TURNS": TURNS, "STEPS": STEPS}
    sizes, barriers = (64, 256, 1024), TURNS * STEPS
    return {
        f"barrier_{n}_cycles": float(bench.run(kernels.barriers, 1, n, out).arrays["out"][0]) / barriers for n in sizes
    }


def _shared(bench: Bench) -> Figures:
    """Cycles of a load from shared memory with the instruction for its address."""
    held: dict[str, Any] = {"next": cycle(32, 1), "out": np.zeros(2, np.int64), "hops": HOPS // bench.scale}
    return {"shared_hop_cycles": float(bench.run(kernels.shared_chase, 1, 32, held).arrays["out"][0]) / held["hops"]}


def _chase(bench: Bench, words: int) -> Callable[[int, int], float]:
    """A chain of loads through an array that is on the GPU: (hops before, hops that are timed) to cycles of a hop."""
    given: dict[str, Any] = {"next": cycle(words, 32), "out": np.zeros(2, np.int64)}

    def cycles(warm: int, hops: int) -> float:
        taken = bench.run(kernels.chase, 1, 1, {**given, "warm": warm, "hops": hops})
        return round(float(taken.arrays["out"][0]) / hops, 2)

    cycles(0, 1)
    return cycles


def _chased(bench: Bench) -> Figures:
    """Cycles of a load with the instruction for its address, by the KiB that the chain goes through, all of them read before."""
    found = {}
    for kib in CHASED:
        words = 256 * kib
        if 4 * words <= bench.device.l2:
            found[str(kib)] = _chase(bench, words)(words // 32, HOPS // bench.scale)
    return {"hop_cycles_by_kib": found}


def _beyond(bench: Bench) -> Figures:
    """Cycles of a load that L2 does not answer, from arrays of four and eight times its size."""
    found = {}
    n = bench.device.l2 // 4
    flush = {"x": np.zeros((n, 4), np.float32), "out": np.zeros(bench.device.sms * 256, np.float32), "n": n}
    for times in (4, 8):
        words = times * bench.device.l2 // 4
        chase = _chase(bench, words)
        bench.run(kernels.flush, bench.device.sms, 256, flush)
        found[str(words // 256)] = chase(0, HOPS // bench.scale)
    return {"dram_hop_cycles_by_kib": found}


def _halves(bench: Bench) -> Figures:
    """Cycles of an atomic operation that returns a value, by line: those of the farther half of L2 take longer."""
    x = np.zeros(32 * LINES, np.int32)
    x[::32] = 32 * np.arange(LINES)
    args = {"x": x, "out": np.zeros(LINES + 1, np.int64), "lines": LINES, "hops": ADDS}
    found = bench.run(kernels.atomic_lines, 1, 1, args).arrays["out"][:LINES] / ADDS
    return {"atomic_cycles_by_line": [round(float(each), 1) for each in found]}


def _rates(bench: Bench) -> Figures:
    """Lanes a cycle and SM of each pipe."""
    turns = max(1, 512 // bench.scale)
    operations = 32 * turns * bench.threads
    found = {}
    parts: tuple[tuple[str, Kernel, Any, Any, int], ...] = (
        ("fp32", kernels.float_rate, np.float32, 0.0, 1), ("fp64", kernels.double_rate, np.float64, 0.0, 1),
        ("imul", kernels.product_rate, np.int32, 3, 1), ("alu", kernels.logic_rate, np.int32, 3, 2),
        ("convert", kernels.convert_rate, np.int32, 3, 1), ("shuffle", kernels.shuffle_rate, np.int32, 3, 1),
    )  # fmt: skip
    for name, kernel, dtype, x, each in parts:
        args = {"out": np.zeros(bench.threads, dtype), "x": x, "TURNS": turns}
        took = bench.net(kernel, bench.threads // 256, 256, args)
        found[name] = round(each * operations / (took * bench.cycles * bench.device.sms), 1)
    return {"lanes_a_cycle": found}


def _caches(bench: Bench) -> Figures:
    """Bytes a cycle and SM that L1 gives, 4 and 16 bytes a lane, and lines that it finds; bytes that an SM gets from L2, and lines that
    it asks for; of L2, GB/s of all SMs."""
    sms, turns = bench.device.sms, max(1, 256 // bench.scale)
    near = {"x": np.ones(1 << 15, np.float32), "out": np.zeros(bench.threads, np.float32)}
    lane, accesses = np.arange(32, dtype=np.int32), bench.threads / 32 * 16 * turns / sms
    found = {}
    for name, each, at in (("l1_bytes_a_cycle", 128, lane), ("l1_lines_a_cycle_of_one_sm", 32, 33 * lane)):
        given = {**near, "at": at, "turns": turns, "LINE": 1024}  # 32 lines: those of a load stay in order
        found[name] = each * accesses / (bench.net(words_from_l1, 2 * sms, BLOCK, given) * bench.cycles)
    wide = {"x": np.ones((1 << 14, 4), np.float32), "out": near["out"], "mask": 2047, "step": 32, "turns": turns}
    took = bench.net(kernels.wide_reads, 4 * sms, 512, wide)
    found["l1_wide_bytes_a_cycle"] = 64.0 * bench.threads * turns / sms / (took * bench.cycles)
    few, size = max(1, sms // 8), FILLED // bench.scale
    accesses = BLOCK / 32 * 16 * turns
    for name, kernel, each, shape, at, apart in (
        ("l2_bytes_a_cycle_of_one_sm", fours_from_l2, 512, (size // 16, 4), lane, 4),
        ("missed_lines_a_cycle_of_one_sm", words_from_l2, 32, (size // 4,), 33 * lane, 33),
    ):
        of_line = {"mask": shape[0] - 1, "LINE": 128 * shape[0] // size}
        given = {
            "x": np.ones(shape, np.float32),
            "at": at,
            "out": near["out"],
            "turns": turns,
            "apart": apart,
            **of_line,
        }
        found[name] = each * accesses / (bench.net(kernel, few, BLOCK, given) * bench.cycles)
    far = {**near, "step": 16 * BLOCK}
    for mib in (8, 16, 32):  # at each time all SMs read other lines
        words = mib * (1 << 18) // bench.scale
        apart = max(1, words // (2 * sms) // BLOCK) * BLOCK
        far = {**far, "x": np.ones(words + (1 << 15), np.float32), "mask": words - 1, "apart": apart}
        if words * 4 <= bench.device.l2:
            took = bench.net(kernels.reads, 2 * sms, BLOCK, {**far, "turns": turns})
            found[f"l2_{words * 4 >> 20}_mib_gb_s"] = 64.0 * bench.threads * turns / took / 1e6
    words = (1 << 22) // bench.scale
    took = bench.net(kernels.scatter, 2 * sms, BLOCK, {"out": np.zeros(words, np.float32), "mask": words - 1})
    found["lines_written_a_cycle"] = 16.0 * bench.threads / (took * bench.cycles)
    whole = (1 << 20) // bench.scale
    took = bench.net(kernels.wide_write, 2 * sms, BLOCK, {"out": np.zeros((whole, 4), np.float32), "n": whole})
    found["whole_sectors_a_cycle"] = 0.5 * whole / (took * bench.cycles)
    turns = max(1, 16 // bench.scale)
    words = (1 << 20) // bench.scale
    drawn = {"x": np.ones(words, np.float32), "out": near["out"], "mask": words - 1, "turns": turns}
    took, lines = bench.net(kernels.gathers, 2 * sms, BLOCK, drawn), words / 32
    different = lines * (1 - (1 - 1 / lines) ** 32)  # of those that a warp draws
    found["l2_lines_a_cycle"] = 8 * turns * bench.threads / 32 / (took * bench.cycles) * different
    return {name: round(each, 1) for name, each in found.items()}


def _device_memory(bench: Bench) -> Figures:
    """GB/s of device memory: a copy, writes, reads, and sectors read from places as drawn."""
    n = (1 << 28) // bench.scale
    x, out = np.ones((n // 4, 4), np.float32), np.zeros((n // 4, 4), np.float32)
    grid = bench.threads // 256
    found = {"copy_gb_s": 8e-6 * n / bench.net(kernels.wide_copy, grid, 256, {"x": x, "out": out, "n": n // 4})}
    found["write_gb_s"] = 4e-6 * n / bench.net(kernels.wide_write, grid, 256, {"out": out, "n": n // 4})
    sums = np.zeros(bench.threads, np.float32)
    wide = {"x": x, "out": sums, "n": n // 4}
    found["read_gb_s"] = 4e-6 * n / bench.net(kernels.flush, bench.threads // 256, 256, wide)
    picked = n // 16
    index = np.random.default_rng(SEED).integers(0, n, picked, dtype=np.int32)
    few = {"x": x.reshape(-1), "index": index, "out": np.zeros(picked, np.float32)}
    found["drawn_sectors_gb_s"] = 40e-6 * picked / bench.net(kernels.pick, picked // 256, 256, few)
    return {name: round(each, 1) for name, each in found.items()}


def _atomics(bench: Bench) -> Figures:
    """Nanoseconds an addition: all to one address, to 32 of a line, to 1,024, to a million."""
    n = (1 << 22) // bench.scale
    drawn = np.random.default_rng(SEED).integers(0, 1 << 20, n, dtype=np.int32)
    places = {
        "one": np.zeros(n, np.int32), "line": (np.arange(n) % 32).astype(np.int32), "thousand": drawn % 1024, "million": drawn,
    }  # fmt: skip
    found = {}
    for name, index in places.items():
        took = bench.net(kernels.adds, n // 256, 256, {"index": index, "out": np.zeros(1 << 20, np.int32)})
        found[name] = round(1e6 * took / n, 5)
    took = bench.net(kernels.swaps, n // 1024, 256, {"index": drawn, "out": np.zeros(1 << 20, np.int32)})
    found["swaps of a million"] = round(1e6 * took / (2 * n), 5)
    took = bench.net(kernels.float_adds, n // 4096, 256, {"out": np.zeros(1, np.float32)})
    found["floats to one"] = round(1e6 * took / (n // 16), 5)
    return {"nanoseconds_an_addition": found}


def _stores(bench: Bench) -> Figures:
    """What L1 does with stores to lines that a warp has stored to before: nanoseconds of a store by the lines in turn, of a warp an SM;
    cycles of one by the products between two, of two warps that have eight lines each; cycles in which a warp issues so many stores."""
    sms, found = bench.device.sms, dict[str, Figures]({"in turn": {}, "later": {}, "queued": {}})
    for regions in range(4, 21):
        turns = max(1, 256 // regions // bench.scale)
        region = sms * 64 * turns
        args = {"out": np.zeros(region * regions, np.float32), "turns": turns, "region": region, "REGIONS": regions}
        took = bench.net(regions_in_turn, sms, 32, args)
        found["in turn"][str(2 * regions)] = round(1e6 * took / (2 * turns * regions), 2)
    turns = max(1, 64 // bench.scale)
    for later in range(0, 52, 4):
        args = {"out": np.zeros(sms * 64 * turns * 8, np.float32), "turns": turns, "WORDS": 8, "LATER": later}
        took = bench.net(kernels.stores_later, sms, 64, args)
        found["later"][str(later)] = round(took * bench.cycles / (turns * 8), 1)
    for stores in range(1, 25):
        args = {"x": np.zeros(stores << 10, np.float32), "out": np.zeros(1, np.int64), "STORES": stores}
        bench.run(kernels.stores_queued, 1, 32, args)
        found["queued"][str(stores)] = int(bench.run(kernels.stores_queued, 1, 32, args).arrays["out"][0])
    return {"stores": found}


PARTS: Mapping[str, Callable[[Bench], Figures]] = {
    "clock": _clock, "launches": _launches, "chains": _chains, "barriers": _barriers, "shared memory": _shared,
    "halves of L2": _halves, "latencies of loads": _chased, "rates": _rates, "caches": _caches, "stores": _stores,
    "atomic operations": _atomics, "device memory": _device_memory, "latency of device memory": _beyond,
}  # fmt: skip
"""In the order in which they are measured; the clock and the launches first, as others need them."""


def measured(bench: Bench, done: Callable[[str, str], None]) -> Figures:
    """All figures; `done` is told of each part with what went wrong, which ends no other part, or nothing."""
    for name, part in PARTS.items():
        trouble = ""
        try:
            bench.found |= part(bench)
        except UnavailableError:  # there is no GPU
            raise
        except (SimtbedError, MemoryError, ArithmeticError) as error:
            trouble = str(error) or type(error).__name__
        done(name, trouble)
    return bench.found


# ------------------------------------------------------------------ a device's row
def fields_of(found: Figures, device: Device) -> tuple[dict[str, int | float], dict[str, int]]:
    """Fields of the device's timing and of its rates, of what was found."""
    timing: dict[str, int | float] = {}
    rates: dict[str, int] = {}
    if "fp32_cycles" in found:
        alu = round(found["fp32_cycles"])
        timing |= {
            "alu": alu, "fp64": round(found["fp64_cycles"]), "shuffle": round(found["shuffle_cycles"]),
            "sfu": round(found["convert_pair_cycles"]) - alu,
        }  # fmt: skip
    address = int(timing.get("alu", device.timing.alu))
    if "barrier_256_cycles" in found:
        timing["barrier"] = round(found["barrier_256_cycles"])
    if "shared_hop_cycles" in found:
        timing["shared"] = round(found["shared_hop_cycles"]) - address
    hops = {int(kib): each for kib, each in found.get("hop_cycles_by_kib", {}).items()}
    if hops:
        timing["l1"] = round(hops[min(hops)]) - address
    lines = sorted(found.get("atomic_cycles_by_line", []))
    apart = statistics.median(lines[LINES // 2 :]) - statistics.median(lines[: LINES // 2]) if lines else 0.0
    if lines:
        timing["atomic"] = round(statistics.mean(lines)) - address
    of_l2 = [each for kib, each in hops.items() if 2 * device.timing.l1_size <= 1024 * kib <= device.l2 // 4]
    if of_l2:
        timing["l2"] = round(min(of_l2)) - address
        timing["l2_far"] = round(min(of_l2) + apart) - address
    if beyond := found.get("dram_hop_cycles_by_kib"):
        timing["dram"] = round(min(beyond.values())) - address
    clock = found.get("clock", device.clock) / 1000
    if added := found.get("nanoseconds_an_addition"):
        timing["atomic_interval"] = max(0.01, round(added["one"] * clock, 2))
        timing["atomic_rate"] = round(1 / max(1e-6, added["million"] * clock), 1)
        timing["float_interval"] = max(0.01, round(added["floats to one"] * clock, 2))
        timing["fetch_rate"] = round(1 / max(1e-6, added["swaps of a million"] * clock), 1)
    many = {
        int(name.split("_")[4]): (int(name.split("_")[1]), each)
        for name, each in found.items()
        if "_blocks_of_" in name
    }
    if many:
        each = {block: microseconds * 1000 * clock / blocks for block, (blocks, microseconds) in many.items()}
        timing["block_interval"] = max(0.01, round(min(each.values()), 2))
        timing["warp_interval"] = max(0.01, round(max(each.values()) * device.sms / (max(many) / 32), 1))
    if "l1_bytes_a_cycle" in found:
        timing["request_interval"] = max(0.01, round(128 / max(1.0, found["l1_bytes_a_cycle"]), 2))
    if "missed_lines_a_cycle_of_one_sm" in found:
        timing["miss_interval"] = max(0.01, round(1 / max(0.01, found["missed_lines_a_cycle_of_one_sm"]), 2))
    each_cycle = {
        "request_rate": "lines_written_a_cycle", "store_rate": "whole_sectors_a_cycle", "load_rate": "l2_lines_a_cycle",
        "lookup_rate": "l1_lines_a_cycle_of_one_sm",
    }  # fmt: skip
    timing |= {name: max(0.01, found[of]) for name, of in each_cycle.items() if of in found}
    if "stores" in found:
        timing |= of_stores(found["stores"], float(found.get("fp32_cycles", device.timing.alu)))
    widths = {"l1_width": "l1_wide_bytes_a_cycle", "l2_width": "l2_bytes_a_cycle_of_one_sm"}
    timing |= {name: max(1, round(found[of])) for name, of in widths.items() if of in found}
    of_all = [each for name, each in found.items() if name.startswith("l2_") and name.endswith("_gb_s")]
    if of_all:
        timing["l2_bandwidth"] = max(of_all)
    if "read_gb_s" in found:
        timing["dram_share"] = min(1000, round(found["read_gb_s"] / device.bandwidth * 1000))
    if "empty_us" in found:
        timing["launch"] = max(1, round(1000 * found["empty_us"]))
    for name, lanes in found.get("lanes_a_cycle", {}).items():
        rates[name] = max(1, 1 << round(float(np.log2(max(1.0, lanes)))))
    return timing, rates


def of_stores(found: Figures, product: float) -> dict[str, int | float]:
    """Of what `_stores` found, where stores cease to go together, and from which one on they wait; nothing of what shows no change.
    product: its cycles."""
    timing: dict[str, int | float] = {}
    turns = {int(lines): each for lines, each in found["in turn"].items()}
    least, most = min(turns.values()), max(turns.values())
    if most > _PLAIN * least:
        timing["open_lines"] = max(lines for lines, each in turns.items() if each < (least + most) / 2)
    later = sorted((int(products), each) for products, each in found["later"].items())
    for (before, cycles), (products, longer) in pairwise(later):
        if longer - cycles > 2 * (products - before) * product:
            timing["open_cycles"] = max(1, round(cycles))
            break
    queued = [each for _, each in sorted((int(stores), each) for stores, each in found["queued"].items())]
    steps = [after - before for before, after in pairwise(queued)]
    if steps[-1] > _PLAIN * max(1, steps[0]):  # one is being done, and the next one waits
        timing["queue"] = max(1, next(n for n, step in enumerate(steps) if step > steps[-1] / 2))
    return timing
