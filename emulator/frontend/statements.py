"""Reading of Python statements as IR statements. Errors are recorded, and reading continues with the next statement."""

import ast
from contextlib import suppress

from ..ir import nodes as ir
from ..ir.effects import MBARRIER_OPS
from ..ir.names import Name
from ..ir.walk import expressions
from ..language.types import BOOL, I32, I64, Scalar, Vector
from ..language.types import Value as ValueType
from ..span import Span
from . import arrays, calls, complex_numbers, host_calls, printing, records, struct_arrays, typing
from .advice import advice_for, cast_of, exchange
from .branches import BranchReader
from .constants import Literal, Tuple
from .constructs import construct_name, refused
from .expressions import BINARY, COMPONENTS
from .inference import IsWhole, roots
from .values import (
    NOTHING,
    AlreadyReported,
    ArrayValue,
    Choice,
    Host,
    SourceError,
    Struct,
    StructArray,
    StructElement,
    TypeConflict,
    Value,
    describe,
    element_advice,
    written,
)

MAX_SHOWN_VALUES = 8
"""Maximum values of a condition in the finding of an assertion."""


def _is_condition(expr: ir.Expr) -> bool:
    """Return whether an expression is a generated register of a condition, such as that of `and`."""
    return isinstance(expr, ir.Reg) and expr.type == BOOL and Name.parse(expr.name).temporary


class StatementReader(BranchReader):
    """Reader of the statements of one function."""

    result: ValueType | records.RecordType | None = None

    # -------------------------------------------------------------- plain
    def _Pass(self, node: ast.Pass) -> None:
        pass

    def _Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return
        before = len(self.body)
        if self.program.host_calls and isinstance(node.value, ast.Call) and self._host_call(node.value):
            return
        value = self.value(node.value)
        if value is NOTHING or isinstance(node.value, ast.NamedExpr):
            return
        last = self.own_let(value) if len(self.body) > before else None
        if last is None or not isinstance(last.value, ir.Effect):
            raise SourceError(self.span(node), "this expression has no effect", _intended(node.value))
        if not (isinstance(last.value, ir.Atomic) and last.value.op in MBARRIER_OPS):  # their checker reads the result
            self.body[-1] = ir.Let(None, last.value, last.span)

    def _host_call(self, node: ast.Call) -> bool:
        """Emit a call of a Python function; return False for a call of the language. A `print` outside of the language is Python's."""
        target = host_calls.called(self, node)
        if target is print:
            before, progress = len(self.body), self.program.progress()
            try:
                self.value(node)
                return True
            except (SourceError, AlreadyReported):
                del self.body[before:]
                self.program.restore(progress)
        elif not host_calls.is_host_call(self, node, target):
            return False
        self.emit(ir.HostCall(ast.unparse(node), self.span(node)))
        return True

    def _Assert(self, node: ast.Assert) -> None:
        span = self.span(node)
        condition = self.value(node.test)
        if isinstance(condition, Literal) and condition.value:
            return
        with self.arm() as effects:
            items = () if node.msg is None else printing.items(self, node.msg, "an assertion's message")
        text = "".join(item for item in items if isinstance(item, str))
        if isinstance(condition, Literal):
            plain = self.span(node.msg).text if node.msg is not None and len(items) > 1 else text
            raise SourceError(span, f"assertion failed at compile time{': ' if plain else ''}{plain}")
        test = self.truth(condition, self.span(node.test))
        shown = self._shown(node.test, test)
        if all(isinstance(item, str) for item in items):
            self.emit(ir.Assert(test, text, span, shown=shown))
            return
        # The values of the message are computed where the condition fails.
        effects.append(ir.Assert(ir.Const(False, BOOL, span), "", span, items=items, shown=shown))
        self.emit(ir.If(ir.Op("not", (test,), BOOL, span), tuple(effects), (), span))

    def _shown(self, node: ast.expr, test: ir.Expr) -> tuple[ir.Expr, ...]:
        """Return the numbers in a condition that have a name or a source text: variables, indices, loaded elements."""
        inside = (test, *expressions(test))
        leaves: list[ir.Expr] = [e for e in inside if isinstance(e, ir.Reg | ir.Special | ir.Component)]
        names = {n.id: n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in {*self.names, *self.types}}
        for name in names.values():
            with suppress(SourceError, AlreadyReported):
                value = self.value(name)
                if isinstance(value, ir.Reg | Literal) and not isinstance(getattr(value, "value", 0), complex):
                    leaves.append(typing.expression(value, self.span(name)))
        texts = {e.span.text: e for e in leaves if isinstance(e.type, Scalar) and not _is_condition(e)}
        ordered = sorted(texts.values(), key=lambda e: (e.span.line, e.span.column))
        return tuple(ordered[:MAX_SHOWN_VALUES])

    def _Return(self, node: ast.Return) -> bool:
        span = self.span(node)
        if self.result is None:
            if node.value is not None:
                raise SourceError(
                    span, "this function returns nothing", "annotate its result, or store the value in an array"
                )
            self.emit(ir.Return(None, span))
            return False
        if node.value is None:
            raise SourceError(span, f"this function returns {self.result}", "write return and the value")
        if isinstance(self.result, records.RecordType):
            whole = records.converted(self.value(node.value), self.result, self.span(node.value), "the result")
            values = tuple(typing.expression(leaf, span) for leaf in records.leaves(whole))
            self.emit(ir.Return(ir.Pack(values, records.results(self.result), span), span))  # type: ignore[arg-type]
        else:
            self.emit(ir.Return(self.convert(node.value, self.result, "the result"), span))
        return False

    # -------------------------------------------------------------- assignment
    def _Assign(self, node: ast.Assign) -> None:
        first = node.targets[0]
        if len(node.targets) == 1 and isinstance(first, ast.Name) and self._declares(first, node.value):
            return
        if self.swaps.swap(node, self.emit, self.span(node)):
            return
        value = self.value(node.value)
        if len(node.targets) > 1:  # the value may depend on the first target
            value = self.snapshot(value, self.span(node.value))
            self.fresh = None
        for target in node.targets:
            self.assign(target, value, self.span(node))

    def _declares(self, target: ast.Name, value: ast.expr) -> bool:
        if not isinstance(value, ast.Call):
            return False
        called = self.value(value.func)
        array = calls.declared(self, target.id, value, called.object) if isinstance(called, Host) else None
        if array is None:
            return False
        if target.id in self.names or target.id in self.types:
            raise SourceError(self.span(target), f"{target.id} is already in use", "give each array a name of its own")
        self.names[target.id] = self.swaps.declared(target.id, array, self.emit, self.span(target))
        return True

    def _AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            raise SourceError(self.span(node), "a variable is declared by its first value", "write: name: type = value")
        if not isinstance(node.target, ast.Name):
            raise SourceError(self.span(node.target), "only a variable can be annotated", "leave the annotation out")
        type = self.type_of(node.annotation)
        self.assign(node.target, self.convert(node.value, type, node.target.id), self.span(node))

    def _AugAssign(self, node: ast.AugAssign) -> None:
        kind, span = type(node.op), self.span(node)
        if kind not in BINARY:
            raise refused(node.op, span)
        target_span, right_span = self.span(node.target), self.span(node.value)
        if isinstance(node.target, ast.Subscript) and isinstance(array := self.value(node.target.value), ArrayValue):
            arrays.refuse_slice(array, node.target.slice, target_span)
            index = self.index(array, node.target.slice)
            if array.type.space != "register":
                index = arrays.evaluate_once(self, array, index, target_span)
            old = self.element(array, index, target_span)
            right = self.value(node.value)
            self.store(
                array, index, self.arithmetic(kind, old, right, span, target_span, right_span), span, target_span
            )
            return
        element = self.struct_element(node.target) if isinstance(node.target, ast.Attribute) else None
        if isinstance(element, tuple):
            array, element_index = element
            old = self.element(array, arrays.index(self, array, element_index), target_span)
            new = self.arithmetic(kind, old, self.value(node.value), span, target_span, right_span)
            self.store(array, arrays.index(self, array, element_index), new, span, target_span)
            return
        left = self.value(ast.copy_location(_loaded(node.target), node.target))
        self.assign(
            node.target, self.arithmetic(kind, left, self.value(node.value), span, target_span, right_span), span
        )

    def assign(self, target: ast.expr, value: Value, span: Span) -> None:
        """`target = value`."""
        target_span = self.span(target)
        match target:
            case ast.Name():
                self._assign_name(target, value, span)
            case ast.Subscript():
                owner = self.value(target.value)
                if isinstance(owner, StructArray):
                    self._store_struct(struct_arrays.subscript(self, owner, target.slice), value, span, target_span)
                    return
                complex_numbers.refuse_components(owner, target_span)
                if isinstance(owner, ir.Expr) and isinstance(owner.type, Vector):
                    self._assign_component(self._component_of(target, owner.type), value, span)
                    return
                if not isinstance(owner, ArrayValue):
                    raise SourceError(
                        target_span,
                        f"{describe(owner)} cannot be assigned by index",
                        "write v.x = ... for a vector's component",
                    )
                arrays.refuse_slice(owner, target.slice, target_span)
                self.store(owner, self.index(owner, target.slice), value, span, target_span)
            case ast.Attribute():
                element = self.struct_element(target)
                if element is None:
                    self._assign_component(target, value, span)
                else:
                    self._store_struct(element, value, span, target_span)
            case ast.Tuple() | ast.List():
                value = records.as_tuple(value, span)
                if not isinstance(value, Tuple) or len(value.items) != len(target.elts):
                    raise SourceError(
                        span, f"{len(target.elts)} values are expected here, this is {describe(value)}", _ONE_EACH
                    )
                # All right sides are read before any name changes.
                items = [self.snapshot(v, span) for v in value.items]
                for name, item in zip(target.elts, items, strict=True):
                    self.assign(name, item, span)
            case _:
                raise SourceError(
                    target_span, f"{construct_name(target)} cannot be assigned", "assign a variable or an element"
                )

    def _store_struct(
        self,
        element: StructElement | StructArray | tuple[ArrayValue, arrays.EvaluatedIndex],
        value: Value,
        span: Span,
        target_span: Span,
    ) -> None:
        """Store into an element of an array of structs, field by field in order, or into one field."""
        if isinstance(element, tuple):
            array, index = element
            self.store(array, arrays.index(self, array, index), value, span, target_span)
            return
        if isinstance(element, StructArray):
            raise SourceError(
                target_span, f"this is a view of an array of {element.type}", "store one element at a time"
            )
        leaves = records.leaves(records.converted(value, element.array.type, span, "the element"))
        snapshot = [self.snapshot(leaf, span) for leaf in leaves]
        for array, leaf in zip(struct_arrays.leaves(element.array), snapshot, strict=True):
            self.store(array, arrays.index(self, array, element.index), leaf, span, target_span)

    def store(self, array: ArrayValue, index: ir.Expr, value: Value, span: Span, target_span: Span) -> None:
        if array.type.space == "constant":
            advice = "use st.shared(...) or st.local(...) for what changes"
            raise SourceError(target_span, f"{array.name} is constant", advice)
        result = typing.converted(value, array.type.element, span, f"{array.name}'s element")
        if array.type.space == "register":
            self.emit(ir.Let(ir.Item(array.name, index, array.type.element, target_span), result, span))
        else:
            self.emit(ir.Store(array.name, index, result, target_span, block=array.block))

    def _assign_name(self, target: ast.Name, value: Value, span: Span) -> None:
        name = target.id
        if name in self.active:
            raise SourceError(
                self.span(target),
                f"{name} is a loop variable: a loop does not see it change",
                "copy it first, or use while",
            )
        if name in self.names and not (isinstance(self.names[name], ir.Reg | Literal | Tuple | Struct)):
            is_exchange = isinstance(value, ArrayValue) and value.shown != name
            advice = self._exchange(name) if is_exchange else "use another name"
            raise SourceError(self.span(target), f"{name} is already {describe(self.names[name])}", advice)
        if isinstance(value, StructArray) or (isinstance(value, ArrayValue) and value.is_view):
            self._name_view(name, value, span)
            return
        if name in self.bundles or (isinstance(value, Tuple | Struct) and not self._is_constant(name, value)):
            self._assign_record(target, value, span)
            return
        if isinstance(value, ArrayValue | Host):
            advice = self._exchange(value.shown) if isinstance(value, ArrayValue) else advice_for(value)
            raise SourceError(span, f"a variable holds a number or a vector, this is {describe(value)}", advice)
        if isinstance(value, Literal | Tuple) and name in self.once and not {name} & {*self.names, *self.types}:
            self.names[name] = value  # never changes: known at compile time
            self.assigned.add(name)
            return
        assert not isinstance(value, Tuple | Struct)
        parameter = self.names.get(name)
        if name not in self.types and isinstance(parameter, ir.Reg):
            register, result = parameter.name, self._as_type(name, parameter, value, span)
        elif name in self.types:
            variable = ir.Reg(self.register(name), self.types[name], span)
            register, result = variable.name, self._as_type(name, variable, value, span)
            self.assigned.add(name)
            self._note_number(name, register, result)
        else:
            register, result = self._first_value(name, value, span)
        self.unresolved.discard(name)
        assigned = ir.Reg(register, result.type, self.span(target))
        if (last := self.own_let(result)) is not None:  # an effect directly into its variable
            self.body[-1] = ir.Let(assigned, last.value, span)
        else:
            self.emit(ir.Let(assigned, result, span))

    def _exchange(self, name: str) -> str:
        """Return the hint for an array that is assigned to a name."""
        arrays = [other for other, value in self.names.items() if isinstance(value, ArrayValue)]
        return exchange(self.source.tree, arrays, name)

    def _as_type(self, name: str, variable: ir.Reg, value: Value, span: Span) -> ir.Expr:
        """Return the value for a variable with a type."""
        result = typing.expression(value, span, variable.type)
        if result.type != variable.type:
            start = self.floats.get(variable.name)
            if start is not None and start.is_read and isinstance(result.type, Scalar) and result.type.is_integer:
                raise IsWhole(variable.name)
            cast_text = cast_of(variable.type, result.type, result.span)
            advice = f"write {cast_text} here, or start {name} as {written(result.type)}(...)"
            message, pairs = (
                f"{name} is {variable.type}, this is {result.type}",
                ((variable, result.type), (result, variable.type)),
            )
            raise TypeConflict(span, message, advice, pairs=pairs)
        return result

    def _first_value(self, name: str, value: Value, span: Span) -> tuple[str, ir.Expr]:
        """Return the register of a new variable, and its first value, which decides the type."""
        register = self.new_register(name, "plain", None)
        literal = isinstance(value, Literal | Choice)
        result = typing.expression(value, span, self.decided.get(register) if literal else None)
        softly = frozenset({register}) if literal else roots(result, self.soft)
        if softly and register not in self.decided:
            self.soft[register] = softly
        self.registers[register] = "plain", result.type
        self.types[name] = result.type
        if register != name:
            self.renamed[name] = register
        self.assigned.add(name)
        if name in self.once:
            if result.type in (I32, I64) and self.is_fixed(result):
                self.fixed.add(name)
            self._note_number(name, register, result)
            self.launch_known.add_variable(register, result)
            if self.is_positive(result):
                self.positive.add(name)
        return register, result

    def _note_number(self, name: str, register: str, result: ir.Expr) -> None:
        """Record the constant value of a variable, in one iteration of an expanded loop."""
        number = self.number_of(result) if name in self.once and result.type in (I32, I64) else None
        self.numbers.pop(register, None)
        if number is not None:
            self.numbers[register] = number

    def _is_constant(self, name: str, value: Value) -> bool:
        """Return whether a tuple and its variable are known at compile time."""
        is_literal = all(isinstance(leaf, Literal | Host) for leaf in records.leaves(value))
        return is_literal and isinstance(value, Tuple) and name in self.once and name not in self.names

    def _assign_record(self, target: ast.Name, value: Value, span: Span) -> None:
        """Assign a tuple or a struct: each component has its own register."""
        name, target_span = target.id, self.span(target)
        if name in self.types or (name in self.names and name not in self.bundles):
            current = self.types.get(name) or describe(self.names[name])
            raise SourceError(span, f"{name} is {current}, this is {describe(value)}", "use another name")
        if name not in self.bundles:
            register = self.new_register(name, "plain", None)
            type = records.type_of(value, span)
            records.refuse_arrays(type, span)
            self.bundles[name] = register, type
        register, type = self.bundles[name]
        leaves = records.leaves(records.converted(value, type, span, name))
        if name in self.names:  # the components may depend on each other
            leaves = [self.snapshot(leaf, span) for leaf in leaves]
        registers = []
        for own, leaf in zip(records.leaf_names(register, type), leaves, strict=True):
            assert isinstance(leaf, ir.Expr)
            registers.append(ir.Reg(own, leaf.type, target_span))
            self.emit(ir.Let(registers[-1], leaf, span))
        self.names[name] = records.filled(type, iter(registers))
        self.assigned.add(name)
        self.unresolved.discard(name)

    def _name_view(self, name: str, view: ArrayValue | StructArray, span: Span) -> None:
        if name not in self.once or name in self.types:
            advice = "name each view once"
            if isinstance(view, ArrayValue) and view.brackets is not None and view.brackets.is_row:
                advice = f"{element_advice(view, view.brackets)}; or {advice}"
            raise SourceError(span, f"{name} is given more than one value, a view among them", advice)
        self.fresh = None  # the view's extents are registers
        self.names[name] = struct_arrays.renamed(view, name)
        self.assigned.add(name)

    def _component_of(self, target: ast.Subscript, vector: Vector) -> ast.Attribute:
        """`v[1]` as `v.y`."""
        at = self.constant_int(target.slice, "a vector's index")
        if not 0 <= at < vector.lanes:
            advice = f"its last index is {vector.lanes - 1}"
            raise SourceError(self.span(target.slice), f"{vector} has {vector.lanes} components", advice)
        return ast.copy_location(ast.Attribute(target.value, COMPONENTS[at], ast.Store()), target)

    def _assign_component(self, target: ast.Attribute, value: Value, span: Span) -> None:
        target_span = self.span(target)
        owner = self.value(target.value)
        if isinstance(owner, Struct):
            fields = ", ".join(name for name, _ in owner.type.fields)
            raise SourceError(
                target_span, f"the fields of a {owner.type} do not change", f"create a new one: {owner.type}({fields})"
            )
        if not (isinstance(owner, ir.Reg) and isinstance(owner.type, Vector) and isinstance(target.value, ast.Name)):
            raise SourceError(
                target_span,
                "only a component of a variable can be assigned",
                "change a copy, then store the whole vector",
            )
        complex_numbers.refuse_components(owner, target_span)
        vector, at = owner.type, COMPONENTS.find(target.attr)
        if not (len(target.attr) == 1 and 0 <= at < vector.lanes):
            components = ", ".join(COMPONENTS[: vector.lanes])
            raise SourceError(target_span, f"{vector} has no component {target.attr}", f"write {components}")
        new = typing.converted(value, vector.element, span, f"a component of {vector}")
        values = tuple(
            new if i == at else self.component(owner, ir.Const(i, I32, target_span), target_span)
            for i in range(vector.lanes)
        )
        self.emit(ir.Let(ir.Reg(owner.name, vector, target_span), ir.Pack(values, vector, target_span), span))


def _loaded(target: ast.expr) -> ast.expr:
    """Return the target of an augmented assignment as an expression to read."""
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    if isinstance(target, ast.Subscript):
        return ast.Subscript(target.value, target.slice, ast.Load())
    assert isinstance(target, ast.Attribute)
    return ast.Attribute(target.value, target.attr, ast.Load())


_ONE_EACH = "write as many values as names"


def _intended(node: ast.expr) -> str:
    """Return the likely intention of an expression without effect."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        return "write i += 1 or i -= 1"
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
        return "write = to assign"
    return "assign it to a variable, or remove it"
