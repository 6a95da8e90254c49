"""Traces: the assignments and stores of one thread or warp, with their values, from the python engine."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np

from ..engines.python.engine import Launch
from ..engines.python.threads import Access, Fault, Thread
from ..errors import Diagnostic, LaunchError, render
from ..escaping import csv_cell, html, printable
from ..ir import nodes as ir
from ..language.intrinsics import WARP_SIZE
from ..runtime.engine import Request
from ..runtime.request import LaunchOptions, validated_request
from ..runtime.specialisation import AnyKernel
from ..sanitizer.elements import element
from ..span import Span
from ..tracebacks import without_own_frames
from .facts import linear_index

COLUMNS = ("thread", "step", "place", "name", "value", "source")


@dataclass(frozen=True)
class TraceStep:
    """A value that a thread assigned to a variable or stored to an element. thread: linear in its block. step: from 1, by thread."""

    thread: int
    step: int
    span: Span
    name: str
    value: Any

    def __str__(self) -> str:
        return f"thread {self.thread}, step {self.step}: {self.name} = {self.value} ({self.span.place}: {self.source})"

    @property
    def source(self) -> str:
        """The source line."""
        return printable(self.span.source.strip())

    def cells(self) -> list[str]:
        """Return the cells of a table, as in COLUMNS."""
        return [
            str(self.thread),
            str(self.step),
            self.span.place,
            printable(self.name),
            printable(self.value),
            self.source,
        ]

    def equals(self, other: TraceStep) -> bool:
        """Return whether name and value are the same, to the bit."""
        values = (np.asarray(one.value) for one in (self, other))
        (first, second) = ((value.dtype, value.shape, value.tobytes()) for value in values)
        return self.name == other.name and first == second


@dataclass(frozen=True)
class TraceDifference:
    """The first step that differs: its two forms; None where one trace has ended."""

    first: TraceStep | None
    second: TraceStep | None

    def __str__(self) -> str:
        return "\n".join(str(step) if step is not None else "the trace has ended" for step in (self.first, self.second))


@dataclass(frozen=True)
class Trace:
    """The steps of some threads of a block, thread by thread. fault: the finding at which the block ended, or None."""

    kernel: str
    block: int
    steps: Sequence[TraceStep] = field(repr=False)
    fault: Diagnostic | None = None

    def __str__(self) -> str:
        """Return a table, and the finding."""
        from tabulate import tabulate  # late: its import takes longer than most launches

        table = tabulate([step.cells() for step in self.steps], COLUMNS, tablefmt="plain", disable_numparse=True)
        lines = [line.rstrip() for line in table.splitlines()]
        return "\n".join(lines if self.fault is None else [*lines, render(self.fault)])

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        head = "".join(f"<th>{name}</th>" for name in COLUMNS)
        rows = "".join(f"<tr>{''.join(f'<td>{html(cell)}</td>' for cell in step.cells())}</tr>" for step in self.steps)
        caption = f"<caption>{html(self.kernel)}, block {self.block}</caption>"
        return f"<table>{caption}<tr>{head}</tr>{rows}</table>"

    def csv(self) -> str:
        """Return comma-separated values with a header."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([csv_cell(cell) for cell in step.cells()] for step in self.steps)
        return text.getvalue()

    def diff(self, other: Trace) -> TraceDifference | None:
        """Return the earliest step whose name or value differs, for example of another version or another input; None without one."""
        pairs = [
            pair
            for thread in self._threads(other)
            for pair in zip_longest(self._thread_steps(thread), other._thread_steps(thread))
        ]
        pairs.sort(key=lambda pair: min(step.step for step in pair if step is not None))
        for first, second in pairs:
            if first is None or second is None or not first.equals(second):
                return TraceDifference(first, second)
        return None

    def _threads(self, other: Trace) -> list[int]:
        return sorted({step.thread for step in (*self.steps, *other.steps)})

    def _thread_steps(self, thread: int) -> list[TraceStep]:
        return [step for step in self.steps if step.thread == thread]


@without_own_frames
def trace(
    kernel: AnyKernel,
    *,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: Mapping[str, Any] | Sequence[Any],
    thread: int | tuple[int, ...] | None = None,
    warp: int | None = None,
    of_block: int | tuple[int, ...] = 0,
    **options: Any,
) -> Trace:
    """Run one block of a launch on the python engine, and return the assignments and stores of a thread or of a warp.

    Parameters
    ----------
    grid, block, args, options : as in `launch`.
    thread : an index, or x, y, z in the block. warp : its number in the block; thread 0 without both.
    of_block : an index, or x, y, z. The block begins with the arrays as they were before the launch.

    The trace ends at a finding. Raises CompileError, LaunchError.
    """
    request = validated_request(kernel, LaunchOptions(grid=grid, block=block, args=args, **options), host_calls=True)
    if thread is not None and warp is not None:
        raise LaunchError("expected thread or warp, got both")
    number = linear_index("block", of_block, request.grid)
    if warp is None:
        first = linear_index("thread", 0 if thread is None else thread, request.block)
        return run_trace(request, number, range(first, first + 1))
    threads = int(np.prod(request.block))
    if not 0 <= warp < -(-threads // WARP_SIZE):
        raise LaunchError(f"warp {warp}: expected a warp below {-(-threads // WARP_SIZE)}")
    return run_trace(request, number, range(warp * WARP_SIZE, min((warp + 1) * WARP_SIZE, threads)))


def run_trace(request: Request, block: int, threads: range) -> Trace:
    """Return the trace of threads of a block. Raises LaunchError for a cooperative kernel."""
    launch = TracedLaunch(request, threads)
    if launch.is_cooperative:
        raise LaunchError("a block of a cooperative kernel waits for the others: it has no trace of its own")
    fault = None
    try:
        with np.errstate(all="ignore"):
            launch.run_block(block)
    except Fault as error:
        fault = error.diagnostic
    steps = sorted(launch.steps, key=lambda step: (step.thread, step.step))
    return Trace(request.specialisation.summary.name, block, steps, fault)


class TracedLaunch(Launch):
    """A launch that collects the assignments and stores of some threads."""

    def __init__(self, request: Request, threads: range) -> None:
        super().__init__(request, recorded=True, traced=True)
        self.threads = threads
        self.steps: list[TraceStep] = []
        self.numbers: dict[int, int] = {}
        self.observers.append(self)

    def assigned(self, thread: Thread, span: Span, name: str, value: Any) -> None:
        """Add an assignment."""
        self._add(thread.linear, thread.span(span), name, value)

    def access(self, access: Access) -> Fault | None:
        """Add a store."""
        if isinstance(access.node, ir.Store):
            origin = next(o for o in self.origins.values() if o.name == access.array)
            name = element(origin.name, origin.type, access.index, self.request.forms)
            self._add(access.thread, access.span, name, access.value)
        return None

    def _add(self, thread: int, span: Span, name: str, value: Any) -> None:
        if thread in self.threads:
            step = self.numbers[thread] = self.numbers.get(thread, 0) + 1
            self.steps.append(TraceStep(thread, step, span, name, value))
