"""All launches of one printed kernel: counts, decisions, and the source locations of its statements."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..engines.cuda.printer import Source, cuda_source, line_table_file
from ..engines.cuda.sass import Instruction
from ..ir import nodes as ir
from ..ir.walk import statements
from ..profiler.counters import Counters
from ..profiler.decisions import Decisions, merge
from ..profiler.events import DIVERGENT, LANES, WARPS, Counts
from ..runtime.engine import Request
from ..runtime.prepared import prepare
from ..span import Span
from .constant_bank import BankLayout
from .flow_records import LocatedInstruction, Place, StatementCounts
from .source_statements import SourceStatements


@dataclass
class KernelLaunches:
    """All launches of one printed kernel by one case.

    request: of the first launch. threads, warps: total launched. counts, decisions: summed, on an emulator. shapes:
    blocks and threads per block of each launch.
    """

    request: Request
    source: Source
    launches: int = 0
    threads: int = 0
    warps: int = 0
    counts: Counts | None = None
    shapes: list[tuple[int, int]] = field(default_factory=list)
    _decisions: list[Decisions] = field(default_factory=list)
    _arguments_by_launch: list[tuple[tuple[int, ...], list[np.generic | None]]] = field(default_factory=list)

    def add(self, request: Request, counts: Counts | None, decisions: Decisions | None = None) -> None:
        """Add a launch of the same printed kernel."""
        blocks, threads = int(np.prod(request.grid)), int(np.prod(request.block))
        self.launches += 1
        self.shapes.append((blocks, threads))
        numbers = [request.arguments.get(name) for name in self.source.arguments]
        self._arguments_by_launch.append(
            (request.grid, [one if isinstance(one, np.generic) else None for one in numbers])
        )
        self.threads += blocks * threads
        self.warps += blocks * -(-threads // 32)
        if counts is not None:
            self.counts = counts if self.counts is None else self.counts + counts
        if decisions is not None:
            self._decisions.append(decisions)

    @cached_property
    def decisions(self) -> Decisions | None:
        """Merged decisions of all launches; None if not recorded. Read only after the last `add`."""
        return merge(self._decisions) if len(self._decisions) > 1 else next(iter(self._decisions), None)

    def bank(self, layout: BankLayout) -> dict[int, int]:
        """Return the known bytes of the constant bank by offset, as far as all launches agree."""
        banks = [layout.bank(self.request.block, grid, numbers) for grid, numbers in self._arguments_by_launch]
        return {at: n for at, n in banks[0].items() if all(one.get(at) == n for one in banks)} if banks else {}

    @property
    def digest(self) -> str:
        """sha256 of the printed kernel."""
        return digest(self.source)

    @property
    def counters(self) -> Counters:
        """Counters of the emulator."""
        assert self.counts is not None, "only an emulator counts"
        sites = ((s.kind, s.span, s.size, s.costs) for s in prepare(self.request.program).sites)
        return Counters.from_sites(sites, self.counts, self.request.device.sector)

    @property
    def executed(self) -> list[StatementCounts]:
        """Executions of every statement."""
        assert self.counts is not None, "only an emulator counts"
        prepared = prepare(self.request.program)
        loops = _enclosing_loops(prepared.program.kernel.body, self.counts)
        result = []
        for number, (site, row) in enumerate(zip(prepared.sites, self.counts, strict=True)):
            loop, iterations = loops.get(number, (None, 0))
            line, *calls = self._place(site.span)
            result.append(
                StatementCounts(
                    line,
                    site.kind,
                    int(row[WARPS]),
                    int(row[LANES]),
                    int(row[DIVERGENT]),
                    site.size,
                    site.costs,
                    self._place(prepared.sites[loop].span) if loop is not None else (),
                    iterations,
                    tuple(calls),
                )
            )
        return result

    def _place(self, span: Span) -> Place:
        """Return the source location of a span; 0 for lines without a printed one."""
        return tuple(self.lines.get((line_table_file(one), one.line), 0) for one in (span, *reversed(span.calls)))

    @cached_property
    def lines(self) -> dict[tuple[str, int], int]:
        """First printed line (from 1) by source file and line."""
        result: dict[tuple[str, int], int] = {}
        for number, line in enumerate(self.source.lines, 1):
            if line.span is not None:
                result.setdefault((line_table_file(line.span), line.span.line), number)
        return result

    def source_span(self, line: int) -> Span | None:
        """Return the place of a printed line in the user's source; None for line 0 and for lines without one."""
        return self.source.lines[line - 1].span if 0 < line <= len(self.source.lines) else None

    @cached_property
    def statements(self) -> SourceStatements:
        """Statements of the kernel with counts and decisions."""
        assert self.counts is not None, "only an emulator counts"
        prepared = prepare(self.request.program)
        places = [self._place(site.span) for site in prepared.sites]
        return SourceStatements.from_kernel(
            prepared.program.kernel.body, prepared.sites, places, self.counts, self.decisions or Decisions()
        )

    def placed(self, sass: Iterable[Instruction]) -> list[LocatedInstruction]:
        """Return instructions with their innermost known printed line (0 for none) and the lines of inlined calls."""
        result = []
        for instruction in sass:
            line, *calls = [self.lines[place] for place in instruction.places if place in self.lines] or [0]
            result.append(LocatedInstruction(replace(instruction, places=()), line, tuple(calls)))
        return result


def printed_kernels(launches: Iterable[tuple[Request, Counts | None, Decisions | None]]) -> list[KernelLaunches]:
    """Group launches by printed kernel, in order of first launch."""
    kernels: dict[str, KernelLaunches] = {}
    for request, counts, decisions in launches:
        source = cuda_source(request.program, request.block)
        kernels.setdefault(source.text, KernelLaunches(request, source)).add(request, counts, decisions)
    return list(kernels.values())


def _enclosing_loops(body: ir.Body, counts: Counts) -> dict[int, tuple[int, int]]:
    """Return, by site, the innermost enclosing loop and its iterations per entry; 0 if these differ or lanes exit early."""
    result: dict[int, tuple[int, int]] = {}
    for loop in statements(body):
        if isinstance(loop, ir.For | ir.While):
            sites = [stmt.site for stmt in statements(loop.body)]
            direct = (
                stmt for stmt in loop.body if not isinstance(stmt, ir.For | ir.While)
            )  # loops count their tests instead
            iterations = max((int(counts[stmt.site, LANES]) for stmt in direct), default=0)
            entries = int(counts[loop.site, LANES]) - iterations
            leaves_early = any(
                isinstance(s, ir.Break | ir.Return) and counts[s.site, WARPS] for s in statements(loop.body)
            )
            uniform = (
                entries > 0
                and iterations > 0
                and not iterations % entries
                and not counts[loop.site, DIVERGENT]
                and not leaves_early
            )
            result |= dict.fromkeys(sites, (loop.site, iterations // entries if uniform else 0))
    return result


def digest(source: Source) -> str:
    """sha256 of a printed kernel."""
    return hashlib.sha256(source.text.encode()).hexdigest()
