"""Single accesses of one warp: drawn from a seed, made on a GPU one a launch, counted by Nsight Compute, and kept as a file.

A launch has 32 threads. Each reads the element that it uses from a table, and makes the access where that is not negative.
"""

from __future__ import annotations

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

from ..profile.accesses import FIGURES, Access, figures_of
from . import nsight

SEED, COUNT = 2026, 2000
SPAN = 1 << 22
"""Bytes of global memory that accesses fall in."""
HELD = 1 << 15
"""Bytes of shared memory."""
OWN = 256
"""Bytes of local memory of a thread."""

Lanes = npt.NDArray[np.int64]
INTEGERS = {1: "u8", 2: "i16", 4: "i32", 8: "i64", 16: "int4"}
COUNTING = {4: "u32"}
FLOATS = {4: "f32", 8: "f64"}


@dataclass(frozen=True)
class Operation:
    """A kind of access. space: where. types: by bytes a lane. make: the text of the access, with {T} for the type."""

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
OFTEN = ("global_load", "global_store", "shared_load", "shared_store")
"""Of these twice as many are drawn."""


# ------------------------------------------------------------------ drawing
def drawn(count: int = COUNT, seed: int = SEED) -> list[Access]:
    """`count` accesses, of every kind and width about as many, none twice."""
    draw = np.random.default_rng(seed)
    kinds = [(one, size) for one in OPERATIONS.values() for size in one.types]
    kinds += [kind for kind in kinds if kind[0].name in OFTEN]
    found: dict[tuple[str, int, tuple[int, ...]], None] = {}
    while len(found) < count:
        one, size = kinds[len(found) % len(kinds)]
        found[one.name, size, tuple(map(int, lanes(draw, _elements(one, size), size)))] = None
    return [Access(line, *kind, {}) for line, kind in enumerate(found, 2)]


def lanes(draw: np.random.Generator, elements: int, size: int) -> Lanes:
    """The element of each lane, of so many elements of `size` bytes; -1 where it takes no part."""
    found = _pattern(draw, elements, size)
    found[~_active(draw)] = -1
    return found


def _elements(one: Operation, size: int) -> int:
    """How many elements an access may choose from."""
    space = "shared" if one.name == "async_copy_store" else one.space
    return {"global": SPAN, "async": SPAN, "local": OWN, "local_stored": OWN}.get(space, HELD) // size


def _pattern(draw: np.random.Generator, elements: int, size: int) -> Lanes:
    """The element of each lane: one of the ways in which kernels, good ones and bad ones, use memory."""
    lane = np.arange(32)
    within = min(elements, 1 << int(draw.integers(2, 13)))
    base = int(draw.integers(0, max(1, elements - within + 1)))
    line = max(1, 128 // size)
    match draw.integers(0, 10):
        case 0:  # anywhere
            found = draw.integers(0, elements, 32)
        case 1:  # near each other
            found = base + draw.integers(0, within, 32)
        case 2:  # in a few clusters
            starts = draw.integers(0, elements, int(draw.integers(2, 9)))
            found = draw.choice(starts, 32) + draw.integers(0, int(draw.integers(2, line + 2)), 32)
        case 3:  # neighbours from an odd place on, across lines
            found = base + lane
        case 4:  # a stride
            found = base + lane * draw.integers(2, 70)
        case 5:  # groups of lanes that share an element
            found = base + lane // 2 ** draw.integers(1, 6) * draw.integers(1, 40)
        case 6:  # neighbours in another order
            found = base + draw.permutation(32)
        case 7:  # few elements, wanted by many
            found = draw.choice(draw.integers(0, elements, int(draw.integers(1, 6))), 32)
        case 8:  # one bank, or one place in different lines
            found = base + draw.integers(0, 32, 32) * line * 2 ** draw.integers(0, 4)
        case _:  # rows of a tile
            found = base + (lane // 8) * draw.integers(8, 200) + lane % 8
    result: Lanes = found % elements
    return result


def _active(draw: np.random.Generator) -> npt.NDArray[np.bool_]:
    """The lanes that take part: all of them in half of the accesses, never none."""
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
    """The kernel of an operation of `size` bytes a lane, and its arrays: table, and those of again, x and out that it needs.

    What a store or a copy wrote is read again, a store's by a table that the compiler cannot know to be the first. Local memory
    is filled in an order that it cannot know, or it would compute what is loaded.
    """
    one = OPERATIONS[name]
    type = one.types[size]
    body = [_BEFORE.get(one.space, ""), "at = table[row * 32 + st.lane]", f"if at >= 0:\n        {one.make}"]
    if name == "async_copy_load":
        body.append(_AFTER["async"].replace("held[at]", "held[st.lane]"))
    elif name != "shared_load":  # whose own loads are counted
        body.append(_AFTER.get(one.space, ""))
    text = "\n    ".join(filter(None, body))
    parts, filled = ("st.lane + 1", "st.lane + k")
    if type == "int4":
        parts, filled = f"{parts}, {parts}, {parts}, {parts}", f"{filled}, {filled}, {filled}, {filled}"
    if re.search(r"\bvalue\b", text):
        text = f"value = {{T}}({parts})\n    {text}"
    if re.search(r"\bzero\b", text):
        text = f"zero = {{T}}({'0, 0, 0, 0' if type == 'int4' else '0'})\n    {text}"
    arrays = [array for array in _PARAMETERS if re.search(rf"\b{array}\[|\({array},|, {array},", text)]
    given = "".join(f"{array}: {_PARAMETERS[array]}, " for array in arrays)
    elements = (OWN if one.space.startswith("local") else HELD) // size
    whole = f"def access(table: st.Global[st.i32], {given}row: st.i32) -> None:\n    {text}\n"
    whole = whole.replace("{FILL}", f"{{T}}({filled})").replace("{T}", f"st.{type}").replace("{N}", str(elements))
    return st.kernel(source=whole), ("table", *arrays)


def launched(rows: Sequence[Access], engine: EngineName) -> Iterator[st.Result]:
    """Make each access, in order."""
    table = np.array([row.lanes for row in rows], np.int32).ravel()
    tables = {"table": DeviceArray(table), "again": DeviceArray(table)}
    kept: dict[str, dict[str, DeviceArray]] = {}
    for number, row in enumerate(rows):
        made, arrays = kernel(row.op, row.bytes)
        type = OPERATIONS[row.op].types[row.bytes]
        if type not in kept:
            kept[type] = {"x": DeviceArray(st.zeros(SPAN // row.bytes, type)), "out": DeviceArray(st.zeros(64, type))}
        given = {**tables, **kept[type]}
        args = {**{name: given[name] for name in arrays}, "row": number}
        yield st.launch(made, grid=1, block=32, args=args, engine=engine, counters=engine != "cuda")


# ------------------------------------------------------------------ taking
def _async(unit: str, what: str, space: str) -> tuple[str, ...]:
    """Of copies through L1 and past it, as the profiler has them: the hardware's counter, or that of the instructions."""
    found = []
    for prefix in (unit, f"smsp__sass_{unit.replace('__', '_')}", f"sm__sass_{unit.replace('__', '_')}"):
        name = f"{prefix}_{what}_mem_{space}_op_ldgsts"
        found += [f"{name}.sum", f"{name}_cache_access.sum+{name}_cache_bypass.sum", f"{name}_cache_access.sum"]
    return tuple(found)


ASYNC: dict[str, tuple[str, ...]] = {
    "requests": _async("l1tex__t", "requests_pipe_lsu", "global"),
    "sectors": _async("l1tex__t", "sectors_pipe_lsu", "global"),
    "wavefronts": _async("l1tex__data", "pipe_lsu_wavefronts", "shared"),
    "bank_conflicts": _async("l1tex__data", "bank_conflicts_pipe_lsu", "shared"),
}
"""Metrics of asynchronous copies, sums of some; of each the first that the profiler has whole."""
_TABLE = {"requests": 1, "sectors": 4}
"""What reading the table costs, which is a load too."""
_KINDS = {"load": "ld", "store": "st", "atomic": "atom", "reduce": "red", "compare": "atom", "count": "atom"}


def metrics_of(op: str) -> dict[str, tuple[str, ...]]:
    """Nsight Compute's names of an operation's figures: of each the first that it knows."""
    space, kind = op.split("_")[:2]
    if space == "async":
        return {figure: ASYNC[figure] for figure in figures_of(op)}
    if space == "local":
        return {what: (f"l1tex__t_{what}_pipe_lsu_mem_local_op_{_KINDS[kind]}.sum",) for what in figures_of(op)}
    if space == "global":
        return {what: (f"l1tex__t_{what}_pipe_lsu_mem_global_op_{_KINDS[kind]}.sum",) for what in figures_of(op)}
    kind = kind if kind in ("load", "store") else "atomic"
    names = (METRIC[f"shared_{kind}_wavefronts"], METRIC[f"shared_{kind}_conflicts"])
    return {what: (name,) for what, name in zip(figures_of(op), names, strict=True)}


def build(rows: Sequence[Access], arch: str) -> None:
    """Fill the cache of compiled kernels, many at a time."""
    one = {(row.op, row.bytes): row for row in rows}
    sources = [source_of(result) for result in launched(list(one.values()), "jit")]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda source: nvcc.build(source.with_lines(), source.kernel, arch), sources))


def source_of(result: st.Result) -> Source:
    """The kernel of a launch as it is printed."""
    return cuda_source(result.request.program, result.request.block)


def take(
    ncu: Path, rows: Sequence[Access], keep: Callable[[Sequence[Access]], None], chip: str = "gh100"
) -> list[Access]:
    """The rows with what Nsight Compute counts of each on this machine's GPU; a row of which it lacks a figure is left out.
    keep: receives the rows that have their figures, after each run of the profiler. Raises UnavailableError and LaunchError."""
    wanted = [
        name for row in rows if row.op.startswith("async") for name in _parts(sum(metrics_of(row.op).values(), ()))
    ]
    there = nsight.known(ncu, dict.fromkeys(wanted), chip) if wanted else []
    groups: dict[tuple[str, ...], list[Access]] = {}
    for row in sorted(rows, key=lambda row: _PLAIN.search(row.op) is not None):
        metrics = _metrics(row, there if row.op.startswith("async") else None)
        if len(metrics) == len(figures_of(row.op)):
            groups.setdefault(tuple(metrics.values()), []).append(row)
    found: list[Access] = []
    for names, group in groups.items():
        for start in range(0, len(group), AT_ONCE):
            found += _taken(ncu, group[start : start + AT_ONCE], names)
            keep(found)
    return found


AT_ONCE = 400
"""Launches of one run of Nsight Compute, with the metrics of one kind of access, which one pass counts."""
_PLAIN = re.compile("^(global|shared)_(load|store)")
"""What is known best, and comes last."""


def _taken(ncu: Path, rows: Sequence[Access], names: Sequence[str]) -> Iterator[Access]:
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        listed = Path(folder, "rows.csv")
        save(rows, listed)
        command = [sys.executable, "-m", "simtbed.reports.hardware.single_accesses_process", str(listed)]
        counts = nsight.measure(ncu, command, list(dict.fromkeys(_parts(names))), which=())
    if len(counts) != len(rows):
        raise LaunchError(f"{len(rows)} launches were made, Nsight Compute reports {len(counts)}")
    for row, one in zip(rows, counts, strict=True):
        figures = [int(sum(one[part] for part in _parts([name]))) for name in names]
        own = _TABLE if row.op == "global_load" else {}
        measured = {what: n - own.get(what, 0) for what, n in zip(figures_of(row.op), figures, strict=True)}
        yield replace(row, measured=measured)


def _parts(names: Iterable[str]) -> list[str]:
    """Those that sums are of."""
    return [part for name in names for part in name.split("+")]


def _metrics(row: Access, known: Sequence[str] | None) -> dict[str, str]:
    """The metric, or sum of metrics, of each figure that the profiler has. known: of what is looked for; None: all."""
    found = {}
    for figure, names in metrics_of(row.op).items():
        if name := next((name for name in names if known is None or set(_parts([name])) <= set(known)), None):
            found[figure] = name
    return found


def save(rows: Iterable[Access], path: Path) -> None:
    """Write accesses and their figures as `simtbed access` reads them, whole or not at all."""
    lines = [f"op,bytes,lanes,{','.join(FIGURES)}\n"]
    for row in rows:
        figures = ",".join(str(row.measured.get(name, "")) for name in FIGURES)
        lines.append(f"{row.op},{row.bytes},{' '.join(map(str, row.lanes))},{figures}\n")
    write(path, lines)
