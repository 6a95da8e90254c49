"""Interrupts of a launch: recording of signals during compiled code, and an allowance of work between two polls.

Python runs signal handlers in the main thread, between two of its own instructions. Compiled code has none: each loop subtracts
the size of its body from an allowance, and calls Python when it is used up.
"""

import ctypes
import signal
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from types import FrameType
from typing import Any

from ...llvm.builder import FunctionBuilder

ALLOWANCE = 1 << 22
"""Statements and operations of loops between two calls of Python: about 50 ms."""
REQUEST = -1
"""Number of the host call that polls for interrupts; its data is the address of the thread's allowance."""

_SIGNALS = int(signal.SIGINT), int(signal.SIGTERM)
_INTERPRETER = import_module("_signal")  # `signal` converts each handler to an enumeration, which takes 5 us
_get_handler: Callable[[int], Any] = _INTERPRETER.getsignal
_set_handler: Callable[[int, Any], Any] = _INTERPRETER.signal


def begin_recording(raised: list[BaseException]) -> list[tuple[int, Any]]:
    """Record exceptions of signal handlers, which ctypes callbacks would discard. Return the handlers for `end_recording`."""
    if threading.get_ident() != threading.main_thread().ident:
        return []
    before: dict[int, Any] = {}

    def note(number: int, frame: FrameType | None) -> None:
        try:
            before[number](number, frame)
        except BaseException as error:
            raised.append(error)

    for number in _SIGNALS:
        if callable(handler := _get_handler(number)):
            before[number] = handler
            _set_handler(number, note)
    return [*before.items()]


def end_recording(handlers: list[tuple[int, Any]]) -> None:
    for number, handler in handlers:
        _set_handler(number, handler)


def answer(address: int, raised: Sequence[BaseException]) -> None:
    """Refill the allowance, or leave it used up to end the code."""
    ctypes.c_int64.from_address(address).value = -1 if raised else ALLOWANCE


def take(builder: FunctionBuilder, size: int) -> None:
    """Generate code that subtracts `size` from the allowance, polls when it is used up, and returns 1 on an interrupt."""
    less = builder.let(f"sub i64 {builder.load('i64', '%.allowance', 'allowance')}, {size}", "allowance")
    builder.store("i64", less, "%.allowance")
    poll, leave, proceed = builder.label("poll"), builder.label("interrupted"), builder.label("proceed")
    builder.branch(builder.let(f"icmp sge i64 {less}, 0", "left"), proceed, poll, rarely=True)
    builder.place(poll)
    builder.do(f"call void %.host_call(i32 {REQUEST}, i64 0, i32 0, i32 0, ptr %.allowance)")
    now = builder.load("i64", "%.allowance", "allowance")
    builder.branch(builder.let(f"icmp sge i64 {now}, 0", "resumed"), proceed, leave)
    builder.place(leave)
    builder.do("ret i32 1")
    builder.place(proceed)
