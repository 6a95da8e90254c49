"""The thread and the statement that wrote an element: repeats the launch and records every write to its array."""

from dataclasses import dataclass, replace

import numpy as np

from ..ir import nodes as ir
from ..ir.effects import performed, written_array
from ..ir.walk import map_bodies
from ..language.types import BOOL, I32, Array, Scalar
from ..runtime.engine import Dim3, Request
from ..runtime.prepared import prepare
from ..runtime.registry import engine_named
from ..runtime.specialisation import Specialisation
from ..span import GENERATED, Span

_WATCHED = "writer@"
_FIELDS = ("block.x", "block.y", "block.z", "thread.x", "thread.y", "thread.z")


@dataclass(frozen=True)
class Written:
    """The last write to an element: the statement, and the thread that executed it."""

    span: Span
    block: Dim3
    thread: Dim3


def last_write(request: Request, array: str, index: int) -> Written | None:
    """Return the last write to element `index` of an array in a launch, on an emulator; None if no thread writes it.

    request: with the values of all its arguments.
    """
    kernel = prepare(request.program).program.kernel
    spans: list[Span] = []

    def watched(body: ir.Body) -> ir.Body:
        result: list[ir.Stmt] = []
        for stmt in body:
            if written_array(stmt) == array:
                write = performed(stmt)
                result += _watch(write.index, index, len(spans))
                spans.append(write.span.without_calls)
            result.append(map_bodies(stmt, watched))
        return tuple(result)

    body = watched(kernel.body)
    params = (*kernel.params, ir.Param(_WATCHED, Array(I32, None, "global"), GENERATED))
    program = ir.Program(replace(kernel, params=params, body=body), ())
    again = replace(
        request,
        specialisation=Specialisation.of_program(program),
        arguments={**request.arguments, _WATCHED: np.full(1 + len(_FIELDS), -1, np.int32)},
        counters=False,
        detail=False,
        device_arrays={},
        checks=frozenset(),
        schedule=None,
        show_prints=False,
    )
    number, *result = (int(n) for n in engine_named("jit").run(again).buffers.get(_WATCHED, (-1,)))
    if number < 0:
        return None
    x, y, z, i, j, k = result
    return Written(spans[number], (x, y, z), (i, j, k))


def _watch(index: ir.Expr, target: int, number: int) -> list[ir.Stmt]:
    """Return statements that record the thread if the index of a write is `index`."""
    assert isinstance(index.type, Scalar)
    low, high = index.type.range
    if not low <= target <= high:
        return []

    def store(at: int, value: ir.Expr) -> ir.Stmt:
        return ir.Store(_WATCHED, ir.Const(at, I32, GENERATED), value, GENERATED)

    notes = [store(at, ir.Special(name, I32, GENERATED)) for at, name in enumerate(_FIELDS, 1)]
    same = ir.Op("eq", (index, ir.Const(target, index.type, GENERATED)), BOOL, GENERATED)
    return [ir.If(same, (store(0, ir.Const(number, I32, GENERATED)), *notes), (), GENERATED)]
