"""Objects of an LLVM module: values, instructions, blocks, functions, global variables, positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .debug import DebugInformation
from .types import Type


@dataclass(frozen=True)
class Local:
    """An SSA value or a parameter. name: without the %."""

    name: str
    type: Type


@dataclass(frozen=True)
class Global:
    """A global variable or a function. name: without the @."""

    name: str
    type: Type


@dataclass(frozen=True)
class Number:
    """A constant of an integer or float type; an integer has the sign of the text."""

    value: int | float
    type: Type


@dataclass(frozen=True)
class Zero:
    """null, zeroinitializer or none."""

    type: Type


@dataclass(frozen=True)
class Undefined:
    """undef or poison."""

    type: Type


@dataclass(frozen=True)
class Aggregate:
    items: tuple[Operand, ...]
    type: Type


@dataclass(frozen=True)
class Text:
    """Bytes of a constant."""

    content: bytes
    type: Type


@dataclass(frozen=True)
class Constant:
    """A constant expression. source: the element type of a getelementptr."""

    op: str
    operands: tuple[Operand, ...]
    type: Type
    source: Type | None = None


@dataclass(frozen=True)
class Assembly:
    """Inline assembly."""

    text: str
    constraints: str
    type: Type


Operand = Local | Global | Number | Zero | Undefined | Aggregate | Text | Constant | Assembly


@dataclass(frozen=True, eq=False)
class Instruction:
    """One instruction.

    name: of its result, "" without one. type: of the result. word: the predicate of a comparison, the operation of an atomicrmw,
    the ordering of a load, store or fence. source: the element type of a getelementptr, the type of an alloca. indices: of
    extractvalue and insertvalue. incoming: of a phi, by block. targets: of a branch or switch, the default first. cases: of a
    switch. callee: of a call. alignment: of an access, or the smallest of the operands of a call, 1 if it states none. scope: of an atomic
    access, "" for the system. loop: the number of the node of the loop that a branch repeats, -1 without one. position: number of its
    DILocation, -1 without one.
    """

    op: str
    name: str
    type: Type
    operands: tuple[Operand, ...] = ()
    position: int = -1
    flags: frozenset[str] = frozenset()
    word: str = ""
    source: Type | None = None
    indices: tuple[int, ...] = ()
    incoming: tuple[tuple[str, Operand], ...] = ()
    targets: tuple[str, ...] = ()
    cases: tuple[int, ...] = ()
    callee: Operand | None = None
    alignment: int = 1
    scope: str = ""
    loop: int = -1

    @property
    def function(self) -> str:
        """The name of the called function; "" for other instructions and inline assembly."""
        return self.callee.name if isinstance(self.callee, Global) else ""


@dataclass
class Block:
    name: str
    instructions: list[Instruction] = field(default_factory=list)


@dataclass
class Function:
    """A function with a body. blocks: the entry first. variables: by the name of a value, the number of the variable's node of debug
    information that has this value or, for an alloca, this memory."""

    name: str
    parameters: tuple[Local, ...]
    result: Type
    blocks: list[Block]
    variables: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Variable:
    """A global variable. initial: None for an external one. described: the number of its node of debug information, -1 without one."""

    name: str
    type: Type
    initial: Operand | None
    space: int
    constant: bool
    described: int = -1


@dataclass(frozen=True)
class Position:
    """A DILocation. inlined: the number of the call's, -1 outside inlined code. scope: the number of the function or block."""

    line: int
    inlined: int
    column: int = 0
    scope: int = -1


@dataclass(frozen=True)
class Module:
    functions: Mapping[str, Function]
    variables: Mapping[str, Variable]
    positions: Mapping[int, Position]
    debug: DebugInformation


def locals_in(operand: Operand) -> Iterator[Local]:
    """Yield the SSA values in an operand."""
    match operand:
        case Local():
            yield operand
        case Aggregate():
            for item in operand.items:
                yield from locals_in(item)


def used_values(instruction: Instruction) -> Iterator[Local]:
    """Yield the SSA values that an instruction reads."""
    for operand in (*instruction.operands, *(value for _, value in instruction.incoming)):
        yield from locals_in(operand)
