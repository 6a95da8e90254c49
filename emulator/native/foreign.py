"""C functions called one after the other by machine code: the interpreter's lock is let go once for all of the calls."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..llvm.compiler import LOOPS, NATIVE, ModuleText, compiled

ARGUMENTS = 4
"""Of a call. A function that takes fewer does not look at the others."""
RESULT = 1 + ARGUMENTS
COLUMNS = RESULT + 1

_TEXT = f"""
define void @{NATIVE}(ptr %calls, i64 %number) nounwind {{
entry:
  %end = getelementptr [{COLUMNS} x i64], ptr %calls, i64 %number
  %none = icmp eq i64 %number, 0
  br i1 %none, label %done, label %one
one:
  %call = phi ptr [ %calls, %entry ], [ %next, %one ]
  %function = load ptr, ptr %call
  %at1 = getelementptr i64, ptr %call, i64 1
  %at2 = getelementptr i64, ptr %call, i64 2
  %at3 = getelementptr i64, ptr %call, i64 3
  %at4 = getelementptr i64, ptr %call, i64 4
  %a = load i64, ptr %at1
  %b = load i64, ptr %at2
  %c = load i64, ptr %at3
  %d = load i64, ptr %at4
  %result = call i64 %function(i64 %a, i64 %b, i64 %c, i64 %d)
  %at{RESULT} = getelementptr i64, ptr %call, i64 {RESULT}
  store i64 %result, ptr %at{RESULT}
  %next = getelementptr i64, ptr %call, i64 {COLUMNS}
  %last = icmp eq ptr %next, %end
  br i1 %last, label %done, label %one
done:
  ret void
}}
"""


def call_all(calls: npt.NDArray[np.int64]) -> None:
    """Make calls in their order. calls: int64[calls, COLUMNS], contiguous: the address of a function, its arguments, which
    are integers or addresses, and a place for its result: of a type narrower than 64 bits the low ones tell, of none
    nothing. Nothing is checked: what addresses lead to must live and be of the size that the functions take it for.
    """
    _code()(calls.ctypes.data, len(calls))


@cache
def _code() -> Any:
    """The machine code, with what holds it."""
    _, library = compiled(
        ("foreign", _TEXT), lambda: (b"", ModuleText(_TEXT, {}, [], "")), NATIVE, lambda kept: None, passes=LOOPS
    )
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(library.address)
    call.library = library  # type: ignore[attr-defined]
    return call
