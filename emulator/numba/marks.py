"""The state of compilations for the emulator, and the changes of Numba that its packages have in common."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..span import Span
from .packages import Package
from .positions import Positions


class Marks(threading.local):
    """The state of a compilation in this thread. target: the variable that is being assigned. position: number of that of the
    statement."""

    active = False
    target = ""
    position = 0


@dataclass(frozen=True)
class RaisedException:
    """An exception of a kernel: its type and arguments; function, file and line as Numba reports them; the statement's position,
    None in a library."""

    type: type[BaseException]
    arguments: tuple[Any, ...]
    place: tuple[str, str, int] | None
    span: Span | None

    @property
    def message(self) -> str:
        """The message of its finding."""
        text = ", ".join(map(str, self.arguments))
        return f"{self.type.__name__}: {text}" if text else self.type.__name__


MARKS = Marks()
POSITIONS = Positions()
EXCEPTIONS: dict[int, RaisedException] = {}
"""The exceptions of all functions by the code that they return: a kernel returns the codes of its device functions."""
FIRST_CODE = 1_577_058_304
"""The first code, a number that Numba's IR does not contain otherwise."""


@contextmanager
def active_marks(package: Package, debug: bool) -> Iterator[None]:
    """Preserve positions, accesses and names in the compilations of this thread. debug: whether the user requested positions."""
    before, MARKS.active = MARKS.active, True
    try:
        with warnings.catch_warnings():
            if not debug:
                warnings.simplefilter("ignore", package.submodule("core.errors").NumbaDebugInfoWarning)
            yield
    finally:
        MARKS.active = before


def preserve_columns(package: Package) -> None:
    """Add the position of its expression to the line of each instruction that the package reads from bytecode."""
    bytecode = package.submodule("core.bytecode")
    original = bytecode._ByteCode._compute_lineno.__func__

    def compute_lineno(cls: Any, table: Any, code: Any) -> Any:
        result = original(cls, table, code)
        if MARKS.active:
            lines = POSITIONS.of_code(code)
            for offset, instruction in table.items():
                unit = (offset - bytecode._FIXED_OFFSET) // 2
                if 0 <= unit < len(lines) and lines[unit] is not None:
                    instruction.lineno = lines[unit]
        return result

    bytecode._ByteCode._compute_lineno = classmethod(compute_lineno)


def variable_name(package: Package, blocks: Any, target: Any) -> str:
    """Return the name of a variable; for a temporary value that of the variable to which it is assigned, or nothing."""
    numba_ir = package.submodule("core.ir")
    if not target.name.startswith("$"):
        return identifier(target.unversioned_name)
    for block in blocks.values():
        for statement in block.find_insts(numba_ir.Assign):
            if isinstance(statement.value, numba_ir.Var) and statement.value.name == target.name:
                return "" if statement.target.name.startswith("$") else identifier(statement.target.unversioned_name)
    return ""


def identifier(name: str) -> str:
    """Return a variable's name with letters, digits and underscores."""
    return "".join(character if character.isalnum() else "_" for character in name)
