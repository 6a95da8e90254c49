"""Builder of LLVM IR text: types, constants, and the instructions of a function."""

import struct
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache

import numpy as np
from llvmlite.binding import llvm_version_info

from ..ir.library import PREFIX
from ..language.intrinsics import WARP_SIZE
from ..language.types import BOOL, F32, HALVES, Scalar

LANES = WARP_SIZE
IOTA = range(LANES)
FULL = -1
"""Mask of all lanes, as an i32."""
UNALIGNED = ("i32", "1")
"""The alignment of a masked memory operation: an operand in LLVM before 22, since then an attribute."""


def scalar_type(type: Scalar) -> str:
    """Return the register type of a scalar. A half is its bits, independent of the processor's own halves."""
    if type in HALVES:
        return "i16"
    if type.is_float:
        return "float" if type is F32 else "double"
    return f"i{type.bits}"


def memory_type(type: Scalar) -> str:
    """Return the memory type of a scalar: a bool is a byte."""
    return "i8" if type is BOOL else scalar_type(type)


def many(element: str) -> str:
    """Return the type of a vector with one value a lane."""
    return f"<{LANES} x {element}>"


def suffix(type: str) -> str:
    """Return a type as written in the name of an intrinsic: v32f32."""
    if type.startswith("<"):
        count, _, element = type.strip("<>").partition(" x ")
        return f"v{count}{suffix(element)}"
    return {"float": "f32", "double": "f64", "ptr": "p0"}.get(type, type)


def literal(value: bool | int | float, type: Scalar) -> str:
    """Return a constant of a scalar type."""
    if type is BOOL:
        return "true" if value else "false"
    if not type.is_float:
        return str(int(value))
    if type in HALVES:
        return str(int(np.array(value, type.dtype).view(np.uint16)))
    exact = float(type.dtype.type(value))
    return f"0x{struct.unpack('<Q', struct.pack('<d', exact))[0]:016X}"


def is_constant(operand: str) -> bool:
    """Return whether an operand is a constant rather than a result or a parameter."""
    return not operand.startswith("%")


def splat(element: str, value: object) -> str:
    """Return a constant with one value for all lanes."""
    return f"splat ({element} {value})"


def vector(element: str, values: Iterable[object]) -> str:
    """Return a constant with one value a lane."""
    return "<" + ", ".join(f"{element} {v}" for v in values) + ">"


@lru_cache(maxsize=4096)
def quoted(name: str) -> str:
    """Return a program's name as a component of an LLVM name; the printer's own names start with a dot."""
    return "".join(
        c if c.isascii() and (c.isalnum() or c in "._") else "." if c.isascii() else f"u{ord(c):x}" for c in name
    )


class FunctionBuilder:
    """The text of one function: instructions in order, stack slots, and called functions."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.slots: list[str] = []
        self.used: set[str] = set()  # functions called
        self.declared: set[str] = set()  # declarations of LLVM intrinsics and library functions
        self.block = ".entry"
        self._numbers: dict[str, int] = {}
        self._names = {".entry"}

    def reserve(self, *names: str) -> None:
        """Reserve names used elsewhere in the function."""
        self._names.update(names)

    def name(self, hint: str) -> str:
        """Return a new name: the hint, numbered if it is in use."""
        hint = name = quoted(hint)
        while name in self._names:
            self._numbers[hint] = self._numbers.get(hint, 0) + 1
            name = f"{hint}.{self._numbers[hint]}"
        self._names.add(name)
        return name

    # -------------------------------------------------------------- instructions
    def comment(self, text: str) -> None:
        """Add a comment. Non-ASCII characters are escaped: file names may contain bytes invalid in LLVM text."""
        self.lines.append(f"  ; {text.encode('ascii', 'backslashreplace').decode('ascii')}")

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def let(self, text: str, hint: str = "v") -> str:
        """Add an instruction with a result. Return its name."""
        name = f"%{self.name(hint)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def call(self, result: str, function: str, *arguments: tuple[str, str], hint: str = "v") -> str:
        """Call a function with (type, value) arguments. Return the result's name; empty for void."""
        self.used.add(function)
        if function.startswith("llvm.masked.") and llvm_version_info[0] < 22:
            pointer = next(n for n, (type, _) in enumerate(arguments) if type.endswith(("ptr", "ptr>")))
            arguments = (*arguments[: pointer + 1], UNALIGNED, *arguments[pointer + 1 :])
        if function.startswith(("llvm.", PREFIX)):
            self.declared.add(f"declare {result} @{function}({', '.join(t for t, _ in arguments)})")
        text = f"call {result} @{function}({', '.join(f'{t} {v}' for t, v in arguments)})"
        if result == "void":
            self.do(text)
            return ""
        return self.let(text, hint)

    def intrinsic(self, name: str, type: str, *arguments: str, hint: str = "v") -> str:
        """Call an LLVM intrinsic with arguments and result of one type."""
        return self.call(type, f"{name}.{suffix(type)}", *((type, a) for a in arguments), hint=hint)

    # -------------------------------------------------------------- blocks
    def label(self, hint: str) -> str:
        return self.name(hint)

    def place(self, label: str) -> None:
        """Start a basic block."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        self.do(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str, rarely: bool = False) -> None:
        """Branch. rarely: the branch to `no` is unlikely."""
        weight = ", !prof !0" if rarely else ""
        self.do(f"br i1 {condition}, label %{yes}, label %{no}{weight}")

    @contextmanager
    def when(self, condition: str, hint: str, holds: bool = True, rarely: bool = False) -> Iterator[None]:
        """Generate statements that run if a condition holds, or if it does not. hint: of their label. rarely: as for `branch`."""
        inside, after = self.label(hint), self.label("continue")
        yes, no = (inside, after) if holds else (after, inside)
        self.branch(condition, yes, no, rarely)
        self.place(inside)
        yield
        self.jump(after)
        self.place(after)

    def when_any(self, mask: str, hint: str, rarely: bool = False) -> AbstractContextManager[None]:
        """Generate statements that run if an i32 is not 0. rarely: they are unlikely."""
        return self.when(self.let(f"icmp eq i32 {mask}, 0", "none"), hint, holds=False, rarely=rarely)

    def phi(self, type: str, *incoming: tuple[str, str], hint: str = "v") -> str:
        """Merge (value, block) pairs."""
        return self.let(f"phi {type} " + ", ".join(f"[ {value}, %{block} ]" for value, block in incoming), hint)

    # -------------------------------------------------------------- memory
    def slot(self, type: str, hint: str) -> str:
        """Add a stack slot of the function, 64-byte aligned. Return its name, the hint if unused."""
        name = f"%{self.name(hint)}"
        self.slots.append(f"  {name} = alloca {type}, align 64")
        return name

    def load(self, type: str, pointer: str, hint: str = "v", align: int = 0) -> str:
        return self.let(f"load {type}, ptr {pointer}" + (f", align {align}" if align else ""), hint)

    def store(self, type: str, value: str, pointer: str, align: int = 0) -> None:
        self.do(f"store {type} {value}, ptr {pointer}" + (f", align {align}" if align else ""))

    def element(self, type: str, pointer: str, index: object, hint: str = "at", width: str = "i64") -> str:
        """Return the address of an element."""
        return self.let(f"getelementptr {type}, ptr {pointer}, {width} {index}", hint)

    def add_to(self, pointer: str, amount: object) -> None:
        """Add to an i64 in memory."""
        old = self.load("i64", pointer, "old")
        self.store("i64", self.let(f"add i64 {old}, {amount}", "new"), pointer)
