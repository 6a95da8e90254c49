"""Interprocedural facts for CUDA: shared arrays of callees, arrays that callees write, lengths that callees read.

A device function's shared array exists once for each call in the language, but once for all calls in CUDA. So
the kernel declares one for each chain of calls and passes it down.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...ir import nodes as ir
from ...ir.effects import written_array
from ...ir.names import Name, of_layout
from ...ir.walk import effect, expressions, flattened, map_bodies, registers, statements
from ...language.types import Array, Scalar, Vector
from ...sanitizer.instrument import unchecked
from .fold import nodes


@dataclass(frozen=True)
class Program:
    """The functions, callees first and the kernel last, without shared Allocs; the kernel's shared arrays."""

    functions: tuple[ir.Function, ...]
    shared: tuple[ir.Alloc, ...]

    @property
    def kernel(self) -> ir.Function:
        return self.functions[-1]


def lift_shared(program: ir.Program) -> Program:
    """The program with all shared memory in its kernel."""
    lifted: dict[str, list[ir.Alloc]] = {}
    functions: list[ir.Function] = []
    for function in (*program.functions, program.kernel):
        lifter = _Lifter(function, lifted)
        body = lifter.body(function.body)
        lifted[function.name] = lifter.shared
        if function is not program.kernel:
            params = (ir.Param(a.array, _flat(a.type), a.span) for a in lifter.shared)
            function = replace(function, params=(*function.params, *params))
        functions.append(replace(function, body=body))
    return Program(tuple(functions), tuple(lifted[program.kernel.name]))


def _flat(type: Array) -> Array:
    return replace(type, shape=None if type.length is None else (type.length,))


@dataclass
class _Lifter:
    function: ir.Function
    lifted: Mapping[str, list[ir.Alloc]]
    shared: list[ir.Alloc] = field(default_factory=list)

    def body(self, body: ir.Body) -> ir.Body:
        result: list[ir.Stmt] = []
        for stmt in body:
            match stmt:
                case ir.Alloc(type=Array(space="shared")):
                    self.shared.append(stmt)
                    continue
                case ir.Let(value=ir.Call() as call):
                    stmt = replace(stmt, value=self.call(call))
            result.append(map_bodies(stmt, self.body))
        return tuple(result)

    def call(self, call: ir.Call) -> ir.Call:
        """Return the call with arrays of this function for the shared arrays of its callee."""
        arguments = []
        for alloc in self.lifted[call.function]:
            name = self.name(f"{call.function}_{alloc.array}")
            self.shared.append(replace(alloc, array=name))
            arguments.append(ir.ArrayRef(name, call.span))
        return replace(call, args=(*call.args, *arguments))

    def name(self, preferred: str) -> str:
        used = set(names(self.function)) | {a.array for a in self.shared}
        number, chosen = 1, preferred
        while chosen in used:
            number += 1
            chosen = f"{preferred}_{number}"
        return chosen


def names(function: ir.Function) -> dict[str, Any]:
    """Parameters, registers, loop variables and arrays of a function in order of appearance, with their types."""
    result: dict[str, Any] = {p.name: p.type for p in function.params}
    for stmt in statements(function.body):
        match stmt:
            case ir.Let(target=ir.Reg() as target):
                result.setdefault(target.name, target.type)
            case ir.For():
                result.setdefault(stmt.var.name, stmt.var.type)
            case ir.Alloc():
                result.setdefault(stmt.array, stmt.type)
    return result


def scalars(functions: tuple[ir.Function, ...]) -> set[Scalar]:
    """The types of the numbers that functions hold, in arrays and vectors too."""
    result = set()
    for function in functions:
        read = (n for s in statements(function.body) for n in nodes(s))
        for type in {*names(function).values(), *(n.type for n in read if hasattr(n, "type"))}:
            while isinstance(type, Array | Vector):
                type = type.element
            result |= {type} if isinstance(type, Scalar) else set()
    return result


def written(functions: tuple[ir.Function, ...]) -> dict[str, set[str]]:
    """By function, its arrays that it or a callee writes."""
    result: dict[str, set[str]] = {}
    for function in functions:
        mine = result[function.name] = set()
        for stmt in statements(function.body):
            if (array := written_array(stmt)) is not None:
                mine.add(array)
            if isinstance(stmt, ir.Let) and isinstance(stmt.target, ir.Item):
                mine.add(stmt.target.array)
            call = effect(stmt)
            if isinstance(call, ir.Call):
                mine |= {outer for inner, outer in passed(call, functions) if inner in result[call.function]}
    return result


def lengths(functions: tuple[ir.Function, ...], shared: tuple[ir.Alloc, ...]) -> dict[str, tuple[str, ...]]:
    """By function, its arrays of unknown length whose length it or a callee reads, in order."""
    result: dict[str, tuple[str, ...]] = {}
    for function in functions:
        types = names(function) | ({a.array: a.type for a in shared} if function is functions[-1] else {})
        mine: set[str] = set()
        for stmt in statements(function.body):
            mine |= {e.array for e in expressions(stmt) if isinstance(e, ir.Extent)}
            call = effect(stmt)
            if isinstance(call, ir.Call):
                mine |= {outer for inner, outer in passed(call, functions) if inner in result[call.function]}
        unknown = [name for name, type in types.items() if isinstance(type, Array) and type.shape is None]
        result[function.name] = tuple(name for name in unknown if name in mine)
    return result


def passed(call: ir.Call, functions: tuple[ir.Function, ...]) -> list[tuple[str, str]]:
    """The arrays of a call: the callee's name and the caller's."""
    callee = next(f for f in functions if f.name == call.function)
    pairs = zip(callee.params, call.args, strict=True)
    return [(param.name, arg.name) for param, arg in pairs if isinstance(arg, ir.ArrayRef)]


def _without_unread(body: ir.Body, read: set[str]) -> ir.Body:
    """The statements without the temporaries that only checks read."""

    def useless(stmt: ir.Stmt) -> bool:
        match stmt:
            case ir.Let(target=ir.Reg(name=name), value=value):
                return name not in read and Name.parse(name).temporary and not isinstance(value, ir.Effect)
        return False

    return tuple(map_bodies(s, lambda inner: _without_unread(inner, read)) for s in body if not useless(s))


def plain(program: ir.Program) -> ir.Program:
    """The program without checks, and without the extents and strides that nothing else reads."""
    functions: dict[str, ir.Function] = {}
    dropped: dict[str, frozenset[int]] = {}

    def change(stmt: ir.Stmt) -> ir.Stmt:
        stmt = flattened(stmt)
        if isinstance(stmt, ir.Assert):  # its values are those of a finding
            stmt = replace(stmt, shown=())
        call = effect(stmt)
        if isinstance(call, ir.Call) and isinstance(stmt, ir.Let):
            remaining = tuple(a for n, a in enumerate(call.args) if n not in dropped[call.function])
            stmt = replace(stmt, value=replace(call, args=remaining))
        return map_bodies(stmt, lambda inner: tuple(map(change, inner)))

    for function in (*program.functions, program.kernel):
        body = tuple(map(change, unchecked(function.body)))
        read = {n.name for s in statements(body) for n in registers(s)}
        body = _without_unread(body, read)
        unread = frozenset(
            n for n, param in enumerate(function.params) if of_layout(param.name) and param.name not in read
        )
        dropped[function.name] = unread
        params = tuple(param for n, param in enumerate(function.params) if n not in unread)
        functions[function.name] = replace(function, params=params, body=body)
    *callees, kernel = functions.values()
    return ir.Program(kernel, tuple(callees))
