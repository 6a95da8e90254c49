"""Lowering of a kernel's syntax tree to a program of the IR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..errors import CompileError, Diagnostic
from ..ir import nodes as ir
from ..ir.spec import verify
from ..language.types import BOOL, U8, Array, Scalar, Vector
from .counted import loop_counters
from .declaration import Alias
from .intrinsics import INTRINSICS
from .planning import Plan, plan_memory
from .statements import Statements
from .tree import Function, Node, Variable
from .types import ArrayType, CType, PointerType, RecordType, components, size_of
from .values import Memory, MemoryPlace, Place, Pointer, RegisterPlace, StructPlace, ValuePlace


@dataclass(frozen=True)
class LoweredKernel:
    """program: of the IR. arrays: its global arrays by parameter or variable. constants: variables in constant memory that it reads."""

    program: ir.Program
    arrays: Mapping[str, Memory]
    constants: Mapping[str, Variable]


def lower(
    name: str, kernel: Function, aliases: Mapping[str, Alias], contents: Mapping[str, tuple[Any, ...]]
) -> LoweredKernel:
    """Return the program of a kernel.

    name: of the kernel, with the arguments of a template. aliases: of pointer parameters without memory of their own.
    contents: elements of variables in constant memory.
    Raises CompileError with the position of what is not supported.
    """
    try:
        lowering = _Lowering(plan_memory(kernel, aliases), aliases, contents)
        lowering.kernel_name = name
        return lowering.kernel(kernel)
    except RecursionError:
        raise CompileError([Diagnostic("compile", "expressions or calls nest too deep", kernel.span)]) from None


class _Lowering(Statements):
    intrinsics = INTRINSICS
    kernel_name = ""

    def __init__(self, plan: Plan, aliases: Mapping[str, Alias], contents: Mapping[str, tuple[Any, ...]]) -> None:
        super().__init__(plan)
        self.aliases, self.contents = aliases, contents
        self.returns = self._leave
        self.allocated: list[ir.Stmt] = []
        self.params: list[ir.Param] = []
        self.constants: dict[str, Variable] = {}
        self._globals: set[Any] = set()

    def _leave(self, value: Node | None) -> None:
        self.emit(ir.Return(None, self.position))

    def kernel(self, kernel: Function) -> LoweredKernel:
        assert kernel.body is not None
        self.loop_counters |= loop_counters(kernel.body)
        self.position = kernel.span
        memories = [memory for memory in self.plan.memories.values() if memory.space == "global"]
        self.reserved_names |= {memory.name for memory in memories}
        for parameter in kernel.parameters:
            self.position = parameter.span
            self.homes[parameter] = ()
            self.places[parameter] = self._parameter(parameter)
        self.statement(kernel.body)
        for memory in memories:
            self.params.append(ir.Param(memory.name, Array(memory.element, None, "global"), memory.span))
        function = ir.Function(self.kernel_name, tuple(self.params), (*self.allocated, *self.body), None, kernel.span)
        program = ir.Program(function, ())
        verify(program)
        return LoweredKernel(program, {memory.name: memory for memory in memories}, self.constants)

    def _parameter(self, parameter: Variable) -> Place:
        type = parameter.type
        if isinstance(type, PointerType) or parameter.reference:
            alias = self.aliases.get(parameter.name, Alias(parameter.name))
            memory = None if alias.parameter is None else self.plan.memories[alias.parameter]
            to = type if parameter.reference else cast(PointerType, type).to
            pointer = Pointer(memory, (), alias.offset, to)
            if parameter.reference:
                return MemoryPlace(pointer, type, parameter.volatile)
            return self.place_of_variable(parameter, pointer)
        stable = parameter not in self.plan.changed
        if isinstance(type, Scalar):
            register = self.register(parameter.name, type, stable)
            self.params.append(ir.Param(register.name, type, self.position))
            return RegisterPlace(register)
        if isinstance(type, Vector):
            return self._vector(self.name(parameter.name), type, stable)
        if isinstance(type, RecordType):
            return self._struct(parameter.name, type, stable)
        raise CompileError([Diagnostic("compile", f"a parameter of type {type} is not supported", parameter.span)])

    def _vector(self, name: str, type: Vector, stable: bool) -> RegisterPlace:
        """Return a vector that is passed by value: a parameter for each component."""
        names = [f"{name}@:{axis}" for axis in "xyzw"[: type.lanes]]
        self.params += [ir.Param(own, type.element, self.position) for own in names]
        self.reserved_names |= {name, *names}
        self.stable |= {*names, *[name] * stable}
        register = ir.Reg(name, type, self.position)
        values = tuple(ir.Reg(own, type.element, self.position) for own in names)
        self.emit(ir.Let(register, ir.Pack(values, type, self.position), self.position))
        return RegisterPlace(register)

    def _struct(self, name: str, record: RecordType, stable: bool) -> StructPlace:
        """Return a struct that is passed by value: a parameter for each field."""
        fields: dict[str, Any] = {}
        for field, (type, _) in record.fields.items():
            own = f"{name}@:{field}"
            if isinstance(type, RecordType):
                fields[field] = self._struct(own, type, stable)
            elif isinstance(type, Vector):
                fields[field] = self._vector(own, type, stable)
            elif isinstance(type, Scalar):
                self.reserved_names.add(own)
                self.stable |= {own} if stable else set()
                self.params.append(ir.Param(own, type, self.position))
                fields[field] = RegisterPlace(ir.Reg(own, type, self.position))
            else:
                message = f"{own.replace('@:', '.')} is {type}: not supported in a struct that is passed by value"
                raise CompileError([Diagnostic("compile", message, self.position)])
        return StructPlace(record, fields)

    # -------------------------------------------------------------- variables in memory
    def global_place(self, variable: Variable) -> Place:
        key: Any = "dynamic shared memory" if variable.dynamic else variable
        memory = self.plan.memories.get(key)
        if memory is None:  # it is never accessed
            return ValuePlace(None)
        if key not in self._globals:
            self._globals.add(key)
            if memory.space != "global":
                self._allocate(memory, variable)
        type = variable.type
        to = type.element if isinstance(type, ArrayType) else type
        return MemoryPlace(Pointer(memory, (), 0, to), type, variable.volatile)

    def _allocate(self, memory: Memory, variable: Variable) -> None:
        outer = self.position, self.calls
        self.position, self.calls = variable.span, []
        memory.name = self.name(variable.name)
        self.calls = outer[1]
        if memory.space == "constant":
            memory.values = self._contents(memory, variable)
        self.allocated.append(self.allocation(memory))
        self.position = outer[0]

    def _contents(self, memory: Memory, variable: Variable) -> tuple[Any, ...]:
        """Return the elements of constant memory: set by the program, or those of the initialiser."""
        self.constants[variable.name] = variable
        inputs = self.contents.get(variable.name)
        contents = initial_bytes(variable)
        if inputs is not None:
            contents = np.array(inputs, constant_element(variable.type).dtype).tobytes()
        if isinstance(memory.element, Vector):
            memory.element = memory.element.element
        return tuple(np.frombuffer(contents, memory.element.dtype).tolist())


def constant_element(type: CType) -> Scalar:
    """Return the type of a variable's components; u8 for several types."""
    kinds = set(components(type))
    return kinds.pop() if len(kinds) == 1 else U8


def initial_bytes(variable: Variable) -> bytes:
    """Return the contents that the initialiser of a variable determines; zeros without one. Raises CompileError."""
    data = bytearray(size_of(variable.type))
    if variable.initial is not None and variable.initial.kind != "zero":
        _write(data, 0, variable.initial, variable.type)
    return bytes(data)


_BITS = ("__half_raw", "__nv_bfloat16_raw")
"""Structs with the bits of a number."""


def _write(data: bytearray, offset: int, node: Node, type: CType) -> None:
    """Write the value of an initialiser at an offset."""
    if node.kind == "zero":
        return
    if isinstance(type, Scalar) and isinstance(node.type, RecordType) and node.type.name in _BITS:
        type = node.type
    if node.kind == "cast" and isinstance(type, ArrayType | RecordType):
        node = node[0]
    if not isinstance(type, ArrayType | RecordType | Vector):
        assert isinstance(type, Scalar)
        value = _number(node, type).tobytes()
        data[offset : offset + len(value)] = value
        return
    if isinstance(type, RecordType):
        places = list(type.fields.values())
    else:
        element = type.element
        count = type.lanes if isinstance(type, Vector) else type.count or 0
        places = [(element, number * size_of(element)) for number in range(count)]
    if node.kind != "list":
        raise _unknown(node)
    for (kind, start), item in zip(places, node.present, strict=False):
        _write(data, offset + start, item, kind)


def _number(node: Node, element: Scalar) -> Any:
    if node.kind != "constant":
        raise _unknown(node)
    assert isinstance(node.value, int | float)
    if element.is_float or element is BOOL:
        return element.dtype.type(node.value)
    return np.array([int(node.value) & ((1 << 8 * element.size) - 1)], f"u{element.size}").view(element.dtype)[0]


def _unknown(node: Node) -> CompileError:
    return CompileError(
        [Diagnostic("compile", "the value of this initialiser is not known at compile time", node.span)]
    )
