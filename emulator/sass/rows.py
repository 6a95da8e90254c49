"""Rows of the opcode table: operands, modifiers, meaning."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .operands import Decoded, Operand, UnsupportedInstruction

DESTINATIONS = frozenset("RDPQ")
_KINDS = {
    **dict.fromkeys("RD", ("register",)),
    "P": ("predicate",),
    "Q": ("name",),
    **dict.fromkeys("iwxlfd", ("register", "integer", "float", "constant")),
    "h": ("register", "float"),
    "p": ("predicate",),
    "n": ("integer",),
    **dict.fromkeys("sA", ("name",)),
}


@dataclass(frozen=True)
class Row:
    """An opcode, or its form with some modifiers.

    operands: one letter each, with "?" if it may be absent. Destinations: R 32 bits, D 64 bits, P a predicate, Q all
    predicates. Sources: i uint32; w uint64, a negated one as 2**32 - x; x uint32 without its sign; l uint64; f float32;
    d float64; h uint32, a pair of float16; p bool; n an int; s a special register; A all predicates as bits; m, without
    an operand, the active lanes, bool[warps, 32]; o the old value of the first destination, a predicate. meaning: returns
    the results in the order of the destinations, given the instruction and the sources. required: modifiers of this form, in
    order. modifiers: others that the meaning understands.
    """

    opcode: str
    operands: str
    meaning: Callable[..., Any]
    modifiers: str = ""
    required: str = ""

    def accepts(self, op: Decoded) -> bool:
        """Return whether an instruction has only known modifiers, and all required ones in their order."""
        required = self.required.split()
        ordered = [name for name in op.modifiers if name in set(required)]
        return list(dict.fromkeys(ordered)) == list(dict.fromkeys(required)) and op.flags <= {
            *required,
            *self.modifiers.split(),
        }


@dataclass(frozen=True)
class Bound:
    """An instruction of a row. operands: by letter of the row, None for an absent one."""

    op: Decoded
    row: Row
    operands: tuple[tuple[str, Operand | None], ...]


def bind(op: Decoded, rows: Sequence[Row]) -> Bound:
    """Assign the operands of an instruction to the letters of its row. Raises UnsupportedInstruction."""
    row = next((row for row in rows if row.accepts(op)), None)
    if row is None:
        raise UnsupportedInstruction(f"no row of the opcode table is for {op}")
    waiting, bound = list(op.operands), list[tuple[str, Operand | None]]()
    letters = row.operands.split()
    for number, letter in enumerate(letters):
        if letter == "m":
            bound.append((letter, None))
        elif letter == "o":
            bound.append(("p", bound[0][1]))
        elif waiting and _fits(letter[0], waiting[0]):
            operand = waiting.pop(0)
            bound.append((letter[0], operand))
            if letter[0] == "h" and operand.kind == "float" and waiting:  # both halves of an immediate are listed
                waiting.pop(0)
        elif letter.endswith("?"):
            bound.append((letter[0], None))
        else:
            raise UnsupportedInstruction(f"operand {number + 1} of {op}")
    if waiting:
        raise UnsupportedInstruction(f"the operand {waiting[0].text} of {op}")
    return Bound(op, row, tuple(bound))


def _fits(letter: str, operand: Operand) -> bool:
    return operand.kind in _KINDS[letter]
