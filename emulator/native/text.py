"""LLVM IR of a native function: scalar variables, plain jumps, no bounds checks."""

from dataclasses import dataclass

from ..ir import counting
from ..ir import nodes as ir
from ..ir.walk import statements
from ..language.types import BOOL, I64, Array, Scalar
from ..llvm.builder import FunctionBuilder, literal, memory_type, quoted, scalar_type
from ..llvm.casts import extended
from ..llvm.compiler import NATIVE, ModuleText
from ..llvm.operations import operation
from ..llvm.values import Value, number
from .lowering import stored_arrays


def module(function: ir.Function) -> ModuleText:
    """Return the module of a function."""
    printer = _Printer(function)
    printer.function()
    builder = printer.builder
    result = "void" if function.result is None else memory_type(_scalar(function.result))
    own = [
        f"; {function.name}",
        *printer.tables,
        f"define {result} @{NATIVE}({', '.join(printer.parameters())}) nounwind {{\n.entry:",
        *builder.slots,
        *builder.lines,
        "}",
    ]
    return ModuleText("\n".join(own), {}, sorted(builder.declared), "")


@dataclass(frozen=True)
class _JumpTargets:
    """Jump targets of a loop or an inlined call."""

    out: str
    again: str = ""  # empty for a call


class _Printer:
    def __init__(self, function: ir.Function) -> None:
        self.kernel = function
        self.builder = FunctionBuilder()
        self.tables: list[str] = []  # constants of the module
        self.arrays: dict[str, tuple[str, Scalar]] = {}
        self.cells: dict[str, tuple[str, Scalar]] = {}  # of registers; LLVM promotes them to SSA values
        self.loops: list[_JumpTargets] = []
        self.frames: list[_JumpTargets] = []

    # -------------------------------------------------------------- the function
    def parameters(self) -> list[str]:
        stored = stored_arrays(self.kernel)
        result = []
        for number_, param in enumerate(self.kernel.params):
            if isinstance(param.type, Array):
                result.append(f"ptr noalias {'' if param.name in stored else 'readonly '}%.given{number_}")
            else:
                result.append(f"{memory_type(_scalar(param.type))} %.given{number_}")
        return result

    def function(self) -> None:
        builder = self.builder
        builder.reserve(*(f".given{n}" for n in range(len(self.kernel.params))))
        for number_, param in enumerate(self.kernel.params):
            value = f"%.given{number_}"
            if isinstance(param.type, Array):
                self.arrays[param.name] = value, _scalar(param.type.element)
                continue
            type = _scalar(param.type)
            self.assign(ir.Reg(param.name, type, param.span), self._loaded(type, value))
        for stmt in statements(self.kernel.body):
            if isinstance(stmt, ir.Alloc) and stmt.type.space != "register":
                self._allocate(stmt)
        if self.body(self.kernel.body):
            builder.do("ret void" if self.kernel.result is None else "unreachable")

    def _allocate(self, stmt: ir.Alloc) -> None:
        element, length = _scalar(stmt.type.element), stmt.type.length
        kind = f"[{length} x {memory_type(element)}]"
        if stmt.array in self.arrays:
            return
        if stmt.type.space == "constant":
            name = f"@{quoted(stmt.array)}.{len(self.tables)}"
            values = ", ".join(f"{memory_type(element)} {_in_memory(v, element)}" for v in stmt.values)
            self.tables.append(f"{name} = internal constant {kind} [{values}], align 64")
        else:
            name = self.builder.slot(kind, stmt.array)
        self.arrays[stmt.array] = name, element

    # -------------------------------------------------------------- statements
    def body(self, body: ir.Body) -> bool:
        """Print statements. Return whether control continues after them."""
        return all(self.statement(stmt) for stmt in body)

    def statement(self, stmt: ir.Stmt) -> bool:
        builder = self.builder
        match stmt:
            case ir.Let(target=target, value=ir.Load() as load):
                loaded = self.load(load)
                if isinstance(target, ir.Reg):
                    self.assign(target, loaded)
            case ir.Let(target=ir.Reg() as target, value=value):
                self.assign(target, self.value(value))  # type: ignore[arg-type]
            case ir.Store():
                pointer, element = self.element(stmt.array, stmt.index)
                builder.store(memory_type(element), self._stored(self.value(stmt.value)), pointer, element.size)
            case ir.If():
                return self.branch(stmt)
            case ir.While() | ir.For():
                self.loop(stmt)
            case ir.Frame():
                self.frames.append(_JumpTargets(builder.label("returned")))
                if self.body(stmt.body):
                    builder.jump(self.frames[-1].out)
                builder.place(self.frames.pop().out)
            case ir.Break():
                builder.jump(self.loops[-1].out)
                return False
            case ir.Continue():
                builder.jump(self.loops[-1].again)
                return False
            case ir.Return():
                self.leave(stmt)
                return False
            case ir.Alloc() | ir.Check():
                pass  # allocated at the start; bounds are not checked
            case _:
                raise TypeError(f"{type(stmt).__name__} in a native function")
        return True

    def leave(self, stmt: ir.Return) -> None:
        if self.frames:
            self.builder.jump(self.frames[-1].out)
        elif stmt.value is None:
            self.builder.do("ret void")
        else:
            self.builder.do(f"ret {memory_type(_scalar(stmt.value.type))} {self._stored(self.value(stmt.value))}")

    def branch(self, stmt: ir.If) -> bool:
        builder = self.builder
        then, orelse, on = builder.label("then"), builder.label("else"), builder.label("on")
        builder.branch(self.value(stmt.cond).ref, then, orelse)
        continues = False
        for label, body in ((then, stmt.then), (orelse, stmt.orelse)):
            builder.place(label)
            if self.body(body):
                builder.jump(on)
                continues = True
        if continues:
            builder.place(on)
        return continues

    def loop(self, stmt: ir.While | ir.For) -> None:
        builder = self.builder
        head, body, again, out = (builder.label(word) for word in ("loop", "turn", "again", "out"))
        if isinstance(stmt, ir.For):
            self.assign(stmt.var, self.value(stmt.start))
        builder.jump(head)
        builder.place(head)
        if isinstance(stmt, ir.While):
            self.body(stmt.setup)
            condition = self.value(stmt.cond)
        else:
            condition = self.value(counting.test(stmt))
        builder.branch(condition.ref, body, out)
        builder.place(body)
        self.loops.append(_JumpTargets(out, again))
        if self.body(stmt.body):
            builder.jump(again)
        self.loops.pop()
        builder.place(again)
        if isinstance(stmt, ir.For):
            self.assign(stmt.var, self.value(counting.moved(stmt)))
        builder.jump(head)
        builder.place(out)

    # -------------------------------------------------------------- registers and memory
    def assign(self, target: ir.Reg, value: Value) -> None:
        type = _scalar(target.type)
        if target.name not in self.cells:
            self.cells[target.name] = self.builder.slot(scalar_type(type), target.name), type
        self.builder.store(scalar_type(type), value.ref, self.cells[target.name][0])

    def element(self, array: str, index: ir.Expr) -> tuple[str, Scalar]:
        """Return the address of an element, and its type."""
        base, type = self.arrays[array]
        at = extended(self.builder, self.value(index), I64).ref
        return self.builder.element(memory_type(type), base, at), type

    def load(self, load: ir.Load) -> Value:
        pointer, type = self.element(load.array, load.index)
        return self._loaded(type, self.builder.load(memory_type(type), pointer, load.array, type.size))

    def _loaded(self, type: Scalar, ref: str) -> Value:
        """Return a value loaded from memory, where a bool is a byte."""
        return Value(type, self.builder.let(f"icmp ne i8 {ref}, 0", "truth") if type is BOOL else ref)

    def _stored(self, value: Value) -> str:
        return self.builder.let(f"zext i1 {value.ref} to i8", "byte") if value.type is BOOL else value.ref

    # -------------------------------------------------------------- expressions
    def value(self, expr: ir.Expr) -> Value:
        match expr:
            case ir.Const():
                return number(expr.value, expr.type)
            case ir.Reg():
                cell, kind = self.cells[expr.name]
                return Value(kind, self.builder.load(scalar_type(kind), cell, expr.name))
            case ir.Op():
                return operation(self.builder, expr, [self.value(a) for a in expr.args])
        raise TypeError(f"{type(expr).__name__} in a native function")


def _scalar(type: object) -> Scalar:
    assert isinstance(type, Scalar)
    return type


def _in_memory(value: bool | int | float, type: Scalar) -> str:
    return str(int(value)) if type is BOOL else literal(value, type)
