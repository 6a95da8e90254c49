"""Trace functions of the interpreter that number the statements of each thread of a block.

The numbers are those of every other run of the block: a thread and a number identify a point of its execution.
"""

from __future__ import annotations

import dis
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from types import CodeType, FrameType
from typing import Any

from ..engines.python.expressions import THREAD
from ..engines.python.threads import Fault, Thread

_RETURNS = {dis.opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in dis.opmap}


@dataclass(frozen=True)
class Statement:
    """An execution of a source line by a thread. number: of the executions of this line by the thread, from 1."""

    code: CodeType
    line: int
    number: int


@dataclass(frozen=True)
class Place:
    """A thread before a statement. block, thread: linear. number: of the statement among all those of the thread, from 1. phase:
    barriers of the block before."""

    block: int
    thread: int
    number: int
    phase: int
    statement: Statement


class Tracer:
    """A function for `sys.settrace`. code: the code objects of the kernel and its device functions."""

    def __init__(self, code: Collection[CodeType]) -> None:
        self.code = code
        self.threads: dict[FrameType, Thread] = {}
        self.executions: Counter[tuple[Thread, CodeType, int]] = Counter()

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Tracer | None:
        if frame.f_code not in self.code:
            return None
        if event == "call":
            if frame not in self.threads:
                self.threads[frame] = frame.f_locals[THREAD]
            return self
        thread = self.threads[frame]
        if event == "line" and frame.f_lineno != _header(frame.f_code):
            thread.line += 1
            self.executions[thread, frame.f_code, frame.f_lineno] += 1
            self.at_statement(thread, frame)
        elif event == "exception" and isinstance(arg[1], Fault):
            self.at_fault(thread, frame, arg[1])
        elif event == "return" and is_end(frame):
            self.at_return(thread, frame)
        return self

    def place(self, thread: Thread, frame: FrameType) -> Place:
        """Return the place of a thread before the statement of its innermost frame."""
        number = self.executions[thread, frame.f_code, frame.f_lineno]
        statement = Statement(frame.f_code, frame.f_lineno, number)
        block = thread.block
        return Place(block.linear, thread.linear, thread.line, block.launch.phase(block.linear), statement)

    def depth(self, frame: FrameType | None) -> int:
        """Return the number of frames of the kernel up to this one."""
        depth = 0
        while frame is not None:
            depth += frame.f_code in self.code
            frame = frame.f_back
        return depth

    def at_statement(self, thread: Thread, frame: FrameType) -> None:
        """Called before each statement."""

    def at_fault(self, thread: Thread, frame: FrameType, fault: Fault) -> None:
        """Called at a finding, in each frame that it leaves, innermost first."""

    def at_return(self, thread: Thread, frame: FrameType) -> None:
        """Called when a function ends."""


class Visitor(Tracer):
    """Calls a function before each statement."""

    def __init__(self, code: Collection[CodeType], visit: Callable[[Place, FrameType], None]) -> None:
        super().__init__(code)
        self.visit = visit

    def at_statement(self, thread: Thread, frame: FrameType) -> None:
        self.visit(self.place(thread, frame), frame)


@cache
def _header(code: CodeType) -> int:
    """Return the line of a function's header, where constants are assigned before its first statement; 0 for a function in one line."""
    has_body = any(line is not None and line > code.co_firstlineno for _, _, line in code.co_lines())
    return code.co_firstlineno if has_body else 0


def is_end(frame: FrameType) -> bool:
    """Return whether a frame ends with a return, and does not wait at a `yield`."""
    return frame.f_code.co_code[frame.f_lasti] in _RETURNS
