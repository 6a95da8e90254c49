"""Lowering of calls: functions, methods, constructors and lambdas in the place of the call; intrinsics by name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, cast

from ..ir import nodes as ir
from ..language.types import Scalar, Vector
from .expressions import Expressions
from .header import operations
from .tree import Function, Node, Variable, is_place
from .types import CType, PointerType, RecordType
from .values import (
    Choice,
    LambdaValue,
    MemoryPlace,
    Place,
    Pointer,
    StructValue,
    ValuePlace,
)

Intrinsic = Callable[["Calls", Node, Sequence[Node], bool], Any]
"""Lowers a call: (lowering, call, arguments, whether the result is used) -> result."""


class Calls(Expressions):
    """returns: lowers a return statement of the function that is being lowered."""

    intrinsics: dict[str, Intrinsic]
    returns: Callable[[Node | None], None]

    @abstractmethod
    def statement(self, node: Node) -> None: ...

    def call(self, node: Node, needs_value: bool) -> Any:
        arguments = list(node.present) if node.children[0] is None else [child for child in node.children[1:] if child]
        function = node.function
        if node.sign == "lambda":
            assert function is not None
            return self.inlined(node, function, arguments, self.this, needs_value)
        assert function is not None
        if node.sign == "construct":
            return self._construct(node, function, arguments)
        if function.generated and function.name == "operator=":
            place = self._object(node[0])
            value = self.value(arguments[0])
            self.at(node)
            self.store(place, value)
            return place
        if function.body is None:
            return self._intrinsic(node, function.name, arguments, needs_value)
        owner = node.children[0]
        this = self.this if owner is None else self._object(owner) if function.owner is not None else None
        return self.inlined(node, function, arguments, this, needs_value)

    def _intrinsic(self, node: Node, name: str, arguments: Sequence[Node], needs_value: bool) -> Any:
        if name in self.intrinsics:
            return self.intrinsics[name](self, node, arguments, needs_value)
        row = operations().get(name)
        if row is None:
            raise self.refused(node, f"{name} is not supported in kernels")
        operation, places = row
        inputs = [self.scalar(argument) for argument in arguments]
        self.at(node)
        result = self.operation(operation, *(inputs[places.index(number)] for number in range(len(places))))
        return self.converted(result, cast(CType, node.type))

    def _object(self, owner: Node) -> Place:
        """Return the object of a method."""
        if isinstance(owner.type, PointerType):
            if owner.kind == "this":
                assert self.this is not None
                return self.this
            pointer = self.pointer(owner)
            to = owner.type.to
            if isinstance(pointer, Pointer) and isinstance(pointer.memory, Place):
                return self.variable_at(pointer)
            return MemoryPlace(self.as_register(pointer), cast(CType, to))
        return self._referred(owner)

    def _referred(self, node: Node) -> Place:
        """Return the object that a reference is bound to; for a value, an object of its own."""
        place = self.place(node)
        if isinstance(place, MemoryPlace):
            return MemoryPlace(self.as_register(place.pointer), place.type, place.volatile)
        is_value = isinstance(place, ValuePlace) and isinstance(place.value, StructValue | ir.Expr)
        if is_value and isinstance(node.type, RecordType | Scalar | Vector) and not is_place(node):
            target = self.new_variable("object", node.type)
            self.store(target, cast(ValuePlace, place).value)
            return target
        return place

    def _construct(self, node: Node, function: Function, arguments: Sequence[Node]) -> Any:
        type = cast(CType, node.type)
        target = self.new_variable("object", type)
        self.store(target, self.zero(type))
        self.inlined(node, function, arguments, target, False)
        return self.load(target)

    def inlined(
        self, node: Node, function: Function, arguments: Sequence[Node], this: Place | None, needs_value: bool
    ) -> Any:
        """Lower the body of a function in the place of its call. Return its value, or the object of a returned reference."""
        inputs: list[Any] = [
            self._referred(argument) if parameter.reference else self.value(argument)
            for parameter, argument in zip(function.parameters, arguments, strict=False)
        ]
        # A later argument may change what an earlier one reads.
        inputs = [
            entry if parameter.reference else self.as_register(entry)
            for parameter, entry in zip(function.parameters, inputs, strict=True)
        ]
        self.at(node)
        outer = self.path, self.this, self.returns
        self.calls.append((function.name, self.number(), node.span))
        self.path, self.this = (*self.path, node), this
        try:
            for parameter, value in zip(function.parameters, inputs, strict=True):
                self.bind(parameter, value)
            for name, initial in function.members:
                self._initialise_member(name, initial)
            return self._body(node, function, needs_value)
        finally:
            self.path, self.this, self.returns = outer
            self.calls.pop()
            self.at(node)

    def bind(self, parameter: Variable, value: Any) -> None:
        """Bind a parameter to its argument: a value, or the object of a reference."""
        self.homes[parameter] = self.path
        self.places[parameter] = self.place_of_variable(parameter, value)

    def place_of_variable(self, variable: Variable, value: Any) -> Place:
        """Return the object of a variable with this initial value; the object itself for a reference."""
        if variable.reference:
            return cast(Place, value)
        changed = variable in self.plan.changed
        if isinstance(value, LambdaValue) or (isinstance(value, Pointer | Choice) and not changed):
            return ValuePlace(self.as_register(value))
        if isinstance(variable.type, PointerType):
            place = self.pointer_variable(variable)
            self.store(place, value)
            return place
        target = self.new_variable(variable.name, variable.type, stable=not changed)
        self.store(target, self.fitted(value, variable.type))
        return target

    def _initialise_member(self, name: str, initial: Node) -> None:
        assert self.this is not None
        place = self.member(self.this, name)
        value = self.value(initial)
        type = next((kind for field, (kind, _) in cast(Any, self.this).record.fields.items() if field == name), None)
        self.store(place, self.fitted(value, cast(CType, type)))

    def _body(self, node: Node, function: Function, needs_value: bool) -> Any:
        """Lower the statements of a called function. A return that is not the last statement leaves a Frame."""
        body = function.body
        assert body is not None
        returns = [entry for entry in body.walk() if entry.kind == "return"]
        last = body.children[-1] if body.children else None
        if not returns or (len(returns) == 1 and returns[0] is last):
            results: list[Any] = [None]

            def keep(value: Node | None) -> None:
                if value is None:
                    return
                if function.returns_reference:
                    results[0] = self._referred(value)
                elif node.type is None or not needs_value:
                    self.discard(value)
                else:
                    results[0] = self.as_register(self.value(value))

            self.returns = keep
            self.statement(body)
            return results[0]
        return self._frame(node, function, body)

    def _frame(self, node: Node, function: Function, body: Node) -> Any:
        type = node.type
        if isinstance(type, PointerType):
            raise self.refused(node, f"{function.name} returns a pointer at several places: not supported")
        target = None if type is None or node.sign == "construct" else self.new_variable(function.name, type)

        def leave(value: Node | None) -> None:
            if value is not None and target is not None:
                self.store(target, self.fitted(self.value(value), cast(CType, type)))
            elif value is not None:
                self.discard(value)
            self.emit(ir.Return(None, self.position))

        self.returns = leave
        if target is not None:
            self.store(target, self.zero(cast(CType, type)))
        with self.block() as statements:
            self.statement(body)
        self.at(node)
        self.emit(ir.Frame(tuple(statements), self.position))
        return None if target is None else self.load(target)
