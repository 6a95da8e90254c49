"""Random single accesses of one warp: generated from a seed, made on a GPU one a launch, counted by Nsight Compute, stored as CSV.

A launch has 32 threads. Each reads its element from a table, and makes the access if the element is not negative.
"""

import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import simtbed as st
from simtbed import DeviceArray, Kernel, LaunchError
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.printer import Source, cuda_source
from simtbed.kernels.files import write
from simtbed.profiler.events import METRIC
from simtbed.runtime.registry import EngineName

from ..profile.accesses import COUNTERS, Access, counters_of
from . import nsight

SEED, COUNT = 2026, 2000
SPAN = 1 << 22
"""Bytes of global memory below the accesses."""
SHARED_SPAN = 1 << 15
"""Bytes of shared memory."""
LOCAL_SPAN = 256
"""Bytes of local memory of a thread."""

Lanes = npt.NDArray[np.int64]
INTEGERS = {1: "u8", 2: "i16", 4: "i32", 8: "i64", 16: "int4"}
COUNTING = {4: "u32"}
FLOATS = {4: "f32", 8: "f64"}


@dataclass(frozen=True)
class Operation:
    """A kind of access. space: memory space. types: by bytes a lane. make: the text of the access, with {T} for the type."""

    name: str
    space: str
    types: Mapping[int, str]
    make: str


def _operations() -> Iterator[Operation]:
    values = {size: INTEGERS[size] for size in (4, 8)}
    yield Operation("global_load", "global", INTEGERS, "out[st.lane] = x[at]")
    yield Operation("global_store", "global", INTEGERS, "x[at] = value")
    for name in ("add", "min", "max", "and", "or", "xor", "exchange"):
        yield Operation(f"global_atomic_{name}", "global", values, f"out[st.lane] = st.atomic_{name}(x, at, value)")
        yield Operation(
            f"shared_atomic_{name}", "shared", {4: "i32"}, f"out[st.lane] = st.atomic_{name}(held, at, value)"
        )
        if name != "exchange":
            yield Operation(f"global_reduce_{name}", "global", values, f"st.atomic_{name}(x, at, value)")
            yield Operation(f"shared_reduce_{name}", "shared", {4: "i32"}, f"st.atomic_{name}(held, at, value)")
    yield Operation("global_atomic_float_add", "global", FLOATS, "out[st.lane] = st.atomic_add(x, at, value)")
    yield Operation("global_reduce_float_add", "global", FLOATS, "st.atomic_add(x, at, value)")
    for name in ("inc", "dec"):
        yield Operation(f"global_atomic_{name}", "global", COUNTING, f"out[st.lane] = st.atomic_{name}(x, at, value)")
        yield Operation(
            f"shared_atomic_{name}", "shared", COUNTING, f"out[st.lane] = st.atomic_{name}(held, at, value)"
        )
    swap = "out[st.lane] = st.compare_swap({}, at, {{T}}(0), value)"
    yield Operation("global_compare_swap", "global", values, swap.format("x"))
    yield Operation("shared_compare_swap", "shared", values, swap.format("held"))
    yield Operation("shared_count", "shared", {4: "i32"}, "st.atomic_add(held, at, 1)")
    yield Operation("shared_load", "shared", INTEGERS, "out[st.lane] = held[at]")
    yield Operation("shared_store", "stored", INTEGERS, "held[at] = value")
    yield Operation("local_load", "local", INTEGERS, "out[st.lane] = held[at]")
    yield Operation("local_store", "local_stored", INTEGERS, "held[at] = value")
    wide = {size: INTEGERS[size] for size in (4, 8, 16)}
    yield Operation("async_copy_load", "async", wide, "st.async_copy(held, st.lane, x, at)")
    yield Operation("async_copy_store", "async", wide, "st.async_copy(held, at, x, st.lane)")


OPERATIONS = {one.name: one for one in _operations()}
FREQUENT = ("global_load", "global_store", "shared_load", "shared_store")
"""Operations with twice the number of accesses."""


# ------------------------------------------------------------------ generation
def random_accesses(count: int = COUNT, seed: int = SEED) -> list[Access]:
    """Return `count` different accesses, about equal numbers of every kind and width."""
    draw = np.random.default_rng(seed)
    kinds = [(operation, size) for operation in OPERATIONS.values() for size in operation.types]
    kinds += [kind for kind in kinds if kind[0].name in FREQUENT]
    accesses: dict[tuple[str, int, tuple[int, ...]], None] = {}
    while len(accesses) < count:
        operation, size = kinds[len(accesses) % len(kinds)]
        accesses[operation.name, size, tuple(map(int, lanes(draw, _elements(operation, size), size)))] = None
    return [Access(line, *kind, {}) for line, kind in enumerate(accesses, 2)]


def lanes(draw: np.random.Generator, elements: int, size: int) -> Lanes:
    """Return the element of each lane, of elements of `size` bytes; -1 for inactive lanes."""
    elements_of_lanes = _pattern(draw, elements, size)
    elements_of_lanes[~_active(draw)] = -1
    return elements_of_lanes


def _elements(operation: Operation, size: int) -> int:
    """Return the number of elements available to an access."""
    space = "shared" if operation.name == "async_copy_store" else operation.space
    return {"global": SPAN, "async": SPAN, "local": LOCAL_SPAN, "local_stored": LOCAL_SPAN}.get(
        space, SHARED_SPAN
    ) // size


def _pattern(draw: np.random.Generator, elements: int, size: int) -> Lanes:
    """Return the element of each lane: a typical pattern of efficient or inefficient kernels."""
    lane = np.arange(32)
    within = min(elements, 1 << int(draw.integers(2, 13)))
    base = int(draw.integers(0, max(1, elements - within + 1)))
    line = max(1, 128 // size)
    match draw.integers(0, 10):
        case 0:  # anywhere
            pattern = draw.integers(0, elements, 32)
        case 1:  # near each other
            pattern = base + draw.integers(0, within, 32)
        case 2:  # in a few clusters
            starts = draw.integers(0, elements, int(draw.integers(2, 9)))
            pattern = draw.choice(starts, 32) + draw.integers(0, int(draw.integers(2, line + 2)), 32)
        case 3:  # neighbours from an odd offset, across lines
            pattern = base + lane
        case 4:  # a stride
            pattern = base + lane * draw.integers(2, 70)
        case 5:  # groups of lanes that share an element
            pattern = base + lane // 2 ** draw.integers(1, 6) * draw.integers(1, 40)
        case 6:  # neighbours in another order
            pattern = base + draw.permutation(32)
        case 7:  # few elements, shared by many lanes
            pattern = draw.choice(draw.integers(0, elements, int(draw.integers(1, 6))), 32)
        case 8:  # one bank, or one offset in different lines
            pattern = base + draw.integers(0, 32, 32) * line * 2 ** draw.integers(0, 4)
        case _:  # rows of a tile
            pattern = base + (lane // 8) * draw.integers(8, 200) + lane % 8
    result: Lanes = pattern % elements
    return result


def _active(draw: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Return the active lanes: all of them in half of the accesses, at least one."""
    lane = np.arange(32)
    match draw.integers(0, 8):
        case 0:
            active = draw.random(32) < draw.random()
        case 1:
            active = lane < draw.integers(1, 32)
        case 2:
            active = lane % 2 == draw.integers(0, 2)
        case 3:
            active = lane // 8 == draw.integers(0, 4)
        case _:
            active = np.ones(32, bool)
    return active if active.any() else lane == 0


# ------------------------------------------------------------------ kernels
_BEFORE = {
    "shared": """held = st.shared({T}, {N})
    for k in range(st.lane, {N}, 32):
        held[k] = zero
    st.syncwarp()""",
    "stored": "held = st.shared({T}, {N})",
    "local": """held = st.local({T}, {N})
    for k in range({N}):
        held[k ^ (row & 1)] = {FILL}""",
    "local_stored": "held = st.local({T}, {N})",
    "async": "held = st.shared({T}, {N})",
}
_READ_AGAIN = """if again[row * 32 + st.lane] >= 0:
        out[st.lane] = held[again[row * 32 + st.lane]]"""
_AFTER = {
    "shared": """st.syncwarp()
    out[st.lane + 32] = held[st.lane]""",
    "stored": f"st.syncwarp()\n    {_READ_AGAIN}",
    "local_stored": _READ_AGAIN,
    "async": """st.async_commit()
    st.async_wait(0)
    st.syncwarp()
    out[st.lane] = held[at] if at >= 0 else zero""",
}
_PARAMETERS = {"again": "st.Global[st.i32]", "x": "st.Global[{T}]", "out": "st.Global[{T}]"}


@cache
def kernel(name: str, size: int) -> tuple[Kernel, tuple[str, ...]]:
    """Return the kernel of an operation of `size` bytes a lane, and its arrays: table, and those of again, x and out that it needs.

    The result of a store or a copy is read again; of a store by a second table, unknown to the compiler. Local
    memory is filled in an order unknown to the compiler, so that the load remains.
    """
    operation = OPERATIONS[name]
    type = operation.types[size]
    body = [
        _BEFORE.get(operation.space, ""),
        "at = table[row * 32 + st.lane]",
        f"if at >= 0:\n        {operation.make}",
    ]
    if name == "async_copy_load":
        body.append(_AFTER["async"].replace("held[at]", "held[st.lane]"))
    elif name != "shared_load":  # its own loads are counted
        body.append(_AFTER.get(operation.space, ""))
    text = "\n    ".join(filter(None, body))
    value, fill = ("st.lane + 1", "st.lane + k")
    if type == "int4":
        value, fill = f"{value}, {value}, {value}, {value}", f"{fill}, {fill}, {fill}, {fill}"
    if re.search(r"\bvalue\b", text):
        text = f"value = {{T}}({value})\n    {text}"
    if re.search(r"\bzero\b", text):
        text = f"zero = {{T}}({'0, 0, 0, 0' if type == 'int4' else '0'})\n    {text}"
    arrays = [array for array in _PARAMETERS if re.search(rf"\b{array}\[|\({array},|, {array},", text)]
    parameters = "".join(f"{array}: {_PARAMETERS[array]}, " for array in arrays)
    elements = (LOCAL_SPAN if operation.space.startswith("local") else SHARED_SPAN) // size
    whole = f"def access(table: st.Global[st.i32], {parameters}row: st.i32) -> None:\n    {text}\n"
    whole = whole.replace("{FILL}", f"{{T}}({fill})").replace("{T}", f"st.{type}").replace("{N}", str(elements))
    return st.kernel(source=whole), ("table", *arrays)


def launch_all(rows: Sequence[Access], engine: EngineName) -> Iterator[st.Result]:
    """Make each access, in order."""
    table = np.array([row.lanes for row in rows], np.int32).ravel()
    tables = {"table": DeviceArray(table), "again": DeviceArray(table)}
    by_type: dict[str, dict[str, DeviceArray]] = {}
    for number, row in enumerate(rows):
        access, arrays = kernel(row.op, row.bytes)
        type = OPERATIONS[row.op].types[row.bytes]
        if type not in by_type:
            by_type[type] = {
                "x": DeviceArray(st.zeros(SPAN // row.bytes, type)),
                "out": DeviceArray(st.zeros(64, type)),
            }
        available = {**tables, **by_type[type]}
        args = {**{name: available[name] for name in arrays}, "row": number}
        yield st.launch(access, grid=1, block=32, args=args, engine=engine, counters=engine != "cuda")


# ------------------------------------------------------------------ measurement
def _async(unit: str, what: str, space: str) -> tuple[str, ...]:
    """Return the profiler's metrics of copies through L1 and past it: the hardware's counter, or that of the instructions."""
    metrics = []
    for prefix in (unit, f"smsp__sass_{unit.replace('__', '_')}", f"sm__sass_{unit.replace('__', '_')}"):
        name = f"{prefix}_{what}_mem_{space}_op_ldgsts"
        metrics += [f"{name}.sum", f"{name}_cache_access.sum+{name}_cache_bypass.sum", f"{name}_cache_access.sum"]
    return tuple(metrics)


ASYNC: dict[str, tuple[str, ...]] = {
    "requests": _async("l1tex__t", "requests_pipe_lsu", "global"),
    "sectors": _async("l1tex__t", "sectors_pipe_lsu", "global"),
    "wavefronts": _async("l1tex__data", "pipe_lsu_wavefronts", "shared"),
    "bank_conflicts": _async("l1tex__data", "bank_conflicts_pipe_lsu", "shared"),
}
"""Metrics of asynchronous copies, or sums of metrics; the first complete one applies."""
_TABLE = {"requests": 1, "sectors": 4}
"""Counts of the load from the table."""
_KINDS = {"load": "ld", "store": "st", "atomic": "atom", "reduce": "red", "compare": "atom", "count": "atom"}


def metrics_of(op: str) -> dict[str, tuple[str, ...]]:
    """Return Nsight Compute's metrics of an operation by value, in order of preference."""
    space, kind = op.split("_")[:2]
    if space == "async":
        return {figure: ASYNC[figure] for figure in counters_of(op)}
    if space == "local":
        return {what: (f"l1tex__t_{what}_pipe_lsu_mem_local_op_{_KINDS[kind]}.sum",) for what in counters_of(op)}
    if space == "global":
        return {what: (f"l1tex__t_{what}_pipe_lsu_mem_global_op_{_KINDS[kind]}.sum",) for what in counters_of(op)}
    kind = kind if kind in ("load", "store") else "atomic"
    names = (METRIC[f"shared_{kind}_wavefronts"], METRIC[f"shared_{kind}_conflicts"])
    return {what: (name,) for what, name in zip(counters_of(op), names, strict=True)}


def build(rows: Sequence[Access], arch: str) -> None:
    """Fill the cache of compiled kernels, in parallel."""
    row_of_kernel = {(row.op, row.bytes): row for row in rows}
    sources = [source_of(result) for result in launch_all(list(row_of_kernel.values()), "jit")]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda source: nvcc.build(source.with_lines(), source.kernel, arch), sources))


def source_of(result: st.Result) -> Source:
    """Return the printed kernel of a launch."""
    return cuda_source(result.request.program, result.request.block, cluster=result.request.cluster)


def take(
    ncu: Path, rows: Sequence[Access], keep: Callable[[Sequence[Access]], None], chip: str = "gh100"
) -> list[Access]:
    """Return the rows with Nsight Compute's counts on this machine's GPU, without the rows that lack a count. keep:
    called with the complete rows after each run of the profiler. Raises UnavailableError and LaunchError."""
    candidates = [
        name for row in rows if row.op.startswith("async") for name in _terms(sum(metrics_of(row.op).values(), ()))
    ]
    supported = nsight.supported_metrics(ncu, dict.fromkeys(candidates), chip) if candidates else []
    groups: dict[tuple[str, ...], list[Access]] = {}
    for row in sorted(rows, key=lambda row: _PLAIN.search(row.op) is not None):
        metrics = _metrics(row, supported if row.op.startswith("async") else None)
        if len(metrics) == len(counters_of(row.op)):
            groups.setdefault(tuple(metrics.values()), []).append(row)
    complete: list[Access] = []
    for names, group in groups.items():
        for start in range(0, len(group), AT_ONCE):
            complete += _measured(ncu, group[start : start + AT_ONCE], names)
            keep(complete)
    return complete


AT_ONCE = 400
"""Launches of one run of Nsight Compute, with the metrics of one kind of access: one pass."""
_PLAIN = re.compile("^(global|shared)_(load|store)")
"""Accesses with the best known rules, measured last."""


def _measured(ncu: Path, rows: Sequence[Access], names: Sequence[str]) -> Iterator[Access]:
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        listed = Path(folder, "rows.csv")
        save(rows, listed)
        command = [sys.executable, "-m", "simtbed.reports.hardware.single_accesses_process", str(listed)]
        counts = nsight.measure(ncu, command, list(dict.fromkeys(_terms(names))), which=())
    if len(counts) != len(rows):
        raise LaunchError(f"{len(rows)} launches were made, Nsight Compute reports {len(counts)}")
    for row, count in zip(rows, counts, strict=True):
        figures = [int(sum(count[term] for term in _terms([name]))) for name in names]
        own = _TABLE if row.op == "global_load" else {}
        measured = {what: n - own.get(what, 0) for what, n in zip(counters_of(row.op), figures, strict=True)}
        yield replace(row, measured=measured)


def _terms(names: Iterable[str]) -> list[str]:
    """Return the terms of the sums."""
    return [term for name in names for term in name.split("+")]


def _metrics(row: Access, supported: Sequence[str] | None) -> dict[str, str]:
    """Return the available metric, or sum of metrics, of each value. known: available metrics; None: all."""
    metrics = {}
    for figure, names in metrics_of(row.op).items():
        if name := next((name for name in names if supported is None or set(_terms([name])) <= set(supported)), None):
            metrics[figure] = name
    return metrics


def save(rows: Iterable[Access], path: Path) -> None:
    """Write accesses and their counts in the format of `simtbed access`, atomically."""
    lines = [f"op,bytes,lanes,{','.join(COUNTERS)}\n"]
    for row in rows:
        figures = ",".join(str(row.measured.get(name, "")) for name in COUNTERS)
        lines.append(f"{row.op},{row.bytes},{' '.join(map(str, row.lanes))},{figures}\n")
    write(path, lines)
