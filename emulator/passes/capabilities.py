"""The compute capability that a program needs, and for which of its words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..ir import nodes as ir
from ..ir.walk import effect, expressions, statements
from ..language.types import F64, Vector
from .needs import Capability, Needed

_REDUCTIONS = ("add", "min", "max", "and", "or", "xor")
_OPERATIONS: dict[str, Capability] = {"dp4a": (6, 1)}
"""Operations that older devices do not have and nvcc does not replace."""
_FUSED: dict[str, Capability] = {"f16": (5, 3), "bf16": (8, 0)}
_ATOMICS: dict[str, Capability] = {"f16": (7, 0), "half2": (6, 0), "bf16": (8, 0), "bfloat162": (8, 0)}


def needed(program: ir.Program) -> tuple[Needed, ...]:
    """The words that need more than the oldest device has, one place each."""
    found: dict[str, Needed] = {}
    for function in (*program.functions, program.kernel):
        for stmt in statements(function.body):
            for word, capability, node in _of(stmt):
                found.setdefault(word, Needed(word, capability, node.span.place))
    return tuple(found.values())


def _of(stmt: ir.Stmt) -> Iterator[tuple[str, Capability, Any]]:
    for expr in expressions(stmt):
        if isinstance(expr, ir.Op) and expr.name in _OPERATIONS:
            yield f"st.{expr.name}", _OPERATIONS[expr.name], expr
        if isinstance(expr, ir.Op) and expr.name == "fma" and str(expr.type) in _FUSED:
            yield f"st.fma of {expr.type}", _FUSED[str(expr.type)], expr
    match effect(stmt) or stmt:
        case ir.Vote(mode="match" | "match_all" as mode) as vote:
            yield f"st.{'match_any' if mode == 'match' else mode}", (7, 0), vote
        case ir.Vote() as vote if vote.mode in _REDUCTIONS:
            yield f"st.reduce_{vote.mode}", (8, 0), vote
        case ir.Store(order="async") as store:
            yield "st.async_copy", (8, 0), store
        case ir.Sleep() as sleep:
            yield "st.nanosleep", (7, 0), sleep
        case (ir.Load() | ir.Store()) as access if access.order in ("acquire", "release"):
            yield ("st.load_acquire" if access.order == "acquire" else "st.store_release"), (7, 0), access
        case ir.Atomic() | ir.CompareSwap() as atomic:
            yield from _of_atomic(atomic)


def _of_atomic(atomic: ir.Atomic | ir.CompareSwap) -> Iterator[tuple[str, Capability, Any]]:
    word = f"st.atomic_{atomic.op}" if isinstance(atomic, ir.Atomic) else "st.compare_swap"
    if str(atomic.type) in _ATOMICS:
        yield f"{word} on {atomic.type}", _ATOMICS[str(atomic.type)], atomic
    elif isinstance(atomic.type, Vector):
        yield f"{word} on {atomic.type}", (9, 0), atomic
    elif atomic.type is F64 and word == "st.atomic_add":
        yield f"{word} on f64", (6, 0), atomic
    if atomic.order != "relaxed":
        yield f'order="{atomic.order}"', (7, 0), atomic
    if atomic.scope != "device":
        yield f'scope="{atomic.scope}"', (6, 0), atomic
