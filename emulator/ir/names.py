"""Names of generated registers and arrays: construction and parsing.

A name is text, because it is a key everywhere and is printed in the IR. Only this module builds and parses names: the user's name,
then `@3` for the third temporary of an expression, `@other2` for another variable of that name, `@value4` for a value of the
variable in a program that assigns each register once, `@callee2` for the second inlined call, `[4]` for an element of a register
array, and `@set` for the flag of an assigned element. `@.shape1` and `@.stride1` are an extent and a stride of an array, `@.offset`
is the first element of a view, `@.address` its address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, reduce

CONVERSION = "\0"
"""The mark of a conversion in a text of a `Print`."""

_TEXT = re.compile(r"([^@\[]*)((?:@[^@\[]*)*)(?:\[(\d+)\])?(@set)?")


@dataclass(frozen=True)
class Name:
    """A parsed name.

    user: the user's name. array: the register array of an element, else the whole name. element: its index.
    temporary: whether it has a value without a name in the source.
    """

    user: str
    array: str
    element: int | None
    temporary: bool

    @staticmethod
    @lru_cache(maxsize=4096)
    def parse(text: str) -> Name:
        """Parse a name."""
        match = _TEXT.fullmatch(text)
        assert match is not None, text
        user, suffixes, element, _ = match.groups()
        keys = [suffix[1:] for suffix in suffixes.split("@") if suffix.startswith(":")]
        generated = any(suffix.isdigit() or suffix.startswith(".") for suffix in suffixes.split("@"))
        return Name(".".join((user, *keys)), user + suffixes, None if element is None else int(element), generated)


def temporary(stem: str, number: int) -> str:
    """A register for an intermediate value of the frontend."""
    return f"{stem}@{number}"


def renamed(name: str, number: int) -> str:
    """The register of another variable that the user calls by the same name."""
    return f"{name}@other{number}"


def value(variable: str, number: int) -> str:
    """The register of one value of a variable, distinct from those of its other values."""
    return f"{variable}@value{number}"


def variable_of_value(register: str) -> str | None:
    """Return the variable of which a register is one value; None for other registers."""
    variable, separator, number = register.partition("@value")
    return variable if separator and number.isdigit() else None


def in_call(name: str, callee: str, number: int) -> str:
    """A register or array of a device function, in one of its inlined calls."""
    return f"{name}@{callee}{number}"


def extent(array: str, dimension: int) -> str:
    """The parameter that holds an extent of an array."""
    return f"{array}@.shape{dimension}"


def stride(array: str, dimension: int) -> str:
    """The parameter that holds a stride of an array, in elements."""
    return f"{array}@.stride{dimension}"


def offset(array: str) -> str:
    """The parameter that holds where a view begins, in elements."""
    return f"{array}@.offset"


def address(array: str) -> str:
    """Return the parameter that holds the address of an array."""
    return f"{array}@.address"


def component(record: str, key: str) -> str:
    """Return the register or parameter of a component of a tuple or a struct."""
    return f"{record}@:{key}"


def components(record: str, path: Iterable[str]) -> str:
    """Return the register or parameter of a component at a path of keys."""
    return reduce(component, path, record)


def of_layout(name: str) -> bool:
    """Return whether a name is an extent, a stride or an offset."""
    return "@." in name


def element(array: str, index: int) -> str:
    """The register that is an element of a register array."""
    return f"{array}[{index}]"


def elements(array: str, length: int | None) -> list[str]:
    """The registers of a register array."""
    return [element(array, index) for index in range(length or 0)]


def assigned_flag(register: str) -> str:
    """The register that says whether another one was assigned."""
    return f"{register}@set"


def variable_array(name: str) -> str:
    """Return the name of an array variable that is reassigned, for the time in which a function is read."""
    return f"{name}@array"


def which_array(name: str) -> str:
    """Return the register that selects the array of such a variable."""
    return f"{name}@which"
