"""All launches of one printed kernel: what they counted, and where its statements lie in the printed text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..engines.cuda.printer import Source, cuda_source
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
from .flow import LocatedInstruction, Place, StatementCounts
from .source_statements import SourceStatements


@dataclass
class KernelLaunches:
    """All launches of one printed kernel by one case.

    request: of the first. threads, warps: launched together. counts, decisions: summed, on an emulator.
    """

    request: Request
    source: Source
    launches: int = 0
    threads: int = 0
    warps: int = 0
    counts: Counts | None = None
    shapes: list[tuple[int, int]] = field(default_factory=list)
    _decided: list[Decisions] = field(default_factory=list)
    _given: list[tuple[tuple[int, ...], list[np.generic | None]]] = field(default_factory=list)

    def add(self, request: Request, counts: Counts | None, decisions: Decisions | None = None) -> None:
        """Another launch of the same printed kernel."""
        blocks, threads = int(np.prod(request.grid)), int(np.prod(request.block))
        self.launches += 1
        self.shapes.append((blocks, threads))
        numbers = [request.arguments.get(name) for name in self.source.arguments]
        self._given.append((request.grid, [one if isinstance(one, np.generic) else None for one in numbers]))
        self.threads += blocks * threads
        self.warps += blocks * -(-threads // 32)
        if counts is not None:
            self.counts = counts if self.counts is None else self.counts + counts
        if decisions is not None:
            self._decided.append(decisions)

    @cached_property
    def decisions(self) -> Decisions | None:
        """Of all its launches, once there are no more; None where none kept them."""
        return merge(self._decided) if len(self._decided) > 1 else next(iter(self._decided), None)

    def bank(self, layout: BankLayout) -> dict[int, int]:
        """Constants by offset, a byte each, that all launches have alike."""
        each = [layout.bank(self.request.block, grid, numbers) for grid, numbers in self._given]
        return {at: n for at, n in each[0].items() if all(one.get(at) == n for one in each)} if each else {}

    @property
    def digest(self) -> str:
        """sha256 of the printed kernel."""
        return digest(self.source)

    @property
    def counters(self) -> Counters:
        """What the emulator counted."""
        assert self.counts is not None, "only an emulator counts"
        sites = ((s.kind, s.span, s.size, s.costs) for s in prepare(self.request.program).sites)
        return Counters.from_sites(sites, self.counts, self.request.device.sector)

    @property
    def executed(self) -> list[StatementCounts]:
        """Executions of every statement."""
        assert self.counts is not None, "only an emulator counts"
        prepared = prepare(self.request.program)
        loops = _loops(prepared.program.kernel.body, self.counts)
        found = []
        for number, (site, row) in enumerate(zip(prepared.sites, self.counts, strict=True)):
            loop, iterations = loops.get(number, (None, 0))
            line, *calls = self._place(site.span)
            found.append(
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
        return found

    def _place(self, span: Span) -> Place:
        """Its line of the printed kernel and those of the calls around it, innermost first; 0 for one that has none."""
        return tuple(self.lines.get((one.file, one.line), 0) for one in (span, *reversed(span.calls)))

    @cached_property
    def lines(self) -> dict[tuple[str, int], int]:
        """Places of the source, and the line of the printed kernel that came from there first. Printed lines count from
        1. They stay the same while the text does, wherever the source is moved to."""
        found: dict[tuple[str, int], int] = {}
        for number, line in enumerate(self.source.lines, 1):
            if line.span is not None:
                found.setdefault((line.span.file, line.span.line), number)
        return found

    @cached_property
    def statements(self) -> SourceStatements:
        """Its control, with counts and decisions."""
        assert self.counts is not None, "only an emulator counts"
        prepared = prepare(self.request.program)
        places = [self._place(site.span) for site in prepared.sites]
        return SourceStatements.of(
            prepared.program.kernel.body, prepared.sites, places, self.counts, self.decisions or Decisions()
        )

    def placed(self, sass: Iterable[Instruction]) -> list[LocatedInstruction]:
        """Instructions with their lines of the printed kernel: the innermost that is known, 0 where there is none, and
        those of the calls around it."""
        found = []
        for one in sass:
            line, *calls = [self.lines[place] for place in one.places if place in self.lines] or [0]
            found.append(LocatedInstruction(replace(one, places=()), line, tuple(calls)))
        return found


def printed_kernels(launches: Iterable[tuple[Request, Counts | None, Decisions | None]]) -> list[KernelLaunches]:
    """Each printed kernel of some launches once, in the order of their first ones."""
    found: dict[str, KernelLaunches] = {}
    for request, counts, decisions in launches:
        source = cuda_source(request.program, request.block)
        found.setdefault(source.text, KernelLaunches(request, source)).add(request, counts, decisions)
    return list(found.values())


def _loops(body: ir.Body, counts: Counts) -> dict[int, tuple[int, int]]:
    """By site: the innermost loop around a statement, and how many iterations it makes each time it is entered; 0 where lanes
    differ or leave it by other ways than its test."""
    found: dict[int, tuple[int, int]] = {}
    for loop in statements(body):
        if isinstance(loop, ir.For | ir.While):
            inside = [stmt.site for stmt in statements(loop.body)]
            once = (stmt for stmt in loop.body if not isinstance(stmt, ir.For | ir.While))  # those count their tests
            starts = max((int(counts[stmt.site, LANES]) for stmt in once), default=0)
            entries = int(counts[loop.site, LANES]) - starts
            leaving = any(isinstance(s, ir.Break | ir.Return) and counts[s.site, WARPS] for s in statements(loop.body))
            uniform = (
                entries > 0 and starts > 0 and not starts % entries and not counts[loop.site, DIVERGENT] and not leaving
            )
            found |= dict.fromkeys(inside, (loop.site, starts // entries if uniform else 0))
    return found


def digest(source: Source) -> str:
    """sha256 of a printed kernel."""
    return hashlib.sha256(source.text.encode()).hexdigest()
