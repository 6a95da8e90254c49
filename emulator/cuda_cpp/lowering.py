"""Lowering of a kernel of a module: a function of numbers and pointers that calls it, then `llvmir`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import CompileError, Diagnostic
from ..frontend.signature import KernelParameter, RecordParameter, Signature
from ..ir import nodes as ir
from ..ir.names import components
from ..language.tensor_maps import TensorMapForm
from ..language.types import BF16, BOOL, F16, F32, F64, U8, U64, Array, Scalar, Space
from ..llvmir.allocations import MEMORY
from ..llvmir.debug import (
    ArrayOf,
    DescribedFunction,
    PointerTo,
    Record,
    SourceType,
    source_leaves,
    source_scalars,
    source_size,
)
from ..llvmir.handles import handles_in
from ..llvmir.module import Position, Variable, Zero
from ..llvmir.optimising import INLINING, STATEMENT_PASSES, TAIL_CALLS, has_recursion, optimised, with_separate_copies
from ..llvmir.parameters import AddressParameter, ArrayParameter, ScalarParameter, TextureParameter, Translation
from ..llvmir.pointers import initial_bytes
from ..llvmir.text import parse_declarations
from ..llvmir.translate import PointersInMemory, translate
from ..span import Span
from .compiled_text import CompiledModule
from .declaration import TENSOR_MAP, Alias, HostInterface, HostParameter, LaunchForm, OutsideVariable, is_tensor_map

ENTRY = "simtbed_entry"
_BY_VALUE = re.compile(rf"ptr (?:noundef )?(?:readonly )?byval\(%struct\.{TENSOR_MAP}\) align \d+ ")
"""A tensor map as a parameter: its address is that of the argument, without a copy."""
_ANNOTATIONS = re.compile(r'^@[^\n]*section "llvm\.metadata"[^\n]*\n', re.MULTILINE)
"""Annotations, which `CompiledModule.clusters` reads, and their texts."""
MAX_NUMBERS = 900
"""Numbers and pointers in the parameters of a kernel: each is an argument of compiled code, whose calls have at most 1,024."""
_FIRST_ADDRESS, _ADDRESSES = 0x7F00_0000_0000, 1 << 36
"""The address of the first parameter's array as a number, and the distance to the next."""
_FLOATS = {F16: "half", BF16: "bfloat", F32: "float", F64: "double"}


OwnParameter = ArrayParameter | AddressParameter | ScalarParameter | TextureParameter


@dataclass(frozen=True)
class LoweredKernel:
    """program: of the IR. interface: its arguments. constants: symbols of variables in constant memory by their arrays."""

    program: ir.Program
    interface: HostInterface
    constants: Mapping[str, str]


def lower(
    name: str,
    text: CompiledModule,
    function: DescribedFunction,
    aliases: Mapping[str, Alias],
    textures: Mapping[str, LaunchForm],
) -> LoweredKernel:
    """Return the program of a kernel. aliases: of pointer parameters without memory of their own. textures: forms by parameters and
    references. The pointers of a kernel that follows pointers in global memory are addresses, without aliases.

    Raises CompileError with the position of an unsupported construct.
    """
    wrapper = _Wrapper(function, aliases, text.source.span(function.file, function.line, 1))
    try:
        return _lowered(name, text, wrapper, textures)
    except PointersInMemory:
        return _lowered(name, text, replace(wrapper, aliases={}, addresses=True), textures)


def _lowered(name: str, text: CompiledModule, wrapper: _Wrapper, textures: Mapping[str, LaunchForm]) -> LoweredKernel:
    span = wrapper.span
    if (count := len(wrapper.parameters)) > MAX_NUMBERS:
        message = f"the parameters of {name} hold {count} numbers, at most {MAX_NUMBERS} are supported: pass an array by a pointer"
        raise CompileError([Diagnostic("compile", message, span)])
    try:
        inlined = optimised([entry := wrapper.text(text.text)], ENTRY, INLINING)
        if has_recursion(inlined):
            inlined = optimised([entry], ENTRY, TAIL_CALLS)
        module = optimised([with_separate_copies(inlined)], ENTRY, STATEMENT_PASSES)
    except RuntimeError as error:  # of llvmlite: a text may declare a function with any symbol
        reason = re.search(r"error: .*", str(error))
        message = f"LLVM does not read the code of the text: {reason[0] if reason else 'unknown error'}"
        raise CompileError([Diagnostic("compile", message, span)]) from None
    parameters = _with_textures(wrapper.parameters, handles_in(module), textures)
    translation = translate(
        module, ENTRY, parameters, name=name, span=span, span_of=_span_of(text, module),
        pointers="addresses" if wrapper.addresses else "arrays",
    )  # fmt: skip
    program = translation.program
    present = {param.name: param for param in program.kernel.params}
    # Parameters without a read in the program are also arguments of the launch.
    params = [
        present.pop(own.name, ir.Param(own.name, _param_type(own), span))
        for own in parameters[: len(wrapper.parameters)]
    ]
    program = replace(program, kernel=replace(program.kernel, params=(*params, *present.values())))
    interface = _interface(text, wrapper.function, replace(translation, program=program))
    return LoweredKernel(program, interface, translation.constants)


def _with_textures(
    parameters: Sequence[OwnParameter], handles: AbstractSet[str], forms: Mapping[str, LaunchForm]
) -> list[OwnParameter | TextureParameter]:
    """Return the parameters with handles in place of their numbers, then the references."""
    names = [own.name for own in parameters]
    used = handles | forms.keys()
    return [
        *(TextureParameter(own.name, forms.get(own.name)) if own.name in used else own for own in parameters),
        *(TextureParameter(name, form) for name, form in forms.items() if name not in names),
    ]


def _param_type(parameter: OwnParameter | TextureParameter) -> Scalar | Array:
    """Return the type of a parameter without a read in the program."""
    if isinstance(parameter, TextureParameter):
        space: Space = "global" if isinstance(parameter.form, TensorMapForm) else "texture"
        return Array(U8 if parameter.form is None else parameter.form.element, None, space)
    if isinstance(parameter, AddressParameter):
        return U64
    return parameter.type if isinstance(parameter, ScalarParameter) else Array(parameter.element or U8, None, "global")


@dataclass(frozen=True)
class _Wrapper:
    """The entry function: its parameters are the numbers and pointers that the parameters of a kernel contain. addresses: whether
    pointers are addresses of a device."""

    function: DescribedFunction
    aliases: Mapping[str, Alias]
    span: Span
    addresses: bool = False

    @property
    def parameters(self) -> list[OwnParameter]:
        """The parameters of the entry function, for `translate`."""
        results: list[OwnParameter] = []
        for parameter, type in self.function.parameters:
            if is_tensor_map(type):
                results.append(TextureParameter(parameter, None))
                continue
            for name, leaf, _ in _leaves(parameter, type):
                if isinstance(leaf, Scalar):
                    results.append(ScalarParameter(name, leaf))
                elif self.addresses:
                    results.append(AddressParameter(name))
                elif _has_memory(name, self.aliases):
                    scalars = source_scalars(leaf.to)
                    element = scalars.pop() if len(scalars) == 1 else None
                    address = _FIRST_ADDRESS + _ADDRESSES * len(results)
                    declared = None if element is BOOL else element
                    results.append(ArrayParameter(name, declared, max(source_size(leaf.to), 1), address=address))
        return results

    def text(self, module: str) -> str:
        """Return the module with the entry function."""
        head, body, arguments = list[str](), list[str](), list[str]()
        types = list(_passed(module, self.function.symbol))
        if ("...", "") in types:
            message = "a kernel with a variable number of parameters is not supported"
            raise CompileError([Diagnostic("compile", message, self.span)])
        for (name, type), (llvm, passed) in zip(self.function.parameters, types, strict=True):
            local = f'%"{name}"'
            if is_tensor_map(type):
                head.append(f"ptr {local}")
                arguments.append(f"ptr {local}")
            elif isinstance(type, PointerTo):
                arguments.append(f"ptr {self._pointer(name, local, head, body)}")
            elif not passed:
                head.append(f"{llvm} {local}")
                arguments.append(f"{llvm} {local}")
            else:
                body.append(f"{local} = alloca {passed}, align 16")
                for own, leaf, offset in _leaves(name, type):
                    value = f'%"{own}"'
                    if isinstance(leaf, PointerTo):
                        bits, align, value = "ptr", 8, self._pointer(own, value, head, body)
                    else:
                        bits, align = "i8" if leaf is BOOL else _FLOATS.get(leaf, f"i{8 * leaf.size}"), 1
                        head.append(f"{bits} {value}")
                    body.append(f'%"{own} place" = getelementptr i8, ptr {local}, i64 {offset}')
                    body.append(f'store {bits} {value}, ptr %"{own} place", align {align}')
                arguments.append(f"ptr byval({passed}) {local}")
        symbol = f'@"{self.function.symbol}"'
        lines = [*body, f"call void {symbol}({', '.join(arguments)})", "ret void"]
        entry = "\n  ".join([f"define void @{ENTRY}({', '.join(head)}) {{", *lines])
        module = _BY_VALUE.sub("ptr ", _ANNOTATIONS.sub("", module.replace(" ptx_kernel ", " ")))
        return f"{module}\n{entry}\n}}\n"

    def _pointer(self, name: str, local: str, head: list[str], body: list[str]) -> str:
        """Return the value of a pointer parameter."""
        alias = self.aliases.get(name)
        if _has_memory(name, self.aliases):
            head.append(f"ptr {local}")
        if alias is None:
            return local
        if alias.parameter is None:
            return "null"
        body.append(f'%"{name} alias" = getelementptr i8, ptr %"{alias.parameter}", i64 {alias.offset}')
        return f'%"{name} alias"'


def _leaves(name: str, type: SourceType) -> Iterator[tuple[str, Scalar | PointerTo, int]]:
    """Yield the name, the type and the offset of each number and pointer of a parameter."""
    return ((components(name, path), leaf, offset) for path, leaf, offset in source_leaves(type))


def _has_memory(name: str, aliases: Mapping[str, Alias]) -> bool:
    """Whether a pointer parameter is an array of the launch: it has no alias, or is one's memory."""
    return name not in aliases or any(alias.parameter == name for alias in aliases.values())


def _passed(module: str, symbol: str) -> Iterator[tuple[str, str]]:
    """Yield the LLVM type of each parameter of a function, and the type of the value behind it if it is passed by value."""
    start = next(
        module.index(f"{mark}(") + len(mark) for mark in (f"@{symbol}", f'@"{symbol}"') if f"{mark}(" in module
    )
    depth, first = 0, start + 1
    for at in range(start, len(module)):
        character = module[at]
        depth += {"(": 1, ")": -1}.get(character, 0)
        if (character == "," and depth == 1) or not depth:
            parameter = module[first:at].strip()
            value = re.search(r"byval\((.*?)\) align", parameter)
            if parameter:
                yield parameter.split()[0], value[1] if value else ""
            first = at + 1
        if not depth:
            return


def _span_of(text: CompiledModule, module: str) -> Callable[[Position], Span | None]:
    """Return a function from the positions of a module of LLVM to those of the text."""
    debug = parse_declarations(module).debug

    def span_of(position: Position) -> Span | None:
        file = debug.file(position.scope)
        return text.source.span(file, position.line, position.column) if file and position.line else None

    return span_of


def _interface(text: CompiledModule, function: DescribedFunction, translation: Translation) -> HostInterface:
    """Return the arguments of a kernel whose program this is."""
    params = {param.name: param.type for param in translation.program.kernel.params}
    arrays = {name: type for name, type in params.items() if isinstance(type, Array)}
    signature: dict[str, KernelParameter] = {}
    for name, type in function.parameters:
        if is_tensor_map(type):
            signature[name] = KernelParameter(arrays[name], accepts=(str(arrays[name].element),))
        elif isinstance(type, Record | ArrayOf):
            leaves = ((path, leaf) for path, leaf, _ in source_leaves(type) if isinstance(leaf, Scalar))
            pieces = tuple((components(name, path), path, leaf) for path, leaf in leaves)
            signature[name] = KernelParameter(RecordParameter(str(type), pieces))
        elif isinstance(type, Scalar):
            signature[name] = KernelParameter(arrays.get(name, type))
        for pointer in HostParameter(name, type).pointers:
            if pointer.name in arrays and isinstance(pointer.type, PointerTo):
                signature[pointer.name] = KernelParameter(arrays[pointer.name], accepts=_accepted(pointer.type.to))
            elif pointer.name in params:
                signature[pointer.name] = KernelParameter(U64)
    constants, variables = {}, {}
    for symbol in translation.constants.values():
        own = outside_variable(text, text.module.variables[symbol])
        name = text.name_of(text.module.variables[symbol])
        signature[name] = KernelParameter(Array(own.element, None, "constant"))
        constants[name] = own
    signature |= {name: KernelParameter(own) for name, own in translation.textures.items() if name not in signature}
    for name, view in translation.arrays.items():
        if name == MEMORY:
            signature[name] = KernelParameter(arrays[name])
        elif view.symbol:
            signature[name] = KernelParameter(arrays[name])
            own = outside_variable(text, text.module.variables[view.symbol])
            variables[name] = replace(own, element=view.element)
    return HostInterface(Signature(signature), constants, variables)


def outside_variable(text: CompiledModule, variable: Variable) -> OutsideVariable:
    """Return a `__constant__` or `__device__` variable with its initial contents."""
    initial = variable.initial or Zero(variable.type)
    scalars = source_scalars(text.module.debug.type_of_variable(variable.described))
    element = scalars.pop() if len(scalars) == 1 else U8
    return OutsideVariable(variable.name, U8 if element is BOOL else element, initial_bytes(initial, variable.type))


def _accepted(type: SourceType | None) -> tuple[str, ...]:
    """Return the element types of arrays that a pointer to a type accepts, in NumPy's words; structs are accepted by their size."""
    kinds = sorted({kind.name for kind in source_scalars(type)})
    return (f"V{source_size(type)}", *kinds) if isinstance(type, Record) else tuple(kinds)


def with_contents(lowered: LoweredKernel, contents: Mapping[str, Any]) -> ir.Program:
    """Return a kernel's program whose constant memory has these elements, by the names of its variables."""
    rows = lowered.interface.constants
    by_symbol = {rows[name].symbol: np.array(own, rows[name].element.dtype).tobytes() for name, own in contents.items()}

    def changed(stmt: ir.Stmt) -> ir.Stmt:
        symbol = lowered.constants.get(stmt.array) if isinstance(stmt, ir.Alloc) else None
        if symbol not in by_symbol or not isinstance(stmt, ir.Alloc):
            return stmt
        element = stmt.type.element
        assert isinstance(element, Scalar)
        values = np.frombuffer(by_symbol[symbol], element.dtype)
        return replace(stmt, values=tuple(values.tolist()))

    kernel = replace(lowered.program.kernel, body=tuple(map(changed, lowered.program.kernel.body)))
    return replace(lowered.program, kernel=kernel)
