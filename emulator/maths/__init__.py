"""Mathematical functions in the kernel language, by the names of their rows in the table of operations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..ir import library

if TYPE_CHECKING:
    from ..ir import nodes as ir
    from ..llvm.compiler import Library, ModuleText

_compiled: dict[str, Library] = {}


def _code(name: str) -> Library:
    if name not in _compiled:
        from .. import disk_cache  # late: `import simtbed` needs no compiler
        from ..llvm.compiler import LOOPS, NATIVE, compiled

        key = ("maths", name, disk_cache.edition())
        _, library_code = compiled(key, partial(_text, name), NATIVE, bytes, passes=LOOPS)
        _compiled.setdefault(name, library_code)  # the first of two threads stores its code
    return _compiled[name]


def _text(name: str) -> tuple[bytes, ModuleText]:
    from ..native.lowering import lower_native  # late: only for code missing from the disk cache
    from ..native.text import module
    from . import functions

    return b"", module(lower_native(getattr(functions, name), {}))


def _program(name: str) -> ir.Program:
    from ..native.lowering import native_program  # late: the front end is imported where a text is read
    from . import functions

    return native_program(getattr(functions, name), {})


library.enter(_code, _program)
