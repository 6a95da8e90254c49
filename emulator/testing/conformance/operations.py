"""Programs that run every row of the op table on edge operands: one for each operand type and number of operands."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...ir import nodes as ir
from ...ir.ops import TABLE, Op
from ...ir.spec import verify
from ...language.types import BOOL, I32, INTEGERS, NUMBERS, Array, Scalar
from ...machine.device import H200
from ...runtime.engine import Request
from ...runtime.specialisation import Specialisation
from ...span import GENERATED
from .edge_values import Values, operands

Group = tuple[Scalar, tuple[Op, ...]]


def groups() -> Iterator[Group]:
    """Yield rows with the same operands: by type, number of operands, and the type of a first operand that differs."""
    for type in (BOOL, *NUMBERS):
        rows = [row for row in TABLE.values() if type in row.types]
        for key in sorted({_key(row) for row in rows}):
            yield type, tuple(row for row in rows if _key(row) == key)


def shifts() -> Iterator[Group]:
    """Yield shifts by counts of another type: each pair of integer types."""
    for type, count in itertools.permutations(INTEGERS, 2):
        yield type, tuple(replace(TABLE[name], count=count) for name in ("shl", "shr"))


def _key(row: Op) -> tuple[int, str]:
    return row.operands, row.first.name if row.first else ""


def group_id(group: Group) -> str:
    type, rows = group
    suffix = f"-by-{rows[0].count}" if isinstance(rows[0].count, Scalar) else ""
    return f"{type}-{rows[0].operands}{f'-{rows[0].name}' if rows[0].first else suffix}"


def request(group: Group, operand_values: tuple[Values, ...] = ()) -> tuple[Request, tuple[Values, ...]]:
    """Return the launch that computes out_ROW for all rows of a group, and its operands, by default edge values."""
    type, rows = group
    operand_values = operand_values or operands(rows[0], type)
    types = rows[0].operand_types(type)
    names = "abc"[: len(operand_values)]
    params = [ir.Param(name, Array(t, None, "global"), GENERATED) for name, t in zip(names, types, strict=True)]
    params += [ir.Param(f"out_{row.name}", Array(row.result_type(type), None, "global"), GENERATED) for row in rows]

    def special(name: str) -> ir.Expr:
        return ir.Special(name, I32, GENERATED)

    def op(name: str, kind: Scalar, *args: ir.Expr) -> ir.Expr:
        return ir.Op(name, args, kind, GENERATED)

    index = ir.Reg("i", I32, GENERATED)
    block = op("mul", I32, special("block.x"), special("block_dim.x"))
    registers = [ir.Reg(name.upper(), t, GENERATED) for name, t in zip(names, types, strict=True)]
    body: list[ir.Stmt] = [
        ir.Let(r, ir.Load(name, index, t, GENERATED), GENERATED)
        for r, name, t in zip(registers, names, types, strict=True)
    ]
    for row in rows:
        result = op(row.name, row.result_type(type), *registers)
        body.append(ir.Store(f"out_{row.name}", index, result, GENERATED))
    start = ir.Let(index, op("add", I32, block, special("thread.x")), GENERATED)
    guard = op("lt", BOOL, index, ir.Extent("a", I32, GENERATED))
    name = f"ops_{group_id(group).replace('-', '_')}"
    kernel = ir.Function(name, tuple(params), (start, ir.If(guard, tuple(body), (), GENERATED)), None, GENERATED)
    program = ir.Program(kernel, ())
    verify(program)
    count = len(operand_values[0])
    arguments = dict(zip(names, operand_values, strict=True))
    arguments |= {f"out_{row.name}": np.zeros(count, row.result_type(type).dtype) for row in rows}
    grid = (-(-count // 128), 1, 1)
    launched = Specialisation.of_program(program)
    return Request(launched, grid, (128, 1, 1), arguments, 0, H200, False, 1000), operand_values
