"""LLVM IR as text: how types and constants are written, and a page that instructions are added to."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from ..ir.library import PREFIX
from ..language.intrinsics import WARP_SIZE
from ..language.types import BOOL, F32, HALVES, Scalar

LANES = WARP_SIZE
IOTA = range(LANES)
FULL = -1
"""A mask of all lanes, as an i32."""


def scalar_type(type: Scalar) -> str:
    """A value of the type in a register: a half as its bits, so that no processor's own halves are used."""
    if type in HALVES:
        return "i16"
    if type.is_float:
        return "float" if type is F32 else "double"
    return f"i{type.bits}"


def memory_type(type: Scalar) -> str:
    """A value of the type in memory: a bool is a byte there."""
    return "i8" if type is BOOL else scalar_type(type)


def many(element: str) -> str:
    """One value a lane."""
    return f"<{LANES} x {element}>"


def suffix(type: str) -> str:
    """A type as it stands in the name of an intrinsic: v32f32."""
    if type.startswith("<"):
        count, _, element = type.strip("<>").partition(" x ")
        return f"v{count}{suffix(element)}"
    return {"float": "f32", "double": "f64", "ptr": "p0"}.get(type, type)


def literal(value: bool | int | float, type: Scalar) -> str:
    """A constant of a scalar type."""
    if type is BOOL:
        return "true" if value else "false"
    if not type.is_float:
        return str(int(value))
    if type in HALVES:
        return str(int(np.array(value, type.dtype).view(np.uint16)))
    exact = float(type.dtype.type(value))
    return f"0x{struct.unpack('<Q', struct.pack('<d', exact))[0]:016X}"


def is_constant(operand: str) -> bool:
    """Whether an operand is a constant, and not a value that an instruction or a parameter gave."""
    return not operand.startswith("%")


def splat(element: str, value: object) -> str:
    """A constant that every lane holds."""
    return f"splat ({element} {value})"


def vector(element: str, values: Iterable[object]) -> str:
    """A constant with one value a lane."""
    return "<" + ", ".join(f"{element} {v}" for v in values) + ">"


@lru_cache(maxsize=4096)
def quoted(name: str) -> str:
    """A name of the program as part of an LLVM name; the printer's own names begin with a dot."""
    return "".join(
        c if c.isascii() and (c.isalnum() or c in "._") else "." if c.isascii() else f"u{ord(c):x}" for c in name
    )


class FunctionBuilder:
    """The text of one function: its instructions in order, its stack slots, and what it calls."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.slots: list[str] = []
        self.used: set[str] = set()  # functions called
        self.declared: set[str] = set()  # LLVM's own and those of the library among them, with their types
        self.block = ".entry"
        self._numbers: dict[str, int] = {}
        self._taken = {".entry"}

    def reserve(self, *names: str) -> None:
        """Names used elsewhere in the function."""
        self._taken.update(names)

    def name(self, hint: str) -> str:
        """A new name: the hint, numbered where it is taken."""
        hint = name = quoted(hint)
        while name in self._taken:
            self._numbers[hint] = self._numbers.get(hint, 0) + 1
            name = f"{hint}.{self._numbers[hint]}"
        self._taken.add(name)
        return name

    # -------------------------------------------------------------- instructions
    def comment(self, text: str) -> None:
        """A line for readers. What is not ASCII is escaped: names of files need not be text that LLVM takes."""
        self.lines.append(f"  ; {text.encode('ascii', 'backslashreplace').decode('ascii')}")

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def let(self, text: str, hint: str = "v") -> str:
        """An instruction with a result; its name."""
        name = f"%{self.name(hint)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def call(self, result: str, function: str, *arguments: tuple[str, str], hint: str = "v") -> str:
        """Call a function with (type, value) arguments; the result's name, empty where there is none."""
        self.used.add(function)
        if function.startswith(("llvm.", PREFIX)):
            self.declared.add(f"declare {result} @{function}({', '.join(t for t, _ in arguments)})")
        text = f"call {result} @{function}({', '.join(f'{t} {v}' for t, v in arguments)})"
        if result == "void":
            self.do(text)
            return ""
        return self.let(text, hint)

    def intrinsic(self, name: str, type: str, *arguments: str, hint: str = "v") -> str:
        """An LLVM intrinsic whose arguments and result have one type."""
        return self.call(type, f"{name}.{suffix(type)}", *((type, a) for a in arguments), hint=hint)

    # -------------------------------------------------------------- blocks
    def label(self, hint: str) -> str:
        return self.name(hint)

    def place(self, label: str) -> None:
        """Go on with this block."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        self.do(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str, rarely: bool = False) -> None:
        """`rarely`: the second way is hardly ever taken."""
        weight = ", !prof !0" if rarely else ""
        self.do(f"br i1 {condition}, label %{yes}, label %{no}{weight}")

    def phi(self, type: str, *ways: tuple[str, str], hint: str = "v") -> str:
        """Merge (value, block) pairs."""
        return self.let(f"phi {type} " + ", ".join(f"[ {value}, %{block} ]" for value, block in ways), hint)

    # -------------------------------------------------------------- memory
    def slot(self, type: str, hint: str) -> str:
        """A stack slot of the function, 64-byte aligned; its name is the hint where that is free."""
        name = f"%{self.name(hint)}"
        self.slots.append(f"  {name} = alloca {type}, align 64")
        return name

    def load(self, type: str, pointer: str, hint: str = "v", align: int = 0) -> str:
        return self.let(f"load {type}, ptr {pointer}" + (f", align {align}" if align else ""), hint)

    def store(self, type: str, value: str, pointer: str, align: int = 0) -> None:
        self.do(f"store {type} {value}, ptr {pointer}" + (f", align {align}" if align else ""))

    def element(self, type: str, pointer: str, index: object, hint: str = "at", width: str = "i64") -> str:
        """The address of an element."""
        return self.let(f"getelementptr {type}, ptr {pointer}, {width} {index}", hint)

    def add_to(self, pointer: str, amount: object) -> None:
        """Add to an i64 in memory."""
        old = self.load("i64", pointer, "old")
        self.store("i64", self.let(f"add i64 {old}, {amount}", "new"), pointer)
