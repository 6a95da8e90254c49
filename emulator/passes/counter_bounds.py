"""Counted loops whose counter may wrap: the bounds of loops as interval terms, and the limit added to a loop.

A counter with the step 1 or -1 never wraps: it is smaller than the stop, which is a number of the type. With a longer step, it
may wrap if the stop is near the end of the type. The analysis does not depend on the order of statements: a register has
one of the values assigned to it anywhere.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from ..ir import counting
from ..ir import nodes as ir
from ..ir.names import temporary
from ..ir.walk import map_bodies, statements
from ..ir.wide import array_types
from ..language.types import BOOL, Array, Scalar
from .intervals import OPERATIONS, CountedLoop, Counters, Term

MAX_DEPTH = 100
"""Maximum definitions and operations between a loop and a leaf of its bound; beyond them any value is assumed."""


def counters(program: ir.Program) -> Counters:
    """Return the loops of a program whose counter wraps for some launch."""
    encoder = _Encoder(program)
    loops = [encoder.loop(number, function, loop) for number, function, loop in _stepped_loops(program)]
    wrapping = set(_ordered(encoder.terms, loops).wrapping(lambda name: None))
    return _ordered(encoder.terms, [loop for loop in loops if loop.number in wrapping])


def limited(program: ir.Program, numbers: Collection[int]) -> ir.Program:
    """Return the program with a limit for these loops, computed before each."""
    chosen = {id(loop) for number, _, loop in _stepped_loops(program) if number in numbers}
    if not chosen:
        return program
    functions = [replace(f, body=_limited(f, chosen)) for f in (*program.functions, program.kernel)]
    return ir.Program(functions[-1], tuple(functions[:-1]))


def never_wrapping(program: ir.Program) -> ir.Program:
    """Return the program with a limit for each loop whose counter may wrap for some arguments."""
    return limited(program, [loop.number for loop in counters(program).loops])


def _limited(function: ir.Function, chosen: set[int]) -> ir.Body:
    targets = (stmt.target for stmt in statements(function.body) if isinstance(stmt, ir.Let))
    used = {target.name for target in targets if isinstance(target, ir.Reg)}

    def body(stmts: ir.Body) -> ir.Body:
        result: list[ir.Stmt] = []
        for stmt in stmts:
            new = map_bodies(stmt, body)
            if isinstance(new, ir.For) and id(stmt) in chosen:
                limit = counting.limit(new)
                if not isinstance(limit, ir.Const):
                    names = (temporary(f"{new.var.name}_limit", number) for number in range(len(used) + 1))
                    register = ir.Reg(next(name for name in names if name not in used), new.var.type, new.span)
                    used.add(register.name)
                    result.append(ir.Let(register, limit, new.span))
                    limit = register
                new = replace(new, limit=limit)
            result.append(new)
        return tuple(result)

    return body(function.body)


def _stepped_loops(program: ir.Program) -> Iterator[tuple[int, ir.Function, ir.For]]:
    """Yield the loops whose step may be longer than 1, with their numbers and functions."""
    number = 0
    for function in (*program.functions, program.kernel):
        for stmt in statements(function.body):
            if isinstance(stmt, ir.For) and not stmt.unroll and stmt.limit is None and stmt.step not in (1, -1):
                yield number, function, stmt
                number += 1


def _ordered(terms: list[Term], loops: list[CountedLoop]) -> Counters:
    """Return the loops with the terms they need, each after its operands except in cycles."""
    place: dict[int, int] = {}
    order: list[Term] = []
    visited: set[int] = set()
    stack = [(at, False) for loop in loops for at in (loop.start, loop.stop, loop.step)]
    while stack:
        at, is_finished = stack.pop()
        if is_finished:
            place[at] = len(order)
            order.append(terms[at])
        elif at not in visited:
            visited.add(at)
            stack += [(at, True), *((operand, False) for operand in terms[at].operands)]
    moved_terms = (replace(term, operands=tuple(place[operand] for operand in term.operands)) for term in order)
    moved = (replace(loop, start=place[loop.start], stop=place[loop.stop], step=place[loop.step]) for loop in loops)
    return Counters(tuple(moved_terms), tuple(moved))


class _Encoder:
    """Encoder of integer expressions as terms."""

    def __init__(self, program: ir.Program) -> None:
        self.kernel = program.kernel
        self.terms: list[Term] = []
        self.places: dict[Term, int] = {}
        self.registers: dict[tuple[str, str], int] = {}
        self.assigned: dict[tuple[str, str], list[Any]] = defaultdict(list)
        self.callers: dict[str, list[tuple[ir.Function, ir.Call]]] = defaultdict(list)
        self.tables: dict[tuple[str, str], tuple[Any, ...]] = {}
        for function in (*program.functions, program.kernel):
            for stmt in statements(function.body):
                self._record(function, stmt)

    def _record(self, function: ir.Function, stmt: ir.Stmt) -> None:
        """Record the values of registers, the calls of device functions, and the tables in constant memory."""
        match stmt:
            case ir.Let(target=ir.Reg(name=name), value=value):
                self.assigned[function.name, name].append(value)
            case ir.For():  # between its bounds
                self.assigned[function.name, stmt.var.name] += [stmt.start, stmt.stop]
            case ir.Alloc(type=Array(space="constant")):
                self.tables[function.name, stmt.array] = stmt.values
        if isinstance(stmt, ir.Let) and isinstance(stmt.value, ir.Call):
            self.callers[stmt.value.function].append((function, stmt.value))

    def loop(self, number: int, function: ir.Function, loop: ir.For) -> CountedLoop:
        """Encode the bounds of a loop."""
        assert isinstance(loop.var.type, Scalar)
        constant = Term("type", loop.step, loop.step) if isinstance(loop.step, int) else None
        step = self.value(function, loop.step, 0) if constant is None else self.add(constant)
        start, stop = (self.value(function, bound, 0) for bound in (loop.start, loop.stop))
        return CountedLoop(number, *loop.var.type.range, start, stop, step)

    def add(self, term: Term) -> int:
        """Return the position of a term."""
        if term not in self.places:
            self.places[term] = len(self.terms)
            self.terms.append(term)
        return self.places[term]

    def value(self, function: ir.Function, expr: Any, depth: int) -> int:
        """Return the term of an integer expression or effect of a function."""
        type = getattr(expr.type, "element", expr.type)
        if type == BOOL:
            return self.add(Term("type", 0, 1))
        if not isinstance(type, Scalar) or not type.is_integer:
            return self.add(_ANY)
        unknown = Term("type", *type.range)
        if depth >= MAX_DEPTH:
            return self.add(unknown)
        match expr:
            case ir.Const():
                return self.add(Term("type", int(expr.value), int(expr.value)))
            case ir.Special(name=name):
                return self.add(replace(unknown, kind="leaf", name=f"st.{name}"))
            case ir.Extent(array=array):
                return self.of_array(function, array, unknown, "length", depth)
            case ir.Load(array=array, type=type) if type == array_types(function)[array].element:
                return self.of_array(function, array, unknown, "values", depth)
            case ir.Reg(name=name):
                return self.register(function, name, unknown, depth)
            case ir.Component(value=value) | ir.Shuffle(value=value):
                return self.value(function, value, depth + 1)
            case ir.Op():
                return self.operation(function, expr, unknown, depth)
        return self.add(unknown)

    def operation(self, function: ir.Function, op: ir.Op, unknown: Term, depth: int) -> int:
        """Return the term of an operation; of a conditional expression, one of its arms."""
        kind = "cast" if op.name.startswith("cast_") else "join" if op.name == "select" else op.name
        operands = tuple(self.value(function, arg, depth + 1) for arg in op.args[kind == "join" :])
        is_whole = all(self.terms[operand] != _ANY for operand in operands)
        if not is_whole or (kind != "join" and kind not in OPERATIONS):
            return self.add(unknown)
        return self.add(replace(unknown, kind=kind, operands=operands))

    def register(self, function: ir.Function, name: str, unknown: Term, depth: int) -> int:
        """Return the join of the values assigned to a register."""
        key = function.name, name
        if key in self.registers:
            return self.registers[key]
        # The place is known before the operands: a value may depend on itself.
        position = self.registers[key] = len(self.terms)
        self.terms.append(unknown)
        operands = [self.value(function, value, depth + 1) for value in self.assigned[key]]
        position_of = {param.name: at for at, param in enumerate(function.params)}
        if name in position_of and function is self.kernel:
            operands.append(self.add(replace(unknown, kind="leaf", name=name)))
        elif name in position_of:
            arguments = [(caller, call.args[position_of[name]]) for caller, call in self.callers[function.name]]
            operands += [self.value(caller, argument, depth + 1) for caller, argument in arguments]
        if operands:
            self.terms[position] = replace(unknown, kind="join", operands=tuple(operands))
        return position

    def of_array(self, function: ir.Function, array: str, unknown: Term, what: str, depth: int) -> int:
        """Return the term of the length of an array, or of its elements. Only those of the launch and of tables are known."""
        if (function.name, array) in self.tables and what == "values":
            values = [int(value) for value in self.tables[function.name, array]]
            return self.add(Term("type", min(values), max(values)))
        position_of = {param.name: at for at, param in enumerate(function.params)}
        if array not in position_of or depth >= MAX_DEPTH:
            return self.add(unknown)
        if function is self.kernel:
            return self.add(replace(unknown, kind="leaf", name=f"{what}({array})"))
        arguments = [(caller, call.args[position_of[array]]) for caller, call in self.callers[function.name]]
        operands = tuple(
            self.of_array(caller, argument.name, unknown, what, depth + 1)
            for caller, argument in arguments
            if isinstance(argument, ir.ArrayRef)
        )
        return self.add(replace(unknown, kind="join", operands=operands)) if operands else self.add(unknown)


_ANY = Term("type", -(1 << 128), 1 << 128)
"""A value that is no integer, such as a float: a conversion of it has any value of its type."""
