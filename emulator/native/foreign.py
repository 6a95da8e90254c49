"""Batched calls of C functions from machine code: the interpreter lock is released once for all calls."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..llvm.compiler import LOOPS, NATIVE, ModuleText, compiled

ARGUMENTS = 4
"""Argument slots of a call. Functions with fewer arguments ignore the rest."""
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
    """Run calls in order.

    calls: int64[calls, COLUMNS], contiguous: the address of a function, its integer or pointer arguments, and a slot
    for its result. A result narrower than 64 bits is valid in its low bits. Nothing is checked: the memory behind
    addresses must live and have the expected size.
    """
    _code()(calls.ctypes.data, len(calls))


@cache
def _code() -> Any:
    """Return the machine code, with a reference to its library."""
    _, library = compiled(
        ("foreign", _TEXT), lambda: (b"", ModuleText(_TEXT, {}, [], "")), NATIVE, lambda kept: None, passes=LOOPS
    )
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(library.address)
    call.library = library  # type: ignore[attr-defined]
    return call
