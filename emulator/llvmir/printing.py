"""Calls of vprintf: the format, and the values that the kernel stored in the argument buffer."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..ir import nodes as ir
from ..ir.names import CONVERSION
from ..language.types import I32
from .accesses import Scope
from .arithmetic import cast, constant, operation, unsigned
from .emitting import Emitter
from .module import Instruction, Local, Operand
from .pointers import Memories, Memory, Pointer
from .types import UnsupportedError, memory_scalar
from .values import Item

_CONVERSION = re.compile(r"%%|%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*)?)?(?:hh|h|ll|l|z|j|t|L)?([diuxXofFeEgGaAcsp])")

UNSIGNED_CONVERSIONS = "uxXo"
NO_TEXT = "(null)"
"""The text of an address 0, with which Numba fills a new buffer."""


@dataclass(frozen=True)
class TextChoice:
    """One of several constant texts, by the value of an integer."""

    which: ir.Expr
    texts: tuple[str, ...]


class PrintBuffers:
    """The argument buffers of vprintf: an alloca each, whose items are registers by their offset."""

    def __init__(self, instructions: Iterable[Instruction], memories: Memories, emitter: Emitter) -> None:
        self.emitter = emitter
        self.buffers: set[Memory] = set()
        self.null = memories.null
        self._items: dict[tuple[Memory, int], ir.Reg | str | TextChoice] = {}
        for instruction in instructions:
            if instruction.function == "vprintf":
                self.buffers |= {
                    memory for memory in memories.addressed_by(instruction.operands[1]) if memory.space == "local"
                }

    def is_buffer(self, memories: Iterable[Memory]) -> bool:
        return any(memory in self.buffers for memory in memories)

    def store(self, pointer: Pointer, value: Item, operand: Operand) -> None:
        """Record a stored item. Raises UnsupportedError for a text that is not constant."""
        if len(pointer.memories) > 1 or pointer.terms:
            raise UnsupportedError("a computed position in the arguments of vprintf is not supported")
        key = pointer.memories[0], pointer.constant
        if isinstance(value, Pointer):
            text = NO_TEXT if value == self.null else self._text(value)
            if self._items.setdefault(key, text) == NO_TEXT:
                self._items[key] = text
            elif text not in (NO_TEXT, self._items[key]):
                raise UnsupportedError("a text of vprintf that depends on control flow is not supported")
            return
        assert not isinstance(value, list)
        register = self._items.get(key)
        if register is None:
            register = self._items[key] = self.emitter.register("printed", memory_scalar(operand.type))
        assert isinstance(register, ir.Reg)
        self.emitter.assign(register, cast(value, memory_scalar(operand.type)))

    def _text(self, pointer: Pointer) -> str | TextChoice:
        """Return the constant text at a pointer, or those at a pointer that depends on control flow."""
        if pointer.which is None:
            return text_at(pointer)
        targets = (replace(pointer, memories=(memory,), which=None) for memory in pointer.memories)
        return TextChoice(self.emitter.let(pointer.which, "text"), tuple(map(text_at, targets)))

    def items(self, memory: Memory) -> list[ir.Reg | str | TextChoice]:
        """Return the items of a buffer in order."""
        own = sorted((offset, item) for (buffer, offset), item in self._items.items() if buffer is memory)
        return [item for _, item in own]


def text_at(pointer: Pointer) -> str:
    """Return the text of a constant, up to its zero byte. Raises UnsupportedError for other memory."""
    (memory, *more) = pointer.memories
    if more or pointer.terms or memory.space != "constant":
        raise UnsupportedError("a text that is not constant is not supported in vprintf")
    return memory.content[pointer.constant :].split(b"\0")[0].decode(errors="replace")


def translate_print(scope: Scope, buffers: PrintBuffers, call: Instruction) -> ir.Expr:
    """Emit a `Print` for a call of vprintf. Return its result, the number of arguments."""
    text = text_at(scope.values.pointer(call.operands[0]))
    arguments: list[ir.Reg | str | TextChoice] = []
    if isinstance(call.operands[1], Local):
        pointer = scope.values.pointer(call.operands[1])
        arguments = buffers.items(pointer.memories[0])
    items: list[str | ir.Expr | TextChoice] = []
    end, number = 0, 0
    keeps_form = scope.memories.single
    for match in _CONVERSION.finditer(text):
        items.append(text[end : match.start()])
        end = match.end()
        if match[0] == "%%":
            items.append("%")
            continue
        if keeps_form:
            items.append(CONVERSION + match[0])
        for _ in range(match[0].count("*")):  # a width or a precision
            width = arguments[number] if number < len(arguments) else None
            if not keeps_form or not isinstance(width, ir.Reg):
                raise UnsupportedError("a width of a conversion by an argument is not supported")
            items.append(width)
            number += 1
        if number == len(arguments):
            raise UnsupportedError("a vprintf with fewer arguments than its format is not supported")
        argument = arguments[number]
        items.append(
            unsigned(argument) if match[1] in UNSIGNED_CONVERSIONS and isinstance(argument, ir.Reg) else argument
        )
        number += 1
    rest = text[end:]
    items.append(rest.removesuffix("\n"))
    if keeps_form and not text.endswith("\n"):
        items.append(CONVERSION)
    _print(scope.emitter, items)
    zero = scope.values.zero(call.type)
    assert not isinstance(zero, Pointer | list)
    return zero


def _print(emitter: Emitter, items: Sequence[str | ir.Expr | TextChoice]) -> None:
    """Emit the prints of a line: one for each choice of texts."""
    number = next((number for number, item in enumerate(items) if isinstance(item, TextChoice)), None)
    if number is None:
        plain = [item for item in items if not isinstance(item, TextChoice)]
        emitter.emit(ir.Print(tuple(item for item in _joined(plain) if item != ""), emitter.span))
        return
    choice = items[number]
    assert isinstance(choice, TextChoice)
    for value, text in enumerate(choice.texts):
        with emitter.block() as body:
            before = [*items[:number]]
            if before and isinstance(form := before[-1], str) and form.startswith(CONVERSION):
                before.pop()
                text = form.removeprefix(CONVERSION) % text
            _print(emitter, [*before, text, *items[number + 1 :]])
        is_this = operation("eq", choice.which, constant(value, I32, emitter.span))
        emitter.emit(ir.If(is_this, tuple(body), (), emitter.span))


def _joined(items: Iterable[str | ir.Expr]) -> Iterable[str | ir.Expr]:
    """Join neighbouring texts."""
    text = ""
    for item in items:
        if isinstance(item, str):
            text += item
            continue
        yield text
        text = ""
        yield item
    yield text
