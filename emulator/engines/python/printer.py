"""Functions of the IR as Python functions at the lines of their source.

Debuggers see the user's file, lines, names and globals. A local variable whose name has an `@` is not the user's. A function
with an operation for which threads wait is a generator (`threads`): it yields the operation's position, the operation and its operands.
"""

import ast
import inspect
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from ...ir import counting
from ...ir import nodes as ir
from ...ir.access import open_dimensions, shown_dimensions
from ...ir.effects import PLAIN_ORDERS, TABLE, performed
from ...ir.names import variable_of_value
from ...ir.walk import bodies, expressions, statements
from ...ir.wide import access_type, width
from ...language.intrinsics import WARP_SIZE
from ...language.types import Array, Vector
from ...sanitizer import barriers
from ...span import Span
from . import access, trees
from .expressions import (
    THREAD,
    Expressions,
    Record,
    attribute,
    call,
    field_of,
    flat,
    item,
    name,
    pack,
    packed,
    target,
    zero,
)
from .operations import OPERATIONS, Iteration, WarpOperation
from .rules import Rules
from .trees import (
    assigned_register,
    attribute_target,
    attributes_of,
    counter_of,
    expression_of,
    loop_numbers,
)  # fmt: skip

POSITION, FINDING = "@position", "@finding"
OF_BLOCK, OF_BLOCK_SET = "@of_block", "@of_block@set"
"""Local variables with an array of another block of the cluster, and its flags."""


def written_flags(array: str) -> str:
    """Return the name of the local variable with the flags of an array's written elements. Its value is None without tracking."""
    return f"{array}@set"


class FunctionPrinter(Expressions):
    """Printer of one function. functions: the Python functions printed before, by name. waits: whether the function is a generator.
    frames: number of inlined calls around the current statement."""

    def __init__(self, function: ir.Function, rules: Rules, functions: Mapping[str, Any]) -> None:
        super().__init__()
        self.function, self.rules, self.functions = trees.numbered(function), rules, functions
        self.spaces = {p.name: p.type for p in function.params if isinstance(p.type, Array)}
        self.spaces |= {s.array: s.type for s in statements(function.body) if isinstance(s, ir.Alloc)}
        parameters = {p.name for p in self.function.params if not isinstance(p.type, Array)}
        registers = map(assigned_register, statements(self.function.body))
        self.overwritten = parameters & {variable_of_value(one.name) for one in registers if one is not None}
        self.prefix: list[ast.expr] = []
        self.is_kernel = True
        self.frames = 0
        self.waits = any(map(self.holds_wait, self.function.body))

    # -------------------------------------------------------------- the function
    def compiled(self, kernel: bool) -> FunctionType:
        """Return the Python function. Parameters: thread, position of the call unless it is the kernel, then those of the function;
        of an array its memory and its flags, and in the kernel also its form in the host's program."""
        self.is_kernel = kernel
        parameters = [THREAD] if kernel else [THREAD, POSITION]
        for param in self.function.params:
            if isinstance(param.type, Array):
                shown = [] if not kernel or "@" in param.name else [param.name]
                parameters += [flat(param.name), written_flags(param.name), *shown]
            else:
                parameters.append(self.local(param.name))
        body = self.overwritten_parameters() + self.constant_variables(parameters)
        body += ([] if kernel else self.shown_arrays()) + self.records()
        body += self.body(self.function.body)
        args = ast.arguments([], [ast.arg(p) for p in parameters], None, [], [], None, [])
        tree = ast.FunctionDef(self.function.name, args, body or [ast.Pass()], [], None, None)
        if "type_params" in ast.FunctionDef._fields:  # from Python 3.12 on
            vars(tree)["type_params"] = []
        self.at(tree, self.function.span)
        code = self.constants.compiled(tree, self.function.span.file)
        host = self.function.host
        space = {"__name__": "__main__"} if host is None else host.function.__globals__
        return FunctionType(code, space, self.function.name)

    def constant_variables(self, parameters: list[str]) -> list[ast.stmt]:
        """Return the assignments of values known at compile time, for debuggers and calls of Python."""
        constants = {} if self.function.host is None else self.function.host.constants
        values = {n: v for n, v in constants.items() if n not in parameters}
        return [self.at(ast.Assign([target(n)], self.constants.node(v)), self.function.span) for n, v in values.items()]

    def shown_arrays(self) -> list[ast.stmt]:
        """Return the assignments of parameters that are arrays, for debuggers."""
        arrays = [p.name for p in self.function.params if isinstance(p.type, Array) and "@" not in p.name]
        return [self.at(ast.Assign([target(a)], name(flat(a))), self.function.span) for a in arrays]

    def records(self) -> list[ast.stmt]:
        """Return the assignments of the variables that are tuples or structs, with the fields of parameters."""
        targets = [s.target for s in statements(self.function.body) if isinstance(s, ir.Let)]
        registers = [p.name for p in self.function.params if not isinstance(p.type, Array)]
        names = [*registers, *(one.name for one in targets if isinstance(one, ir.Reg))]
        fields = [record for record in map(field_of, names) if record is not None]
        paths = dict.fromkeys((base, *path[:n]) for base, path in fields for n in range(len(path)))
        new: list[ast.stmt] = []
        for base, *path in sorted(paths, key=len):
            owner: ast.expr = target(base) if not path else attribute_target(base, path)
            new.append(ast.Assign([owner], call(self.constants.node(Record))))
        new += [field for register in registers for field in self.field(register)]
        return [self.at(s, self.function.span) for s in new]

    def variable(self, register: str) -> list[ast.stmt]:
        """Return the assignment of the variable of which a register is one value, for debuggers."""
        variable = variable_of_value(register)
        return [] if variable is None else [ast.Assign([target(variable)], name(self.local(register)))]

    def overwritten_parameters(self) -> list[ast.stmt]:
        """Return the assignments of the parameters whose variables have other values later, for debuggers."""
        variables = [ast.Assign([target(one)], name(self.local(one))) for one in sorted(self.overwritten)]
        return [self.at(s, self.function.span) for s in variables]

    def field(self, register: str) -> list[ast.stmt]:
        """Return the assignment of a field of a tuple or a struct, after that of its register."""
        record = field_of(register)
        if record is None:
            return []
        return [ast.Assign([attribute_target(*record)], name(self.local(register)))]

    def at(self, tree: Any, span: Span) -> Any:
        """Return the tree with its nodes at a span, those of statements in it at their own. A span of another file is the function's."""
        file = self.function.span
        place = span if span.file == file.file else file
        source, end_source = place.source, place.source if place.end_line == place.line else ""
        for node in map(attributes_of, ast.walk(tree)):
            if "lineno" in node._attributes and getattr(node, "end_lineno", None) is None:
                node.lineno, node.end_lineno = place.line, place.end_line
                node.col_offset = len(source[: place.column - 1].encode())
                node.end_col_offset = len(end_source[: place.end_column - 1].encode()) if end_source else 0
        return tree

    # -------------------------------------------------------------- waits
    def is_wait(self, stmt: ir.Stmt) -> bool:
        """Return whether threads wait in a statement, without those inside of it."""
        node = performed(stmt)
        if type(stmt) in OPERATIONS or type(node) in OPERATIONS or self.loop_waits(stmt):
            return True
        if isinstance(node, ir.Call):
            return bool(self.functions[node.function].__code__.co_flags & inspect.CO_GENERATOR)
        if isinstance(node, ir.Load | ir.Store):
            shared = self.spaces[node.array].space in ("global", "shared")
            return node.order not in PLAIN_ORDERS or (self.rules.lockstep and shared)
        return False

    def loop_waits(self, stmt: ir.Stmt) -> bool:
        return isinstance(stmt, ir.While) and stmt.span.without_calls in self.rules.waiting

    def holds_wait(self, stmt: ir.Stmt) -> bool:
        return self.is_wait(stmt) or any(self.holds_wait(s) for body in bodies(stmt) for s in body)

    def position(self, stmt: ir.Stmt) -> ast.expr:
        """Return the position of a statement."""
        own = packed(*self.prefix, ast.Constant(stmt.site))
        return own if self.is_kernel else ast.BinOp(name(POSITION), ast.Add(), own)

    def wait(self, stmt: ir.Stmt, operation: Any, *operands: ast.expr) -> ast.expr:
        """Return the expression that waits for an operation; its value is the operation's result."""
        return ast.Yield(packed(self.position(stmt), self.constants.node(operation), packed(*operands)))

    # -------------------------------------------------------------- statements
    def body(self, body: ir.Body) -> list[ast.stmt]:
        return [new for stmt in body for new in self.placed(stmt)]

    def placed(self, stmt: ir.Stmt) -> list[ast.stmt]:
        """Return the Python statements of a statement, at its place."""
        new: list[ast.stmt] = []
        if self.rules.initialised:
            new += self.register_checks(stmt)
        if stmt.span.without_calls in self.rules.progress:
            team = attribute(name(THREAD), "team")
            new.append(ast.Assign([ast.Attribute(team, "idle", ast.Store())], ast.Constant(0)))
        new += self.statement(stmt)
        return [self.at(s, stmt.span) for s in new]

    def statement(self, stmt: ir.Stmt) -> list[ast.stmt]:
        match stmt:
            case ir.Let():
                return self.let(stmt)
            case ir.Store():
                stored = self.access(stmt, stmt, self.stored(stmt))
                return stored if stmt.lanes == WARP_SIZE else self.of_lanes(stmt.lanes, stored, [])
            case ir.Alloc():
                return self.allocation(stmt)
            case ir.If():
                then, orelse = self.body(stmt.then), self.body(stmt.orelse)
                return [ast.If(self.truth(stmt.cond), then or [ast.Pass()], orelse)]
            case ir.While():
                return self.while_loop(stmt)
            case ir.For():
                return self.for_loop(stmt)
            case ir.Break() | ir.Continue():
                return [ast.Break() if isinstance(stmt, ir.Break) else ast.Continue()]
            case ir.Return():
                return [self.returned(stmt)]
            case ir.Frame():
                self.frames += 1
                body = self.body(stmt.body)
                self.frames -= 1
                return [trees.inlined_call(body, self.constants.node(trees.FrameExit))]
            case ir.WarpBarrier():
                return [ast.Expr(self.wait(stmt, OPERATIONS[ir.WarpBarrier](stmt), self.value(stmt.mask)))]
            case ir.Print():
                items = [ast.Constant(i) if isinstance(i, str) else self.value(i) for i in stmt.items]
                return [ast.Expr(self.wait(stmt, OPERATIONS[ir.Print](stmt), *items))]
            case ir.HostCall():
                return [ast.Expr(expression_of(stmt.source))]
            case ir.Assert():
                shown = barriers.asserted_values(stmt)
                return [self.check(self.truth(stmt.cond), access.assertion_failed, stmt, *map(self.value, shown))]
            case ir.Check():
                values = packed(*map(self.value, stmt.shown))
                return [
                    self.finding_check(self.truth(stmt.cond), access.check_failed, self.constants.node(stmt), values)
                ]
        assert isinstance(stmt, ir.Fence | ir.Sleep | ir.AsyncCommit | ir.AsyncWait | ir.AsyncOrder)
        ordered = call(self.constants.node(access.fence), name(THREAD), self.constants.node(stmt))
        return [ast.Expr(ordered) if isinstance(stmt, ir.Fence) else ast.Pass()]  # threads run one after another

    def returned(self, stmt: ir.Return) -> ast.stmt:
        """Return the statement that leaves the function or the inlined call. A thread of a generator reports the position of its end."""
        if self.frames:
            return ast.Raise(self.constants.node(trees.FrameExit), None)
        if stmt.value is not None:
            return ast.Return(self.value(stmt.value))
        return ast.Return(self.position(stmt) if self.is_kernel and self.waits else None)

    def check(self, holds: ast.expr, failed: Any, node: Any, *values: ast.expr) -> ast.stmt:
        """Return the statement that raises a finding unless a condition holds."""
        error = call(self.constants.node(failed), name(THREAD), self.constants.node(node), packed(*values))
        return ast.If(ast.UnaryOp(ast.Not(), holds), [ast.Raise(error, None)], [])

    def finding_check(self, holds: ast.expr, failed: Any, *args: ast.expr) -> ast.stmt:
        """Return the statement that raises a finding unless a condition holds, or a comment allows it: then its exception is None."""
        return ast.If(ast.UnaryOp(ast.Not(), holds), self.raised_finding(failed, *args), [])

    def raised_finding(self, finding: Any, *args: ast.expr) -> list[ast.stmt]:
        """Return the statements that raise the result of a function of the thread, unless it is None."""
        error = ast.Assign([target(FINDING)], call(self.constants.node(finding), name(THREAD), *args))
        is_error = ast.Compare(name(FINDING), [ast.IsNot()], [ast.Constant(None)])
        return [error, ast.If(is_error, [ast.Raise(name(FINDING), None)], [])]

    def let(self, stmt: ir.Let) -> list[ast.stmt]:
        node = stmt.value
        match node:
            case ir.Load():
                element: ast.expr = item(self.memory(node), self.value(node.index))
                if isinstance(node.type, Vector):
                    element = call(self.constants.node(pack(node.type)), element)
                if node.lanes < WARP_SIZE:  # registers of the other lanes are not read
                    others = self.assigned(stmt, self.constants.node(zero(node.type)))
                    return self.of_lanes(node.lanes, self.access(stmt, node, self.assigned(stmt, element)), others)
                return self.access(stmt, node, self.assigned(stmt, element))
            case ir.Atomic() | ir.CompareSwap():
                values = [node.value] if isinstance(node, ir.Atomic) else [node.expected, node.value]
                operands = [self.memory(node), self.value(node.index), *map(self.value, values)]
                result = self.wait(stmt, OPERATIONS[type(node)](node), *operands)
                return self.access(stmt, node, [*self.assigned(stmt, result), *self.marked(node)])
            case ir.Shuffle() | ir.Vote() | ir.Barrier() | ir.Mma() | ir.MoveMatrix():
                operands = [self.value(getattr(node, name)) for name in TABLE[type(node)].operands]
                return self.assigned(stmt, self.wait(stmt, OPERATIONS[type(node)](node), *operands))
            case ir.Clock():
                reading = call(self.constants.node(next), attribute(name(THREAD), "clock"))
                return self.assigned(stmt, call(self.constants.node(node.type.dtype.type), reading))
            case ir.Call():
                return self.call(stmt, node)
        assert isinstance(node, ir.Expr)
        return self.assigned(stmt, self.value(node))

    def of_lanes(self, count: int, effect: list[ast.stmt], others: list[ast.stmt]) -> list[ast.stmt]:
        """Return the statements of the first lanes of a warp, and those of the others."""
        first = ast.Compare(attribute(name(THREAD), "lane"), [ast.Lt()], [ast.Constant(count)])
        return [ast.If(first, effect, others)]

    def assigned(self, stmt: ir.Let, value: ast.expr) -> list[ast.stmt]:
        """Return the assignment of a Let."""
        match stmt.target:
            case None:
                return [ast.Expr(value)]
            case ir.Reg():
                register = stmt.target.name
                assign = ast.Assign([target(self.local(register))], value)
                return [assign, *self.variable(register), *self.field(register), *self.traced(stmt, stmt.target)]
        element = ast.Subscript(name(stmt.target.array), self.value(stmt.target.index), ast.Store())
        flag = ast.Subscript(name(written_flags(stmt.target.array)), self.value(stmt.target.index), ast.Store())
        flags = [ast.Assign([flag], ast.Constant(True))] if self.rules.initialised else []
        return [ast.Assign([element], value), *flags]

    def traced(self, stmt: ir.Let | ir.For, register: ir.Reg) -> list[ast.stmt]:
        """Return the statement that passes the value of a user's variable to the launch."""
        shown = field_of(register.name) or variable_of_value(register.name)
        if not self.rules.traced or ("@" in self.local(register.name) and not shown):
            return []
        function = self.constants.node(access.assigned)
        return [
            ast.Expr(
                call(function, name(THREAD), self.constants.node((stmt, register)), name(self.local(register.name)))
            )
        ]

    def call(self, stmt: ir.Let, node: ir.Call) -> list[ast.stmt]:
        """Return a call, with its span among the thread's calls while it runs."""
        function = self.functions[node.function]
        args: list[ast.expr] = []
        for arg in node.args:
            if isinstance(arg, ir.ArrayRef):
                register = self.spaces[arg.name].space == "register"
                args += [name(arg.name if register else flat(arg.name)), name(written_flags(arg.name))]
            else:
                args.append(self.value(arg))
        waits = self.is_wait(stmt)
        position = self.position(stmt) if waits else packed()
        result: ast.expr = call(self.constants.node(function), name(THREAD), position, *args)
        result = ast.YieldFrom(result) if waits else result
        calls = attribute(name(THREAD), "calls")
        enter = ast.Expr(call(attribute(calls, "append"), self.constants.node(node.span)))
        return [enter, *self.assigned(stmt, result), ast.Expr(call(attribute(calls, "pop")))]

    def allocation(self, stmt: ir.Alloc) -> list[ast.stmt]:
        array = stmt.array
        created = call(self.constants.node(access.allocate), name(THREAD), self.constants.node(stmt))
        memory = ast.Tuple([target(flat(array)), target(written_flags(array))], ast.Store())
        shown: ast.expr = name(flat(array))
        if stmt.type.shape is not None and len(stmt.type.shape) > 1 and not isinstance(stmt.type.element, Vector):
            shown = call(attribute(shown, "reshape"), *map(ast.Constant, stmt.type.shape))
        return [ast.Assign([memory], created), ast.Assign([target(array)], shown)]

    # -------------------------------------------------------------- accesses
    def access(self, stmt: ir.Stmt, node: ir.Access, effect: list[ast.stmt]) -> list[ast.stmt]:
        """Return an access behind the checks of its index."""
        memory, faults = name(flat(node.array)), access.AccessFaults(node, self.spaces[node.array])
        length = self.length(node.array)
        if faults.width > 1:
            length = ast.BinOp(length, ast.FloorDiv(), ast.Constant(faults.width))
        inside = [ast.Compare(ast.Constant(0), [ast.LtE(), ast.Lt()], [self.value(node.index), length])]
        for index, extent in open_dimensions(node):
            limits = [self.value(index), self.value(extent)]
            inside.append(ast.Compare(ast.Constant(0), [ast.LtE(), ast.Lt()], limits))
        shown = packed(*map(self.value, shown_dimensions(node)))
        values = packed(*(name(self.local(register)) for register in faults.registers))
        error = call(
            self.constants.node(faults.out_of_bounds), name(THREAD), memory, self.value(node.index), shown, values
        )
        holds = inside[0] if len(inside) == 1 else ast.BoolOp(ast.And(), list(inside))
        checks: list[ast.stmt] = [ast.If(ast.UnaryOp(ast.Not(), holds), [ast.Raise(error, None)], [])]
        if node.block is not None:
            mapped = call(self.constants.node(access.of_block), name(THREAD), memory, self.value(node.block))
            both = ast.Tuple([target(OF_BLOCK), target(OF_BLOCK_SET)], ast.Store())
            checks.append(ast.Assign([both], mapped))
            memory = name(OF_BLOCK)
        if self.rules.initialised and not isinstance(node, ir.Store):
            flags = name(self.flags(node))
            untracked = ast.Compare(flags, [ast.Is()], [ast.Constant(None)])
            flag: ast.expr = self.flag(node, ast.Load())
            element = self.value(node.index)
            if faults.width > 1:
                flag = call(attribute(flag, "all"))
                element = call(self.constants.node(access.first_unwritten), flags, element, ast.Constant(faults.width))
            written = ast.BoolOp(ast.Or(), [untracked, flag])
            checks.append(self.finding_check(written, faults.uninitialised, memory, element))
        if self.is_wait(stmt) and isinstance(node, ir.Load | ir.Store):
            checks.insert(0, ast.Expr(self.wait(stmt, WarpOperation(node))))
        if not self.rules.recorded:
            return [*checks, *effect]
        value = self.value(node.value) if isinstance(node, ir.Store) else ast.Constant(None)
        recorded = self.raised_finding(access.record, self.constants.node(node), memory, self.value(node.index), value)
        return [*checks, *recorded, *effect] if isinstance(node, ir.Load | ir.Store) else [*checks, *effect, *recorded]

    def stored(self, stmt: ir.Store) -> list[ast.stmt]:
        element = ast.Subscript(self.memory(stmt), self.value(stmt.index), ast.Store())
        return [ast.Assign([element], self.value(stmt.value)), *self.marked(stmt)]

    def memory(self, node: ir.Access) -> ast.expr:
        """Return the memory of an access, in units of the access."""
        memory, type = name(flat(node.array) if node.block is None else OF_BLOCK), access_type(node)
        if type == self.spaces[node.array].element:
            return memory
        return call(self.constants.node(access.as_type(type)), memory)

    def flag(self, node: ir.Access, context: ast.expr_context) -> ast.expr:
        """Return the flag of the element of an access, or the flags of all."""
        index, count = self.value(node.index), width(node, self.spaces[node.array])
        if count > 1:
            index = call(self.constants.node(access.elements), index, ast.Constant(count))
        return ast.Subscript(name(self.flags(node)), index, context)

    def flags(self, node: ir.Access) -> str:
        """Return the variable with the flags of the array of an access."""
        return written_flags(node.array) if node.block is None else OF_BLOCK_SET

    def marked(self, node: ir.Access) -> list[ast.stmt]:
        """Return the statement that marks an element as written."""
        if not self.rules.initialised:
            return []
        flags = name(self.flags(node))
        mark = ast.Assign([self.flag(node, ast.Store())], ast.Constant(True))
        return [ast.If(ast.Compare(flags, [ast.IsNot()], [ast.Constant(None)]), [mark], [])]

    def register_checks(self, stmt: ir.Stmt) -> list[ast.stmt]:
        """Return the checks of the register arrays that a statement reads."""
        checks: list[ast.stmt] = []
        for read in (e for e in expressions(stmt) if isinstance(e, ir.Item)):
            index = self.value(read.index)
            flag = item(name(written_flags(read.array)), index)
            checks.append(
                self.finding_check(flag, access.unassigned, self.constants.node(read), name(read.array), index)
            )
        return checks

    # -------------------------------------------------------------- loops
    def inside_loop(self, loop: ir.While | ir.For, body: ir.Body) -> list[ast.stmt]:
        """Return statements of a loop; the positions inside have its iteration if threads wait in it."""
        before = len(self.prefix)
        self.prefix += [ast.Constant(loop.site), *([name(counter_of(loop))] if self.holds_wait(loop) else [])]
        result = self.body(body)
        del self.prefix[before:]
        return result

    def while_loop(self, loop: ir.While) -> list[ast.stmt]:
        waiting, limit = self.loop_waits(loop), self.rules.limits[1]
        counted = self.holds_wait(loop) or limit is not None
        setup, body = self.inside_loop(loop, loop.setup), self.inside_loop(loop, loop.body)
        leave = ast.If(ast.UnaryOp(ast.Not(), self.truth(loop.cond)), [ast.Break()], [])
        start, iteration = [*setup, leave], self.counting(loop, counted)
        if waiting:
            self.prefix += [ast.Constant(loop.site), name(counter_of(loop))]
            stalls = self.rules.waiting[loop.span.without_calls]
            operation = Iteration(loop, stalls, self.rules.limits[0], self.function)
            start.append(ast.Expr(self.wait(loop, operation, *map(self.value, operation.shown))))
            del self.prefix[-2:]
        first: list[ast.stmt] = [ast.Assign([target(counter_of(loop))], ast.Constant(-1))] if counted else []
        if waiting:
            team = attribute(name(THREAD), "team")
            first.append(ast.Assign([ast.Attribute(team, "idle", ast.Store())], ast.Constant(0)))
        if not (setup or waiting):
            return [*first, ast.While(self.truth(loop.cond), [*iteration, *body] or [ast.Pass()], [])]
        return [*first, ast.While(ast.Constant(True), [*iteration, *start, *body], [])]

    def counting(self, loop: ir.While | ir.For, counted: bool) -> list[ast.stmt]:
        """Return the statements that count an iteration and check its limit."""
        if not counted:
            return []
        counter, limit = counter_of(loop), self.rules.limits[1]
        statements: list[ast.stmt] = [ast.AugAssign(target(counter), ast.Add(), ast.Constant(1))]
        if limit is not None and not self.loop_waits(loop):
            below = ast.Compare(name(counter), [ast.Lt()], [ast.Constant(limit)])
            statements.append(self.check(below, access.endless, (loop, limit)))
        return [self.at(s, loop.span) for s in statements]

    def for_loop(self, loop: ir.For) -> list[ast.stmt]:
        counted = self.holds_wait(loop) or self.rules.limits[1] is not None
        shown = [self.at(s, loop.span) for s in self.variable(loop.var.name)]
        traced = [self.at(s, loop.span) for s in self.traced(loop, loop.var)]
        body = [*self.counting(loop, counted), *shown, *traced, *self.inside_loop(loop, loop.body)]
        dtype = loop.var.type.dtype.type  # type: ignore[union-attr]
        step = ast.Constant(loop.step) if isinstance(loop.step, int) else self.value(loop.step)
        bounds = [self.value(loop.start), self.value(loop.stop), step]
        if counting.direction(loop):
            numbers = call(
                self.constants.node(map), self.constants.node(dtype), call(self.constants.node(range), *bounds)
            )
        else:
            numbers = call(self.constants.node(loop_numbers), self.constants.node(dtype), *bounds)
        first: list[ast.stmt] = [ast.Assign([target(counter_of(loop))], ast.Constant(-1))] if counted else []
        return [*first, ast.For(target(self.local(loop.var.name)), numbers, body or [ast.Pass()], [])]
