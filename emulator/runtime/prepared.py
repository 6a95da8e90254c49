"""Pass pipeline from the front end's program to the emulators' program, with cached analyses."""

import weakref
from dataclasses import dataclass
from functools import cached_property

from ..ir import nodes as ir
from ..ir.spec import verify
from ..ir.walk import statements
from ..passes import budget
from ..passes.barriers import changed_arrays, order_matters
from ..passes.bulk_copies import lower_bulk_copies
from ..passes.clocks import count_clock_readings
from ..passes.flushed_sums import flush_sums
from ..passes.inline import inline
from ..passes.private_registers import private_registers
from ..passes.rounded_arrays import Rounded, rounded_arrays
from ..passes.sites import Site, number
from ..passes.textures import lower_fetches
from ..passes.thread_order import order_dependent_arrays
from ..passes.unroll import unroll
from ..passes.warpgroups import lower_products
from ..sanitizer.instrument import instrument
from ..span import Span


@dataclass(frozen=True)
class PreparedProgram:
    """A program without calls and unrolled loops, and its properties.

    Statements with sites beyond `sites` were added by checkers and are not counted.
    """

    program: ir.Program
    sites: tuple[Site, ...]

    @cached_property
    def private(self) -> frozenset[str]:
        """Registers that need no merge."""
        return private_registers(self.program.kernel)

    @cached_property
    def changed(self) -> tuple[str, ...]:
        """Global arrays it may change."""
        return changed_arrays(self.program.kernel)

    @cached_property
    def ordered(self) -> bool:
        """Whether its warps must run in a fixed order."""
        return order_matters(self.program.kernel)

    @cached_property
    def order_dependent(self) -> dict[str, Span]:
        """Its arrays whose contents depend on the order of threads, each with the statement that causes it."""
        return order_dependent_arrays(self.program.kernel) if self.ordered else {}

    @cached_property
    def rounded(self) -> dict[str, Rounded]:
        """Its arrays that CUDA's own mathematical functions may change, each with the bound of the difference."""
        return rounded_arrays(self.program.kernel)

    @cached_property
    def shared(self) -> int:
        """Bytes of its shared arrays, each aligned to 16 bytes, as by the compiler.

        An array of a device function exists once for each call.
        """
        body = self.program.kernel.body
        arrays = (s.type for s in statements(body) if isinstance(s, ir.Alloc) and s.type.space == "shared")
        return sum(-(-type.element.size * (type.length or 0) // 16) * 16 for type in arrays)

    def counts(self, stmt: ir.Stmt) -> bool:
        """Return whether the statement is the user's: its executions are counted."""
        return stmt.site < len(self.sites)


_PREPARED: weakref.WeakKeyDictionary[ir.Program, dict[frozenset[str], PreparedProgram]] = weakref.WeakKeyDictionary()


def prepare(program: ir.Program, checks: frozenset[str] = frozenset()) -> PreparedProgram:
    """Inline, unroll, number and instrument a program, and verify it after the passes. Cached while the program lives."""
    variants = _PREPARED.setdefault(program, {})
    if checks not in variants:
        numbered, sites = _numbered(program)
        instrumented = ir.Program(instrument(numbered.kernel, len(sites), checks), ())
        verify(instrumented)
        variants[checks] = PreparedProgram(instrumented, sites)
    return variants[checks]


_NUMBERED: weakref.WeakKeyDictionary[ir.Program, tuple[ir.Program, tuple[Site, ...]]] = weakref.WeakKeyDictionary()


def _numbered(program: ir.Program) -> tuple[ir.Program, tuple[Site, ...]]:
    """Return the numbered program and its sites, common to all sets of checks. Cached while the program lives."""
    if program not in _NUMBERED:
        budget.check_calls(program)
        inlined = inline(lower_bulk_copies(flush_sums(lower_products(lower_fetches(program)))))
        verify(inlined)
        budget.check_memory(inlined.kernel)
        unrolled = unroll(inlined)
        verify(unrolled)
        counted = count_clock_readings(unrolled)
        if counted is not unrolled:
            verify(counted)
        _NUMBERED[program] = number(counted)
    return _NUMBERED[program]
