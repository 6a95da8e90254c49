"""How a launch is interrupted: signals noted while compiled code runs, and the allowance after which it asks for them.

Python runs the handler of a signal in the main thread, between two of its own instructions. Compiled code has none: so
each loop takes the size of its body from an allowance, and calls Python when that is used up.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from ...llvm.builder import FunctionBuilder

ALLOWANCE = 1 << 22
"""Statements and operations of loops that compiled code executes between two calls: some 50 ms."""
REQUEST = -1
"""The number by which compiled code asks whether to go on; the data is the address of its thread's allowance."""


@contextmanager
def noted(raised: list[BaseException]) -> Iterator[None]:
    """Inside, what the handlers of signals raise is noted, so that it is not lost where Python ignores exceptions."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, frame: FrameType | None) -> None:
        handler = before[signal.Signals(number)]
        try:
            if callable(handler):
                handler(number, frame)
        except BaseException as error:
            raised.append(error)

    handled = [number for number, handler in before.items() if callable(handler)]
    for number in handled:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, before[number])


def answer(address: int, raised: Sequence[BaseException]) -> None:
    """Fill the allowance up again, or leave it used up: the code ends then."""
    ctypes.c_int64.from_address(address).value = -1 if raised else ALLOWANCE


def take(builder: FunctionBuilder, size: int) -> None:
    """Generate: take `size` from the allowance; where it is used up, ask whether to go on, and return 1 if not."""
    less = builder.let(f"sub i64 {builder.load('i64', '%.allowance', 'allowance')}, {size}", "allowance")
    builder.store("i64", less, "%.allowance")
    ask, leave, go = builder.label("ask"), builder.label("interrupted"), builder.label("go.on")
    builder.branch(builder.let(f"icmp sge i64 {less}, 0", "left"), go, ask, rarely=True)
    builder.place(ask)
    builder.do(f"call void %.host_call(i32 {REQUEST}, i64 0, i32 0, i32 0, ptr %.allowance)")
    now = builder.load("i64", "%.allowance", "allowance")
    builder.branch(builder.let(f"icmp sge i64 {now}, 0", "goes.on"), go, leave)
    builder.place(leave)
    builder.do("ret i32 1")
    builder.place(go)
