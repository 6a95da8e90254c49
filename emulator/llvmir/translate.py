"""Translation of an LLVM function to a program: text, graph, structure, pointers, instructions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Literal

from ..errors import CompileError, Diagnostic
from ..ir import nodes as ir
from ..ir.spec import verify
from ..language.types import I64, U8, U64, Array, Scalar, Vector
from ..span import Span
from .accesses import Scope, access_unit
from .allocations import MEMORY, TABLE, TABLE_TYPE
from .arithmetic import bitcast, cast, constant, negated, signed
from .arrays import Arrays, Need
from .assembly_calls import assembly_accesses, instructions_of, translate_assembly
from .effect_calls import accesses_of
from .emit import TreeEmitter
from .emitting import VARIABLE, Emitter
from .graph import graph_of
from .halves import half_function
from .handles import FIRST_HANDLE, Textures
from .instructions import ATOMICS, EXACT_ATOMICS, atomic_type, translate_instruction
from .intrinsics import copy_unit, handler_of, library_atomic_word, memory_type
from .libdevice import POINTED
from .module import Function, Instruction, Local, Module, Number, Position, used_values
from .narrow_integers import is_narrow, translate_narrow
from .parameters import (
    AddressParameter,
    ArrayParameter,
    ArrayView,
    ConstantParameter,
    Parameter,
    ScalarParameter,
    ScalarSource,
    StructParameter,
    TextureParameter,
    Translation,
    UnusedPointer,
)
from .pointers import COPIES, NULL_MEMORY, Memories, Memory, Pointer
from .printing import PrintBuffers, translate_print
from .replay import verify_structure
from .source_scopes import SourceScopes
from .structure import structure
from .text import parse
from .types import (
    IntType,
    PointersInMemoryError,
    PointerType,
    SequenceType,
    StructType,
    Type,
    UnsupportedError,
    component,
    memory_scalar,
    scalar_of,
)
from .values import Item, Values

MAX_DEPTH = 20
"""Operations inside each other in an expression."""

PointerModel = Literal["views", "arrays", "addresses"]

_NO_EFFECT = (
    "llvm.lifetime.",
    "llvm.assume",
    "llvm.dbg.",
    "llvm.experimental.noalias.",
    "llvm.donothing",
    "llvm.prefetch",
)


class PointersInMemory(CompileError):
    """Raised for a pointer in global memory where parameters have arrays of their own."""


def translate(
    text: str,
    entry: str,
    parameters: Sequence[Parameter],
    *,
    name: str,
    span: Span,
    span_of: Callable[[Position], Span | None],
    raised: Mapping[int, tuple[str, Span]] | None = None,
    pointers: PointerModel = "views",
) -> Translation:
    """Return the program of a function of an LLVM module.

    text: the module, with the calls of device functions inlined. parameters: one for each parameter of the function `entry`, in order,
    then one for each texture reference.
    name, span: of the kernel, for users. span_of: returns the span of a position, None for an unknown one. raised: message and
    position of the codes that the function returns, failed assertions of the kernel; other codes have no meaning.
    pointers: "views": a memory has an array of the program for each size of its accesses. "arrays": it is one array, and local memory
    may have pointers. "addresses": global memory may have pointers too, which are addresses (`allocations`), as all parameters are.

    Raises CompileError for constructs that are not supported.
    """
    try:
        module = parse(text)
        if entry not in module.functions:
            raise UnsupportedError(f"the module has no function {entry}")
    except UnsupportedError as error:
        raise _refused(error, span) from None
    positions = _Positions(module, span, span_of)
    decided: dict[str, bool] = {}
    while True:
        emitter = Emitter(span)
        try:
            function = module.functions[entry]
            translator = _Translator(module, function, parameters, positions, emitter, decided, pointers)
            result = translator.translation(name, raised or {})
        except UnsupportedError as error:
            raise _refused(error, emitter.span) from None
        if not translator.decided:
            return result
        decided |= translator.decided  # without these branches


def _refused(error: UnsupportedError, span: Span) -> CompileError:
    kind = PointersInMemory if isinstance(error, PointersInMemoryError) else CompileError
    return kind([Diagnostic("compile", str(error), span)])


class _Positions:
    """Positions of the source by the numbers of DILocations."""

    def __init__(self, module: Module, span: Span, span_of: Callable[[Position], Span | None]) -> None:
        self.module, self.span, self.of_position = module, span, span_of
        self._spans: dict[int, Span] = {}

    def span_of(self, instruction: Instruction) -> Span:
        return self._at(instruction.position)

    def _at(self, number: int) -> Span:
        if number not in self._spans:
            position = self.module.positions.get(number)
            own = self.of_position(position) if position else None
            if position is not None and position.inlined >= 0:
                call = self._at(position.inlined)
                own = call if own is None else own.inside(call)
            self._spans[number] = own or self.span
        return self._spans[number]


class _Translator:
    """decided: constant conditions, by block: those of the graph, then those that the translation finds."""

    def __init__(
        self,
        module: Module,
        function: Function,
        parameters: Sequence[Parameter],
        positions: _Positions,
        emitter: Emitter,
        decided: Mapping[str, bool],
        pointers: PointerModel,
    ) -> None:
        self.textures = Textures({own.name: own.form for own in parameters if isinstance(own, TextureParameter)})
        references = parameters[len(function.parameters) :]
        parameters = parameters[: len(function.parameters)]
        if len(parameters) != len(function.parameters) or not all(
            isinstance(own, TextureParameter) for own in references
        ):
            raise UnsupportedError(
                f"{len(function.parameters)} parameters are expected, {len(parameters) + len(references)} are described"
            )
        self.positions = positions
        self.emitter = emitter
        self.arrays = Arrays(self.emitter, positions.of_position)
        self.single = single = pointers != "views"
        self.scalars: dict[str, tuple[Scalar, ScalarSource]] = {}
        self.unused = {
            own.name
            for own, described in zip(function.parameters, parameters, strict=True)
            if isinstance(described, UnusedPointer)
        }
        self.exact_shifts: set[Instruction] = set()
        self.decided: dict[str, bool] = {}
        self.depths: dict[str, int] = {}  # of expressions, by the names of values
        self.graph = graph_of(function, self._is_removed, decided, SourceScopes(module) if single else None)
        self.allocations = Memory(MEMORY, "global", single=True, addresses=True) if pointers == "addresses" else None
        known_memories, values = self._parameters(function.parameters, parameters)
        self.memories = Memories(module, function, known_memories, single, self.allocations)
        self.memories.names |= {
            own.name for own in parameters if isinstance(own, ScalarParameter)
        }  # its address may be taken
        self.memories.trace(self._instructions())
        self.prints = PrintBuffers(self._instructions(), self.memories, self.emitter)
        self.values = Values(self.graph, self.arrays, self.memories, values)
        if single:
            debug = module.debug
            self.values.variables = {
                own: debug.variable(node).get("name", "") for own, node in function.variables.items()
            }
        self.scope = Scope(self.emitter, self.values, self.arrays, self.memories, self.textures)

    def _is_removed(self, instruction: Instruction) -> bool:
        """Whether an instruction has no meaning here: stores to pointers that do not exist, and hints."""
        if instruction.op == "store" and isinstance(instruction.operands[1], Local):
            return instruction.operands[1].name in self.unused
        return instruction.function.startswith(_NO_EFFECT)

    def _instructions(self) -> Iterator[Instruction]:
        for node in self.graph.nodes.values():
            yield from node.phis
            yield from node.body

    def _all_instructions(self) -> Iterator[Instruction]:
        yield from self._instructions()
        yield from (node.end for node in self.graph.nodes.values())

    # -------------------------------------------------------------- parameters
    def _parameters(
        self, locals_: Sequence[Local], parameters: Sequence[Parameter]
    ) -> tuple[dict[str, Memory], dict[str, Callable[[], Item]]]:
        memories: dict[str, Memory] = {}
        values: dict[str, Callable[[], Item]] = {}
        arguments = len(parameters)
        for number, (own, described) in enumerate(zip(locals_, parameters, strict=True)):
            match described:
                case StructParameter(items):
                    values[own.name] = self._struct(items, own.type, arguments)
                    arguments += len(items)
                case ArrayParameter(name, element, size, offset, address):
                    memory = Memory(
                        name, "global", size, element, None, number, address, offset=offset, single=self.single
                    )
                    memories[own.name] = memory
                    values[own.name] = _pointer_to(memory)
                case AddressParameter(name):
                    assert self.allocations is not None
                    memories[own.name] = self.allocations
                    values[own.name] = self._address(name, ScalarSource(number))
                case UnusedPointer():
                    values[own.name] = _pointer_to(NULL_MEMORY)
                case TextureParameter(name) if isinstance(own.type, PointerType):
                    memories[own.name] = Memory(name, "none", address=FIRST_HANDLE + number)
                    values[own.name] = _pointer_to(memories[own.name])
                case TextureParameter(name):
                    values[own.name] = partial(self.textures.handle, name, self.positions.span)
                case ConstantParameter(value, type):
                    values[own.name] = self._constant(value, type)
                case ScalarParameter(name, type):
                    divisor = self._divisor(own.name)
                    values[own.name] = self._scalar(name, type, own.type, ScalarSource(number, divisor))
        return memories, values

    def _struct(self, items: Sequence[ScalarParameter], own: Type, first: int) -> Callable[[], Item]:
        """Return a function to the values of a structure. first: index of the argument of its first item."""
        fields = [
            self._scalar(item.name, item.type, component(own, number)[0], ScalarSource(first + number))
            for number, item in enumerate(items)
        ]
        return lambda: [field() for field in fields]

    def _address(self, name: str, source: ScalarSource) -> Callable[[], Item]:
        def value() -> Item:
            assert self.allocations is not None
            self.scalars[name] = U64, source
            return Pointer((self.allocations,), 0, ((signed(ir.Reg(name, U64, self.positions.span)), 1),))

        return value

    def _constant(self, value: int, type: Scalar) -> Callable[[], Item]:
        return lambda: constant(value, type, self.emitter.span)

    @cached_property
    def _uses(self) -> Mapping[str, Mapping[Instruction, None]]:
        """The instructions that use each value, in order."""
        uses: dict[str, dict[Instruction, None]] = {}
        for instruction in self._all_instructions():
            for local in used_values(instruction):
                uses.setdefault(local.name, {})[instruction] = None
        return uses

    def _divisor(self, name: str) -> int:
        """Return the power of two by which all uses of a parameter divide it without a remainder, as a stride in bytes; else 1."""
        uses = self._uses.get(name, {})
        if not uses or not all(_is_exact_shift(instruction) for instruction in uses):
            return 1
        shifts = {instruction.operands[1] for instruction in uses}
        (shift, *more) = shifts
        if more or not isinstance(shift, Number):
            return 1
        self.exact_shifts.update(uses)
        return 1 << int(shift.value)

    def _scalar(self, name: str, type: Scalar, own: Type, source: ScalarSource) -> Callable[[], Item]:
        def value() -> Item:
            self.scalars[name] = type, source
            register = ir.Reg(name, type, self.positions.span)
            target = scalar_of(own)
            # A half may be passed as its bits.
            return cast(signed(register), target) if type.is_float == target.is_float else bitcast(register, target)

        return value

    # -------------------------------------------------------------- accesses
    def _note_accesses(self) -> None:
        """Record the types of all accesses, from which the element types of memories follow."""
        for instruction in self._instructions():
            self.emitter.span = self.positions.span_of(instruction)
            match instruction.op:
                case "load":
                    self._note(instruction, 0, instruction.type)
                case "store":
                    if not self.prints.is_buffer(self.memories.addressed_by(instruction.operands[1])):
                        self._note(instruction, 1, instruction.operands[0].type)
                case "atomicrmw":
                    self._note_atomic(instruction, instruction.word)
                case "cmpxchg":
                    for memory in self.memories.addressed_by(instruction.operands[0]):
                        self.arrays.note_access(memory, memory_scalar(instruction.operands[1].type), "integer")
                case "call":
                    self._note_call(instruction)

    def _note(self, instruction: Instruction, pointer: int, type: Type) -> None:
        for memory in self.memories.addressed_by(instruction.operands[pointer]):
            for own in self._accessed(type, instruction.alignment):
                self.arrays.note_access(memory, own)

    def _accessed(self, type: Type, alignment: int) -> Iterator[Scalar]:
        """Yield the types of the elements that an access to a value needs."""
        if isinstance(type, PointerType):  # refused where it is translated, unless pointers may be in memory
            yield from [I64] * self.single
        elif unit := access_unit(self.scope, type, alignment):
            yield unit.element if isinstance(unit, Vector) else unit
        elif isinstance(type, StructType):
            for item in type.items:
                yield from self._accessed(item, alignment)
        elif isinstance(type, SequenceType):
            yield from self._accessed(type.item, alignment)
        else:
            yield memory_scalar(type)

    def _note_atomic(self, instruction: Instruction, word: str) -> None:
        if word not in ATOMICS and word != "fsub":
            return  # refused where it is translated
        for memory in self.memories.addressed_by(instruction.operands[0]):
            type = atomic_type(word, instruction.operands[1].type)
            need: Need = "exact" if word in EXACT_ATOMICS else "any" if type.is_float else "integer"
            self.arrays.note_access(memory, type, need)

    def _note_call(self, instruction: Instruction) -> None:
        if word := library_atomic_word(instruction.function):
            self._note_atomic(instruction, word)
        for operand, type, need in (*accesses_of(instruction), *assembly_accesses(instruction)):
            for memory in self.memories.addressed_by(operand):
                self.arrays.note_access(memory, type, need)
        self._note_pointed(instruction)
        if instruction.function.startswith((*COPIES, "llvm.memset.")):
            self._note_copy(instruction)

    def _note_pointed(self, instruction: Instruction) -> None:
        """Record the accesses of a function of libdevice or of halves through its pointers."""
        row = POINTED.get(instruction.function.removeprefix("__nv_"))
        if row is not None:
            for operand, (_, stored) in zip(instruction.operands[1:], row.stored, strict=True):
                for memory in self.memories.addressed_by(operand):
                    self.arrays.note_access(memory, stored or scalar_of(instruction.operands[0].type))
        if (half := half_function(instruction.function)) is not None:
            pointers = (instruction.operands[half.target], *instruction.operands[half.first :])
            for operand, type in zip(pointers, (half.result, *half.operands), strict=True):
                for memory in self.memories.addressed_by(operand):
                    self.arrays.note_access(memory, memory_type(type))

    def _note_copy(self, instruction: Instruction) -> None:
        """Record the accesses of a copy or a memset."""
        is_fill = instruction.function.startswith("llvm.memset.")
        for operand in instruction.operands[: 1 if is_fill else 2]:
            for memory in self.memories.addressed_by(operand):
                unit = memory_scalar(IntType(8 * (1 if is_fill else copy_unit(instruction))))
                computed = self.single and not isinstance(instruction.operands[2], Number)
                declared = memory.declared if is_fill and not computed else None
                self.arrays.note_access(memory, declared or unit)

    # -------------------------------------------------------------- instructions
    def _run(self, instruction: Instruction, block: str) -> None:
        """Translate an instruction; its value is an expression where it is read once and has no variable, else a register."""
        self.emitter.span = self.positions.span_of(instruction)
        value = self._value(instruction)
        if not instruction.name or value is None:
            return
        if not isinstance(value, Pointer | list):
            depth = 1 + max((self.depths.get(local.name, 0) for local in used_values(instruction)), default=0)
            once = self.values.is_used_once(instruction.name, block) and depth < MAX_DEPTH
            stem = self.values.stem(instruction.name)
            if isinstance(value, ir.Op):  # of a branch, the position is that of its condition
                value = replace(value, span=self.emitter.span)
            if self.values.uses[instruction.name] and (not once or stem.startswith(VARIABLE)):
                value = self.emitter.let(value, stem)
            self.depths[instruction.name] = depth if isinstance(value, ir.Op) else 0
        self.values.by_name[instruction.name] = value

    def _value(self, instruction: Instruction) -> Item | None:
        if instruction.op == "store" and self.prints.is_buffer(self.memories.addressed_by(instruction.operands[1])):
            pointer = self.values.pointer(instruction.operands[1])
            self.prints.store(pointer, self.values.resolve(instruction.operands[0]), instruction.operands[0])
            return None
        if instruction in self.exact_shifts:
            return self.values.resolve(instruction.operands[0])
        if is_narrow(instruction):
            return translate_narrow(self.scope, instruction)
        if instruction.op != "call":
            return translate_instruction(self.scope, instruction)
        if instructions_of(instruction) is not None:
            return translate_assembly(self.scope, instruction)
        if instruction.function == "vprintf":
            return translate_print(self.scope, self.prints, instruction)
        if not instruction.function:
            raise UnsupportedError("a call through a pointer is not supported")
        if instruction.function in self.memories.module.functions:  # all other calls are inlined
            raise UnsupportedError(
                "recursion is not supported" if self.single else "a function that calls itself is not supported"
            )
        return handler_of(instruction.function)(self.scope, instruction)

    # -------------------------------------------------------------- program
    def translation(self, name: str, raised: Mapping[int, tuple[str, Span]]) -> Translation:
        self._note_accesses()
        self.emitter.span = self.positions.span
        tree = structure(self.graph)
        verify_structure(self.graph, tree)
        trees = TreeEmitter(self.graph, self.emitter, self.values, self._run, self.positions.span_of, raised)
        emitted = trees.body(tree)
        self.decided = trees.decided
        body = (*self.arrays.allocations, *emitted)
        body = _without_return(body)
        sources = dict(self.scalars)
        views = self.arrays.views
        if self.allocations is not None:
            views.setdefault(MEMORY, ArrayView(None, 0, U8, 0))
            self.textures.arrays[TABLE] = TABLE_TYPE
        types = {view: Array(own.element, None, "global") for view, own in views.items()}
        computed = self.arrays.sources
        span = self.positions.span
        params = (
            *(ir.Param(view, type, span) for view, type in types.items()),
            *(ir.Param(own, type, span) for own, (type, _) in sources.items()),
            *(ir.Param(own, I64, span) for own in computed),
            *(ir.Param(own, type, span) for own, type in self.textures.arrays.items()),
        )
        program = ir.Program(ir.Function(name, params, body, None, span), ())
        verify(program)
        scalars = {own: source for own, (_, source) in sources.items()} | computed
        return Translation(program, views, scalars, self.arrays.constants, self.textures.arrays)


def _is_exact_shift(instruction: Instruction) -> bool:
    """Whether an instruction is a shift to the right without a remainder, by a constant."""
    return instruction.op == "ashr" and "exact" in instruction.flags and isinstance(instruction.operands[1], Number)


def _without_return(body: ir.Body) -> ir.Body:
    """Remove returns at the end of a kernel."""
    while body and isinstance(body[-1], ir.Return):
        body = body[:-1]
    if not body or not isinstance(last := body[-1], ir.If):
        return body
    then, orelse = _without_return(last.then), _without_return(last.orelse)
    if then:
        return (*body[:-1], replace(last, then=then, orelse=orelse))
    if orelse:
        return (*body[:-1], replace(last, cond=negated(last.cond), then=orelse, orelse=()))
    return body[:-1]


def _pointer_to(memory: Memory) -> Callable[[], Item]:
    return lambda: Pointer((memory,))
