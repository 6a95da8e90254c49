"""The jit engine: kernels as LLVM code, one vector of 32 lanes a variable; blocks run in threads.

A kernel is printed as text (`module`): blocks, their phases and what stands between them (`block`, `segments`),
statements under masks (`control`, `scopes`), expressions (`build`, `operations`), registers (`registers`), memory
(`memory`, `elements`, `outside`, `combine`), lanes that meet (`warp`), counting (`counting`, `traffic`, `rules`) and
faults (`faults`), all on `text` and `values`. `compiler` turns it into machine code, which `store` keeps.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import LaunchError
from ...ir import nodes as ir
from ...ir.fingerprint import fingerprint
from ...ir.ops import TABLE
from ...language.types import Array, Scalar
from ...passes.prepared import Prepared, prepare
from ...runtime import disk_cache
from ...runtime.arrays import Buffer
from ...runtime.engine import Outcome, Request
from ...sanitizer import checkers
from ...sanitizer.faults import Faults
from ...sanitizer.races.shadow import RaceState
from ...sanitizer.schedules import Schedule
from ...sanitizer.tracking import Plan
from .compiler import Library, Target, compiled
from .context import Options
from .counters.slots import decode
from .module import ENTRY, Buffers, Module, kernel_module

_CTYPES: dict[str, Any] = {
    "bool": ctypes.c_uint8, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32, "i64": ctypes.c_int64,
    "u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64,
    "f32": ctypes.c_float, "f64": ctypes.c_double,
}  # fmt: skip
_ASK = ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_int64, ctypes.c_int32, ctypes.c_uint32, ctypes.c_void_p)


SHORTEST, LONGEST = 0.0002, 0.01
"""Seconds that a thread's turn at some blocks should take: long against starting it, short for who waits."""


@dataclass
class _Program:
    """A program as it stands ready to run. Its text is printed where no code is kept, and where its words are needed."""

    prepared: Prepared
    options: Options
    buffers: Buffers = field(init=False)
    library: Library = field(init=False)

    @staticmethod
    def of(program: ir.Program, options: Options, target: Target | None) -> _Program:
        made = _Program(prepare(program, frozenset(options.checks)), options)
        key = (fingerprint(program), repr(options), disk_cache.edition())
        beside, made.library = compiled(key, lambda: (made.module.buffers.encode(), made.module.text), ENTRY, target)
        made.buffers = Buffers.decode(beside)
        return made

    @cached_property
    def plan(self) -> Plan:
        return Plan.of(self.prepared.program.kernel, self.options.checks, self.options.unwritten)

    @cached_property
    def module(self) -> Module:
        return kernel_module(self.prepared, self.options)


class LlvmEngine:
    """Runs programs as machine code, several blocks at a time where their order cannot be seen.

    threads: how many; None for SIMTBED_THREADS, or one a processor. target: a processor to compile for that this
    one can act as; None for this one.
    """

    name = "jit"

    def __init__(self, threads: int | None = None, target: Target | None = None) -> None:
        self.threads, self.target = threads, target
        self._programs: weakref.WeakKeyDictionary[ir.Program, dict[Options, _Program]] = weakref.WeakKeyDictionary()

    def run(self, request: Request) -> Outcome:
        ordered = request.prepared.ordered or checkers.need_order(request.checks) or request.schedule is not None
        options = Options(
            request.block, request.device, request.dynamic_shared, request.counters, careful=False, atomic=not ordered,
            checks=tuple(sorted(request.checks)), unwritten=tuple(sorted(request.unwritten)) if request.checks else (),
            scheduled=request.schedule is not None,
        )  # fmt: skip
        threads = 1 if ordered else self.threads or _threads()
        outcome = _launch(request, self._program(request, options), threads)
        if outcome is None:
            outcome = _launch(request, self._program(request, replace(options, careful=True)), threads)
            assert outcome is not None
        return outcome

    def _program(self, request: Request, options: Options) -> _Program:
        known = self._programs.setdefault(request.program, {})
        if options not in known:
            known[options] = _Program.of(request.program, options, self.target)
        return known[options]


def _threads() -> int:
    """As many as SIMTBED_THREADS says, or one a processor."""
    given = os.environ.get("SIMTBED_THREADS", "")
    if given and not (given.isascii() and given.isdigit() and int(given) > 0):
        raise LaunchError(f"SIMTBED_THREADS is a positive number of threads, not {given!r}")
    return int(given or os.cpu_count() or 1)


def _aligned(size: int) -> npt.NDArray[np.uint8]:
    """Zeroed bytes at a cache line."""
    raw = np.zeros(size + 128, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size + 64]


@dataclass
class _Worker:
    """A thread's own buffers."""

    counts: npt.NDArray[np.int64]
    faults: npt.NDArray[np.int64]
    scratch: Sequence[npt.NDArray[np.uint8]]

    @staticmethod
    def of(sizes: Buffers) -> _Worker:
        counts = _aligned(8 * (sizes.counts + 1))[: 8 * (sizes.counts + 1)].view(np.int64)
        faults = np.zeros(sizes.records + 1, np.int64)
        return _Worker(counts, faults, [_aligned(size) for size in (sizes.shared, sizes.local, sizes.workspace)])


def _launch(request: Request, program: _Program, threads: int) -> Outcome | None:
    """Run all blocks; None where the text was not careful enough."""
    kernel = program.prepared.program.kernel
    changed = program.prepared.changed
    buffers = {p.name: _buffer(request, p.name, p.name in changed) for p in kernel.params if isinstance(p.type, Array)}
    types, given = _arguments(kernel, request, buffers)
    tail = [ctypes.c_int64] * 2 + [ctypes.c_int32] * 3 + [ctypes.c_int64] + [ctypes.c_void_p] * 7 + [_ASK]
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *types, *tail)(program.library.address)
    blocks = int(np.prod(request.grid))
    workers = [_Worker.of(program.buffers) for _ in range(max(1, min(threads, blocks)))]
    race_state, table = _race_state(request, program.plan)
    order = _order(request)
    printed: list[str] = []
    answer = _ASK(_answers(program, printed))

    def go(worker: _Worker, first: int, last: int) -> bool:
        own: list[npt.NDArray[Any]] = [worker.counts, worker.faults, *worker.scratch]
        pointers = [*(buffer.ctypes.data for buffer in own), table.ctypes.data, order.ctypes.data]
        return not function(*given, first, last, *request.grid, request.step_limit, *pointers, answer)

    if not _share(blocks, workers, go):
        return None
    counts = None
    if request.counters:
        counted = np.sum([w.counts for w in workers], axis=0)
        counts = decode(program.buffers.table, counted, len(program.prepared.sites))
    noted = [w.faults for w in workers]
    faults = program.module.records.collect(noted, request) if any(n.any() for n in noted) else Faults()
    if race_state is not None:
        program.plan.report(race_state, faults, request.grid, request.block)
    return Outcome({name: buffers[name] for name in changed}, counts, faults.diagnostics(), printed)


def _race_state(request: Request, plan: Plan) -> tuple[RaceState | None, npt.NDArray[np.int64]]:
    """What the checks keep of a launch, where they keep anything, and the table compiled code finds it by."""
    if not plan.tracked:
        return None, np.zeros(1, np.int64)
    from .races.runtime import table  # late: it compiles

    race_state = plan.new_race_state(request.block, request.arguments, request.dynamic_shared, request.device)
    return race_state, table(race_state)


def _order(request: Request) -> npt.NDArray[np.int64]:
    """The orders of warps, and then that of blocks, where they are not the ascending ones."""
    if request.schedule is None:
        return np.zeros(1, np.int64)
    schedule = Schedule.of(request.schedule, request.grid, request.block)
    return np.concatenate([schedule.warps.ravel(), schedule.blocks])


def _buffer(request: Request, name: str, changes: bool) -> Buffer:
    given = np.asarray(request.arguments[name])
    if not changes:
        return given
    return np.zeros_like(given) if name in request.all_zero else given.copy()


def _share(blocks: int, workers: Sequence[_Worker], go: Callable[[_Worker, int, int], bool]) -> bool:
    """Have the workers go through all blocks, each in a thread; whether all their turns went well.

    A worker that is done takes the next turn, so blocks may differ in length; between turns Python sees to its
    signals, so a long launch can be interrupted.
    """
    claim = threading.Lock()
    left = range(blocks)

    def work(worker: _Worker) -> None:
        nonlocal left
        size = 1
        while True:
            with claim:
                turn, left = left[:size], left[size:]
            if not turn:
                return
            start = time.perf_counter()
            if not go(worker, turn.start, turn.stop):
                failed.append(turn)
                with claim:
                    left = range(0)
            block = (time.perf_counter() - start) / len(turn)
            even = len(left) / (2 * len(workers))
            size = max(1, int(min(max(even, SHORTEST / block), LONGEST / block)))

    failed: list[range] = []
    others = [threading.Thread(target=work, args=(worker,)) for worker in workers[1:]]
    for thread in others:
        thread.start()
    try:
        work(workers[0])
    except BaseException:
        left = range(0)
        raise
    finally:
        for thread in others:
            thread.join()
    return not failed


def _arguments(kernel: ir.Function, request: Request, buffers: dict[str, Buffer]) -> tuple[list[Any], list[Any]]:
    """The C types and values of the kernel's parameters."""
    types: list[Any] = []
    values: list[Any] = []
    for param in kernel.params:
        if isinstance(param.type, Array):
            types += [ctypes.c_void_p, ctypes.c_int64]
            values += [buffers[param.name].ctypes.data, len(buffers[param.name])]
        else:
            assert isinstance(param.type, Scalar)
            number = request.arguments[param.name]
            assert isinstance(number, np.generic)
            types.append(_CTYPES[param.type.name])
            values.append(int(number) if param.type.kind == "bool" else number.item())
    return types, values


# ------------------------------------------------------------------ what compiled code asks of Python
def _answers(program: _Program, printed: list[str]) -> Callable[[int, int, int, int, int], None]:
    def answer(request: int, block: int, warp: int, mask: int, data: int) -> None:
        what, detail = program.module.outside.requests[request]
        if what == "meaning":
            name, type = detail
            _meaning(name, type, data)
        else:
            printed.extend(_lines(detail, mask, data))

    return answer


def _at(data: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The 32 lanes that begin at an address."""
    raw = (ctypes.c_uint8 * (32 * dtype.itemsize)).from_address(data)
    return np.ctypeslib.as_array(raw).view(dtype)


def _meaning(name: str, type: Scalar, data: int) -> None:
    values = _at(data, type.dtype)
    with np.errstate(all="ignore"):
        values[:] = TABLE[name].meaning(values)


def _lines(stmt: ir.Print, mask: int, data: int) -> list[str]:
    """What a print says, one line a lane of the mask."""
    types = [p.type for p in stmt.parts if not isinstance(p, str)]
    columns = iter([_at(data + 256 * n, t.dtype) for n, t in enumerate(types) if isinstance(t, Scalar)])
    parts: list[Any] = [p if isinstance(p, str) else next(columns) for p in stmt.parts]
    lanes = [lane for lane in range(32) if mask >> lane & 1]
    return [" ".join(p if isinstance(p, str) else str(p[lane]) for p in parts) for lane in lanes]
