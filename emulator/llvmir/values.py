"""Values of SSA names and constants: expressions, pointers, and aggregates of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..ir import nodes as ir
from ..language.types import BOOL, I32, I64, Scalar
from .arithmetic import cast, constant, operation, selected
from .arrays import Arrays
from .emitting import VARIABLE
from .graph import Graph
from .module import Aggregate, Constant, Global, Instruction, Local, Number, Operand, Undefined, Zero, locals_in
from .pointers import NULL, Memories, Memory, Pointer, indexed
from .types import (
    IntType,
    PointersInMemoryError,
    PointerType,
    SequenceType,
    StructType,
    Type,
    UnsupportedError,
    scalar_of,
)

_BLOCK_BIT = 24
"""In an address of the shared memory of another block, the first bit of the rank of the block plus 1: PTX has one window for a cluster."""
Item = ir.Expr | Pointer | list[Any]
"""A value of an instruction. A list has the components of a struct, an array or a vector."""


class Values:
    """by_name: the values of SSA names by name; those of parameters are computed when first read."""

    def __init__(
        self, graph: Graph, arrays: Arrays, memories: Memories, parameters: Mapping[str, Callable[[], Item]]
    ) -> None:
        self.graph, self.arrays, self.memories, self.parameters = graph, arrays, memories, parameters
        self.emitter = arrays.emitter
        self.by_name: dict[str, Item] = {}
        self.variables: dict[str, str] = {}  # of the source, by the names of values
        self.phis = {phi.name: phi for node in graph.nodes.values() for phi in node.phis}
        self.uses: Counter[str] = Counter()
        self.local_uses: dict[str, set[str]] = {}  # the blocks that read a value, at the end of the source for a phi
        for node in graph.nodes.values():
            for instruction in (*node.body, node.end):
                self._count(instruction.operands, node.name)
            for phi in node.phis:
                for source, value in phi.incoming:
                    self._count((value,), source)

    def _count(self, operands: Iterable[Operand], block: str) -> None:
        for operand in operands:
            for local in locals_in(operand):
                self.uses[local.name] += 1
                self.local_uses.setdefault(local.name, set()).add(block)

    def stem(self, name: str) -> str:
        """Return the beginning of the name of a value's register."""
        return f"{VARIABLE}{self.variables[name]}" if self.variables.get(name) else name

    def is_used_once(self, name: str, block: str) -> bool:
        """Return whether a value is read once, in its own block."""
        return self.uses[name] == 1 and self.local_uses[name] == {block}

    # -------------------------------------------------------------- operands
    def resolve(self, operand: Operand) -> Item:
        """Return the value of an operand. Raises UnsupportedError."""
        span = self.emitter.span
        match operand:
            case Local(name):
                return self._local(name)
            case Number(value, type):
                return constant(value, scalar_of(type), span)
            case Zero(type) | Undefined(type):
                return self.zero(type)
            case Aggregate(items):
                return [self.resolve(item) for item in items]
            case Global(name):
                return Pointer((self.memories.of_global(name),))
            case Constant():
                return self._constant(operand)
        raise UnsupportedError(f"the operand {operand.type} is not supported")

    def expr(self, operand: Operand) -> ir.Expr:
        """Return the value of an operand that is a number."""
        value = self.resolve(operand)
        if isinstance(value, Pointer):
            raise UnsupportedError("an address used as a number is not supported")
        if isinstance(value, list):
            raise UnsupportedError(f"an operation on {operand.type} is not supported")
        return value

    def pointer(self, operand: Operand) -> Pointer:
        """Return the value of an operand that is an address."""
        value = self.resolve(operand)
        if not isinstance(value, Pointer):
            raise UnsupportedError("a number used as an address is not supported")
        return value

    def items(self, operand: Operand) -> list[Any]:
        """Return the components of an operand."""
        value = self.resolve(operand)
        if not isinstance(value, list):
            raise UnsupportedError(f"the components of {operand.type} are not supported")
        return value

    def zero(self, type: Type) -> Item:
        match type:
            case PointerType():
                return self.memories.null
            case StructType(items):
                return [self.zero(item) for item in items]
            case SequenceType(item, count):
                return [self.zero(item) for _ in range(count)]
        return constant(0, scalar_of(type), self.emitter.span)

    def _local(self, name: str) -> Item:
        if name not in self.by_name:
            if name in self.phis:
                self.by_name[name] = self._phi(self.phis[name])
            elif name in self.parameters:
                self.by_name[name] = self.parameters[name]()
            else:
                raise UnsupportedError(f"the value %{name} is not known here")
        return self.by_name[name]

    def _constant(self, operand: Constant) -> Item:
        first, *rest = operand.operands
        match operand.op:
            case "addrspacecast" | "bitcast":
                return self.resolve(first)
            case "inttoptr" if isinstance(first, Number):
                return Pointer((self.memories.at_address(int(first.value)),))
            case "getelementptr":
                assert operand.source is not None
                return indexed(self.pointer(first), operand.source, [self.expr(index) for index in rest])
            case "inttoptr":
                return self.pointer_of_number(first, self.expr(first))
            case "ptrtoint" | "ptrtoaddr":
                return cast(self.address_of(self.pointer(first)), scalar_of(operand.type))
            case "trunc":
                return cast(self.expr(first), scalar_of(operand.type))
            case "add" | "sub" | "mul" | "xor":
                return operation(operand.op, self.expr(first), self.expr(rest[0]))
        raise UnsupportedError(f"the constant expression {operand.op} is not supported")

    def pointer_of_number(self, operand: Operand, value: ir.Expr) -> Pointer:
        """Return the pointer at a computed address. Raises UnsupportedError where its memory is not known."""
        memories = tuple(memory for memory in self.memories.addressed_by(operand) if memory not in NULL.memories)
        if not memories and self.memories.allocations is not None:
            return Pointer((self.memories.allocations,), 0, ((self.emitter.let(cast(value, I64), "address"), 1),))
        if not memories or any(own.parameter is None and self.memories.address(own) is None for own in memories):
            raise PointersInMemoryError("a computed number as an address is not supported")
        assert isinstance(value.type, Scalar)
        let, span, type = self.emitter.let, self.emitter.span, value.type
        value, block = let(value, "address"), None
        if self._maps_blocks(memories):
            if any(memory.space != "shared" for memory in memories):
                raise UnsupportedError(
                    "a computed address of shared memory of a cluster or of other memory is not supported"
                )
            bits = constant(_BLOCK_BIT, I32, span)
            window = let(operation("and", operation("shr", value, bits), constant(31, type, span)), "window")
            value = let(operation("sub", value, operation("shl", window, bits)), "address")
            other = operation("sub", cast(window, I32), constant(1, I32, span))
            is_own = operation("eq", window, constant(0, type, span))
            block = let(selected(is_own, ir.Special("cluster_rank", I32, span), other), "block")
        base, which = cast(self.base(memories[0]), type), None
        for number, memory in enumerate(memories[1:], 1):  # the memory with the nearest address below
            own = cast(self.base(memory), type)
            nearer = operation("either", operation("gt", own, base), operation("lt", value, base))
            is_own = let(operation("both", operation("ge", value, own), nearer), "is_own")
            base = let(selected(is_own, own, base), "base")
            which = let(selected(is_own, constant(number, I32, span), which or constant(0, I32, span)), "which")
        offset = let(cast(operation("sub", value, base), I64), "offset")
        return Pointer(memories, 0, ((offset, 1),), which, block=block)

    def base(self, memory: Memory) -> ir.Expr:
        """Return the address of a memory as i64."""
        address = self.memories.address(memory)
        return self.arrays.address(memory) if address is None else constant(address, I64, self.emitter.span)

    def address_of(self, pointer: Pointer) -> ir.Expr:
        """Return an address as a number."""
        base, *others = map(self.base, pointer.memories)
        for number, own in enumerate(others, 1):
            if pointer.which is not None:
                base = selected(operation("eq", pointer.which, constant(number, I32, self.emitter.span)), own, base)
        if pointer.block is not None and self._maps_blocks(pointer.memories):
            span = self.emitter.span
            window = cast(operation("add", pointer.block, constant(1, I32, span)), I64)
            base = operation("add", base, operation("shl", window, constant(_BLOCK_BIT, I32, span)))
        return operation("add", pointer.offset(self.emitter.span), base)

    def _maps_blocks(self, memories: Iterable[Memory]) -> bool:
        """Return whether pointers to some memories may be to shared memory of other blocks of the cluster."""
        return self.memories.maps_blocks and any(memory.space == "shared" for memory in memories)

    # -------------------------------------------------------------- phis
    def _phi(self, phi: Instruction) -> Item:
        """Return the registers of a phi: for a pointer those of its offset and, for several memories, of the selected one. A phi
        of one integer constant is the constant: zeros of floats may differ in their sign."""
        if len(phi.incoming) == 1:  # the value of a loop behind it
            return self.resolve(phi.incoming[0][1])
        constants = {value for _, value in phi.incoming if value != Local(phi.name, phi.type)}
        if len(constants) == 1 and isinstance(only := constants.pop(), Number) and isinstance(only.value, int):
            return self.resolve(only)
        return self._registers(self.stem(phi.name), phi.type, tuple(self.memories.of_value.get(phi.name, ())))

    def _registers(self, name: str, type: Type, memories: tuple[Any, ...]) -> Item:
        emitter = self.emitter
        match type:
            case PointerType():
                if not memories:
                    return self.memories.null
                which = emitter.register(f"{name}_which", I32) if len(memories) > 1 else None
                block = emitter.register(f"{name}_block", I32) if self._maps_blocks(memories) else None
                return Pointer(memories, 0, ((emitter.register(name, I64), 1),), which, block=block)
            case StructType(items):
                return [self._registers(name, item, memories) for item in items]
            case SequenceType(item, count):
                return [self._registers(name, item, memories) for _ in range(count)]
        return emitter.register(name, scalar_of(type))

    def moves(self, source: str, target: str) -> list[tuple[ir.Reg, ir.Expr]]:
        """Return the assignments of a block's phis for the edge from a block. All values are read before any is assigned."""
        assignments: list[tuple[ir.Reg, ir.Expr]] = []
        for phi in self.graph.nodes[target].phis:
            if self.uses[phi.name] and len(phi.incoming) > 1:
                value = self.resolve(dict(phi.incoming)[source])
                self._assignments(self._local(phi.name), value, assignments)
        return assignments

    def _assignments(self, registers: Item, value: Item, out: list[tuple[ir.Reg, ir.Expr]]) -> None:
        match registers:
            case ir.Reg():
                assert not isinstance(value, Pointer | list)
                out.append((registers, value))
            case list():
                assert isinstance(value, list)
                for register, component in zip(registers, value, strict=True):
                    self._assignments(register, component, out)
            case Pointer() if registers.terms and isinstance(value, Pointer):
                ((register, _),) = registers.terms
                assert isinstance(register, ir.Reg)
                out.append((register, value.offset(self.emitter.span)))
                if isinstance(registers.block, ir.Reg):
                    out.append((registers.block, self.block(value)))
                if isinstance(registers.which, ir.Reg):
                    out.append((registers.which, self.selector(value, registers.memories)))

    def selector(self, pointer: Pointer, memories: tuple[Any, ...]) -> ir.Expr:
        """Return the number of a pointer's memory among `memories`; 0 where null is none of them. Known limits: an access through a
        pointer of Numba that is null on one path is an access to the first memory there."""
        span = self.emitter.span
        numbers = [memories.index(memory) if memory in memories else 0 for memory in pointer.memories]
        if pointer.which is None:
            return constant(numbers[0], I32, span)
        if numbers == list(range(len(numbers))):
            return pointer.which
        result: ir.Expr = constant(numbers[-1], I32, span)
        for own in range(len(numbers) - 2, -1, -1):
            is_own = operation("eq", pointer.which, constant(own, I32, span))
            result = selected(is_own, constant(numbers[own], I32, span), result)
        return result

    def choice(self, condition: ir.Expr, a: Item, b: Item) -> Item:
        """Return the result of a select."""
        if isinstance(a, list) and isinstance(b, list):
            return [self.choice(condition, *pair) for pair in zip(a, b, strict=True)]
        if isinstance(a, Pointer) and isinstance(b, Pointer):
            return self._pointer_choice(condition, a, b)
        assert not isinstance(a, Pointer | list) and not isinstance(b, Pointer | list)
        return selected(condition, a, b)

    def _pointer_choice(self, condition: ir.Expr, a: Pointer, b: Pointer) -> Pointer:
        emitter = self.emitter
        memories = tuple(dict.fromkeys((*a.memories, *b.memories)))
        if not self.memories.single:
            memories = tuple(memory for memory in memories if memory not in NULL.memories)
        if not memories:
            return self.memories.null
        condition = emitter.let(condition, "condition")
        which = None
        if len(memories) > 1:
            numbers = self.selector(a, memories), self.selector(b, memories)
            which = emitter.let(selected(condition, *numbers), "which")
        block = a.block
        if a.block is not b.block:
            block = emitter.let(selected(condition, self.block(a), self.block(b)), "block")
        if not a.terms and not b.terms and a.constant == b.constant:
            return Pointer(memories, a.constant, (), which, block=block)
        offset = emitter.let(selected(condition, a.offset(emitter.span), b.offset(emitter.span)), "offset")
        return Pointer(memories, 0, ((offset, 1),), which, block=block)

    def block(self, pointer: Pointer) -> ir.Expr:
        """Return the rank of the block that has the shared memory of a pointer."""
        return ir.Special("cluster_rank", I32, self.emitter.span) if pointer.block is None else pointer.block


def truth(value: ir.Expr) -> ir.Expr:
    """Return whether a number is not 0."""
    if value.type is BOOL:
        return value
    assert isinstance(value.type, Scalar)
    return operation("ne", value, constant(0, value.type, value.span))


def bits_of(type: Type) -> int:
    """Return the bits of an integer type. Raises UnsupportedError for others."""
    if not isinstance(type, IntType):
        raise UnsupportedError(f"{type} is not supported here")
    return type.bits
