"""All launches of one kernel: counts, arrays, and the source locations of its statements."""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

import numpy as np

from ..engines.cuda.binary import Binary, binary
from ..engines.cuda.printer import Source, cuda_source, line_table_file
from ..engines.cuda.sass import Instruction
from ..ir.walk import statements
from ..profiler.counters import Counters
from ..profiler.events import LANES, Counts
from ..profiler.launch_memory import LaunchMemory
from ..runtime.engine import Request
from ..runtime.prepared import prepare
from ..span import Span
from .instruction_counts import LocatedInstruction, Place


@dataclass(frozen=True)
class LaunchInputs:
    """The inputs of a launch. numbers: arguments other than arrays. instructions: of the source, by warps."""

    request: Request
    memory: LaunchMemory
    instructions: int

    @property
    def numbers(self) -> dict[str, np.generic]:
        return self.request.numbers


@dataclass
class KernelLaunches:
    """All launches of one kernel by one case: a printed one, or the code of its own language.

    request: of the first launch. threads, warps: total launched. counts: summed, on an emulator. inputs: of each launch
    whose arrays were kept.
    """

    request: Request
    launches: int = 0
    threads: int = 0
    warps: int = 0
    counts: Counts | None = None
    inputs: list[LaunchInputs] = field(default_factory=list)

    def add(self, request: Request, counts: Counts | None, memory: LaunchMemory | None = None) -> None:
        """Add a launch of the same kernel."""
        blocks, threads = prod(request.grid), prod(request.block)
        self.launches += 1
        self.threads += blocks * threads
        self.warps += blocks * -(-threads // 32)
        if counts is not None:
            self.counts = counts if self.counts is None else self.counts + counts
        if memory is not None and counts is not None:
            self.inputs.append(LaunchInputs(request, memory, self._counters(counts).total("warp_instructions")))

    @cached_property
    def source(self) -> Source:
        """The printed kernel."""
        return cuda_source(self.request.program, self.request.block, cluster=self.request.cluster)

    @property
    def name(self) -> str:
        return self.request.program.kernel.name

    @property
    def digest(self) -> str:
        """sha256 of the printed kernel."""
        return digest(self.source)

    def binary(self, arch: str) -> Binary:
        """Return the compiled kernel. Raises the errors of `engines.cuda.binary.binary`."""
        return binary(replace(self.request, maths="native"), arch)

    @property
    def counters(self) -> Counters:
        """Counters of the emulator."""
        assert self.counts is not None, "only an emulator counts"
        return self._counters(self.counts)

    def _counters(self, counts: Counts) -> Counters:
        sites = ((s.kind, s.span, s.size, s.costs) for s in prepare(self.request.program).sites)
        return Counters.from_sites(sites, counts, self.request.device.sector)

    @cached_property
    def site_places(self) -> list[Place]:
        """Source location of each site of the program."""
        return [self._place(site.span) for site in prepare(self.request.program).sites]

    @property
    def executed(self) -> list[tuple[int, Place, str]]:
        """Number, location and kind of the sites that lanes executed."""
        assert self.counts is not None, "only an emulator counts"
        sites = prepare(self.request.program).sites
        return [
            (number, self.site_places[number], site.kind)
            for number, site in enumerate(sites)
            if self.counts[number, LANES]
        ]

    def _place(self, span: Span) -> Place:
        """Return the source location of a span; 0 for lines without a printed one."""
        return tuple(
            self.lines.get((_file(line_table_file(one)), one.line), 0) for one in (span, *reversed(span.calls))
        )

    @cached_property
    def lines(self) -> dict[tuple[str, int], int]:
        """First line (from 1) of `_spans` by source file and line."""
        result: dict[tuple[str, int], int] = {}
        for number, span in enumerate(self._spans, 1):
            if span is not None:
                result.setdefault((_file(line_table_file(span)), span.line), number)
        return result

    @cached_property
    def _spans(self) -> list[Span | None]:
        """The place in the user's source of each printed line; of a kernel's own code, the places of its statements."""
        if self.request.specialisation.own_code is None:
            return [line.span for line in self.source.lines]
        places = (stmt.span for stmt in statements(self.request.prepared.program.kernel.body))
        return [one for span in places for one in (span, *span.calls) if one.line]

    def source_span(self, line: int) -> Span | None:
        """Return the place of a line in the user's source; None for line 0 and for lines without one."""
        return self._spans[line - 1] if 0 < line <= len(self._spans) else None

    def placed(self, sass: Iterable[Instruction]) -> list[LocatedInstruction]:
        """Return instructions with their innermost known printed line (0 for none) and the lines of inlined calls."""
        result = []
        for instruction in sass:
            places = [(_file(name), line) for name, line in instruction.places]
            line, *calls = [self.lines[place] for place in places if place in self.lines] or [0]
            result.append(LocatedInstruction(replace(instruction, places=()), line, tuple(calls)))
        return result


def _file(name: str) -> str:
    """Return a file's name in a line table. nvcc completes that of a text without a file by its own folder."""
    base = os.path.basename(name)
    return base if base.startswith("<") else name


def launches_by_kernel(
    launches: Iterable[tuple[Request, Counts | None, LaunchMemory | None]],
) -> list[KernelLaunches]:
    """Group launches by kernel and size of a block, in order of first launch."""
    kernels: dict[object, KernelLaunches] = {}
    for request, counts, memory in launches:
        launched, own = KernelLaunches(request), request.specialisation.own_code
        key = launched.source.text if own is None else (own, request.block, request.program)
        kernels.setdefault(key, launched).add(request, counts, memory)
    return list(kernels.values())


def digest(source: Source) -> str:
    """sha256 of a printed kernel."""
    return hashlib.sha256(source.text.encode()).hexdigest()
