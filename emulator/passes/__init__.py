"""From the frontend's program to the one the emulators run."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

from ..ir import nodes as ir
from ..ir.verify import verify
from .inline import inline
from .phases import changed_arrays, order_matters
from .scope import private_registers
from .sites import Site, number
from .unroll import unroll


@dataclass(frozen=True)
class Prepared:
    """A program without calls and unrolled loops, and what its engines ask of it.

    private: registers that need no merge. changed: global arrays it may change. ordered: whether its warps must take
    their turns.
    """

    program: ir.Program
    sites: tuple[Site, ...]
    private: frozenset[str]
    changed: tuple[str, ...]
    ordered: bool


_PREPARED: weakref.WeakKeyDictionary[ir.Program, Prepared] = weakref.WeakKeyDictionary()


def prepare(program: ir.Program) -> Prepared:
    """Inline, unroll, number; the verifier runs after every pass. Kept while the program lives."""
    if program not in _PREPARED:
        _PREPARED[program] = _prepare(program)
    return _PREPARED[program]


def _prepare(program: ir.Program) -> Prepared:
    for one_pass in (inline, unroll):
        program = one_pass(program)
        verify(program)
    program, sites = number(program)
    verify(program)
    kernel = program.kernel
    return Prepared(program, sites, private_registers(kernel), changed_arrays(kernel), order_matters(kernel))
