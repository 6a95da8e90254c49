"""Barriers in shared memory (`mbarrier`): the bits of their 64-bit word, and expressions on it.

From bit 0 on: pending arrivals, from EXPECTED on arrivals of a phase, from TX on pending bytes plus NO_BYTES, then a bit that is set in a
barrier, and in bit 63 the parity of the incomplete phase. The rows of `updates` complete a phase. The layout of the hardware is opaque.
"""

from __future__ import annotations

from ..language.forms import AtomicOp
from ..language.types import BOOL, U64
from . import nodes as ir

EXPECTED, TX, VALID = 20, 40, 62
COUNT, TX_FIELD = (1 << 20) - 1, (1 << 22) - 1
NO_BYTES = 1 << 20
_INITIAL = 1 << VALID | NO_BYTES << TX
WAITS: tuple[AtomicOp, ...] = ("mbarrier_test_wait", "mbarrier_test_wait_parity", "mbarrier_try_wait_parity")
"""The operations that change nothing."""


def _op(name: str, a: ir.Expr, b: ir.Expr | int) -> ir.Op:
    second = ir.Const(b, U64, a.span) if isinstance(b, int) else b
    return ir.Op(name, (a, second), BOOL if name == "ne" else U64, a.span)


def initial(count: ir.Expr) -> ir.Expr:
    """Return the word of a new barrier. count: arrivals of a phase, of type u64."""
    return _op("add", _op("mul", count, 1 | 1 << EXPECTED), _INITIAL)


def initial_count(word: ir.Expr) -> ir.Expr | None:
    """Return the arrivals of a new barrier; None for the word of no barrier."""
    if not isinstance(word, ir.Op):
        return None
    product = word.args[0]
    assert isinstance(product, ir.Op)
    return product.args[0]


def state_of_parity(parity: ir.Expr) -> ir.Expr:
    """Return the state of a phase with a parity of type u64."""
    return _op("shl", parity, 63)


def is_complete(word: ir.Expr, state: ir.Expr) -> ir.Expr:
    """Return whether the phase of a state is complete. word: of the barrier, by an operation of WAITS."""
    return _op("ne", _op("shr", _op("xor", word, state), 63), 0)


def pending(word: int) -> str:
    """Return the pending arrivals and bytes of a barrier in words."""
    bytes = (word >> TX & TX_FIELD) - NO_BYTES
    return f"{word & COUNT:,} arrivals" + (f" and {bytes:,} bytes" if bytes else "")
