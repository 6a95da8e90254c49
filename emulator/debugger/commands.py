"""The debugger of kernels: pdb's commands in one thread of a block, and commands for threads, warps and memory.

A stop is a point of the deterministic execution of a block. `back`, `thread` and `other` run the block again, to another point.
"""

from __future__ import annotations

import pdb
import sys
from bdb import BdbQuit
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TextIO

from ..engines.python.threads import Access, Fault, Thread
from ..errors import SimtbedError, render
from ..escaping import printable, terminal
from ..language.intrinsics import WARP_SIZE
from ..runtime.result import in_words
from ..sanitizer.places import thread_text
from ..span import name_of
from ..tracebacks import is_own_frame
from .facts import History, element_of, history_text, lane_table, linear_index, memory_table, ranges
from .session import RunEnded, Session
from .tracing import Place, Statement, Tracer

Goal = Callable[[Place, FrameType], bool]
"""Whether to stop before a statement."""


class _Run(Tracer):
    """The tracer of an interactive run."""

    def __init__(self, code: Any, debugger: KernelDebugger) -> None:
        super().__init__(code)
        self.debugger = debugger

    def at_statement(self, thread: Thread, frame: FrameType) -> None:
        self.debugger.at_statement(thread, frame)

    def at_fault(self, thread: Thread, frame: FrameType, fault: Fault) -> None:
        self.debugger.at_fault(thread, frame, fault)

    def at_return(self, thread: Thread, frame: FrameType) -> None:
        self.debugger.at_return(thread, frame)


class KernelDebugger(pdb.Pdb):
    """Debugs one launch. Standard output and input by default; a command from a file or a pipe is printed behind its prompt."""

    def __init__(self, session: Session, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
        # A `.pdbrc` of the current folder may be another user's.
        super().__init__(stdin=stdin, stdout=stdout, nosigint=True, readrc=False)
        self.reset()
        self.prompt = "(simtbed) "
        self.use_rawinput = stdin is None and self.stdin.isatty()
        self.session = session
        self.goal: Goal | None = None
        self.missed = ""
        self.place: Place | None = None
        self.fault: Fault | None = None
        self.tracer: _Run = _Run((), self)
        self._next_goal: tuple[Session, Goal, str] | None = None
        self._thread: Thread | None = None
        self._mode, self._depth, self._line = "goal", 0, 0
        self._shown = ""

    # -------------------------------------------------------------- runs
    def debug(self, goal: Goal) -> None:
        """Run the block, and stop where the goal says so and at a finding, until the user continues to the end or quits."""
        hook = sys.breakpointhook
        sys.breakpointhook = self._breakpoint
        try:
            self._debug(goal)
        finally:
            sys.breakpointhook = hook

    def _breakpoint(self, *args: object) -> None:
        """Stop at a call of `breakpoint()` in a kernel."""
        frame = sys._getframe(1)
        if frame in self.tracer.threads and self._mode != "goal":
            self._stop(self.tracer.threads[frame], frame)

    def _debug(self, goal: Goal) -> None:
        self._begin(goal, "")
        while True:
            launch = self.session.start(self._survives)
            self.tracer = _Run(self.session.code, self)
            try:
                self.session.run(launch, self.tracer)
            except RunEnded:
                if self._next_goal is not None:
                    self.session, goal, missed = self._next_goal
                    self._begin(goal, missed)
                    continue
            except BdbQuit:
                pass
            if self._mode != "goal" or self.quitting or self.place is None:
                if self.place is not None and not self.quitting:
                    self.message("the finding ends the launch" if self.fault is not None else "the block has ended")
                return
            self.message(self.missed)
            self._begin(_at(self.place), "")

    def _begin(self, goal: Goal, missed: str) -> None:
        self.goal, self.missed, self._mode, self._next_goal = goal, missed, "goal", None
        self._thread = None

    def _survives(self, thread: Thread) -> bool:
        """Return whether a finding ends its thread alone: on the path to another place."""
        return self._mode == "goal" and self.place is not None

    def _run_again(self, goal: Goal, missed: str, session: Session | None = None) -> int:
        """Run the block again up to a goal. missed: message if no statement is the goal."""
        self._next_goal = session or self.session, goal, missed
        return 1

    # -------------------------------------------------------------- events of the tracer
    def at_statement(self, thread: Thread, frame: FrameType) -> None:
        """Stop before a statement if the last command or a breakpoint says so."""
        if self._stops(thread, frame) or (self._mode != "goal" and self.break_here(frame)):
            self._stop(thread, frame)

    def _stops(self, thread: Thread, frame: FrameType) -> bool:
        if self._mode == "goal":
            return self.goal is not None and self.goal(self.tracer.place(thread, frame), frame)
        if self._mode == "continue":
            return False
        if self._thread is None:
            return True
        if thread is not self._thread:
            return False
        depth = self.tracer.depth(frame)
        match self._mode:
            case "next":
                return depth <= self._depth
            case "until":
                return depth < self._depth or (depth == self._depth and frame.f_lineno >= self._line)
            case "return":
                return depth < self._depth
        return True

    def at_fault(self, thread: Thread, frame: FrameType, fault: Fault) -> None:
        """Stop at a finding, in its innermost frame."""
        if self.fault is fault or self._survives(thread):
            return
        self.fault = fault
        (finding,) = in_words([fault.diagnostic], self.session.request.specialisation.words)
        self.message(render(finding))
        self._stop(thread, frame)

    def at_return(self, thread: Thread, frame: FrameType) -> None:
        """Let a step continue in the next thread after the last statement of its own."""
        if thread is self._thread and self.tracer.depth(frame) == 1:
            self._thread = None

    def _stop(self, thread: Thread, frame: FrameType) -> None:
        self.place = self.tracer.place(thread, frame)
        self._thread, self._depth = thread, self.tracer.depth(frame)
        if (shown := self._thread_text(self.place)) != self._shown:
            self.message(shown)
            self._shown = shown
        self.interaction(frame, None)
        if self.quitting:
            raise BdbQuit
        if self._next_goal is not None:
            raise RunEnded

    def _thread_text(self, place: Place) -> str:
        request = self.session.request
        return thread_text(place.block, place.thread, request.grid, request.block, 0)

    # -------------------------------------------------------------- pdb
    def set_step(self) -> None:
        self._mode = "step"

    def set_next(self, frame: FrameType) -> None:
        self._mode, self._depth = "next", self.tracer.depth(frame)

    def set_until(self, frame: FrameType, lineno: int | None = None) -> None:
        self._mode, self._depth = "until", self.tracer.depth(frame)
        self._line = frame.f_lineno + 1 if lineno is None else lineno

    def set_return(self, frame: FrameType) -> None:
        self._mode, self._depth = "return", self.tracer.depth(frame)

    def set_continue(self) -> None:
        self._mode = "continue"

    def get_stack(self, f: FrameType | None, t: Any) -> tuple[list[tuple[FrameType, int]], int]:
        """Return the frames of the kernel and of the program that launches it."""
        stack = [entry for entry in super().get_stack(f, t)[0] if self._is_shown(entry[0])]
        return stack, len(stack) - 1

    def _is_shown(self, frame: FrameType) -> bool:
        internal = is_own_frame(frame) or str(frame.f_globals.get("__name__")).partition(".")[0] in _INTERNAL
        return frame.f_code in self.tracer.code or not (internal or frame.f_code.co_filename == "<string>")

    def format_stack_entry(self, frame_lineno: tuple[FrameType, int], lprefix: str = ": ") -> str:
        text = super().format_stack_entry(frame_lineno, lprefix)
        file = self.canonic(frame_lineno[0].f_code.co_filename)
        return name_of(file) + text.removeprefix(file)

    def precmd(self, line: str) -> str:
        if not self.use_rawinput and not line.startswith("_pdbcmd"):  # pdb's own, from Python 3.13 on
            self.message("" if line == "EOF" else line)
        return str(super().precmd(line))

    def do_print(self, arg: str) -> None:
        """print EXPRESSION
        Print the value of an expression, as `p`."""
        self.do_p(arg)

    # -------------------------------------------------------------- commands
    def do_back(self, arg: str) -> int | None:
        """back
        Stop before the previous statement of this thread. The block runs again from its start."""
        assert self.place is not None
        block, thread, number = self.place.block, self.place.thread, self.place.number - 1
        if not number:
            self.error("this is the first statement of the thread")
            return None
        return self._run_again(
            lambda place, frame: (place.block, place.thread, place.number) == (block, thread, number), ""
        )

    def do_thread(self, arg: str) -> int | None:
        """thread [NUMBER | X,Y,Z]
        Print the thread, or stop in another thread of the block at the same execution of this line."""
        assert self.place is not None
        if not arg:
            self.message(self._thread_text(self.place))
            return None
        try:
            number = linear_index("thread", arg, self.session.request.block)
        except SimtbedError as error:
            self.error(str(error))
            return None
        block, statement = self.place.block, self.place.statement
        missed = f"thread {number} does not execute this line for the {_ordinal(statement.number)} time"
        return self._run_again(
            lambda place, frame: (place.block, place.thread, place.statement) == (block, number, statement), missed
        )

    def do_other(self, arg: str) -> int | None:
        """other
        Stop in the other thread of a race, at its access."""
        access: Access | None = self.fault.other if self.fault is not None else None
        if access is None:
            self.error("the stop is no race")
            return None
        session = self.session.of_block(access.block)
        place = session.locate(access)
        if place is None:
            self.error("the other access does not occur in this run")
            return None
        return self._run_again(_at(place), "", session)

    def do_warp(self, arg: str) -> None:
        """warp
        Print the lanes of the warp that execute this line, and where the others are before the next barrier."""
        assert self.place is not None
        lines: dict[int, Statement] = {}
        statement = self.place.statement

        def visit(place: Place, frame: FrameType) -> None:
            if self._in_warp(place) and lines.get(place.thread) != statement:
                lines[place.thread] = place.statement

        self._collect(visit)
        groups: dict[tuple[CodeType, int], list[int]] = {}
        for thread, at in lines.items():
            groups.setdefault((at.code, at.line), []).append(thread % WARP_SIZE)
        for (code, line), lanes in sorted(groups.items(), key=lambda group: group[1]):
            mark = "->" if (code, line) == (statement.code, statement.line) else "  "
            self.message(f"{mark} lanes {ranges(lanes)}: {name_of(code.co_filename)}({line}){code.co_name}()")

    def do_lanes(self, arg: str) -> None:
        """lanes EXPRESSION
        Print the value of an expression in each lane of the warp that executes this line, before the line."""
        assert self.place is not None
        try:
            code = compile(arg.strip(), "<lanes>", "eval")
        except (SyntaxError, ValueError) as error:
            self.error(f"expected an expression, lanes EXPRESSION: {printable(str(error))}")
            return
        values: dict[int, str] = {}
        errors: list[str] = []
        statement = self.place.statement

        def visit(place: Place, frame: FrameType) -> None:
            if self._in_warp(place) and place.statement == statement:
                try:
                    value = str(eval(code, frame.f_globals, frame.f_locals))
                except Exception as error:  # of an expression of the user
                    value = type(error).__name__
                    errors.append(f"{value}: {error}")
                values[place.thread % WARP_SIZE] = value

        self._collect(visit)
        if errors and len(errors) == len(values):
            self.error(printable(errors[0]))
        else:
            self.message(lane_table(values))

    def _in_warp(self, place: Place) -> bool:
        assert self.place is not None
        own = self.place
        return (place.block, place.thread // WARP_SIZE) == (own.block, own.thread // WARP_SIZE)

    def _collect(self, visit: Callable[[Place, FrameType], None]) -> None:
        """Call a function before each statement of the block up to the barrier behind the stop, in another run."""
        assert self.place is not None
        own = self.place

        def visit_phase(place: Place, frame: FrameType) -> None:
            if place.block == own.block and place.phase > own.phase:
                raise RunEnded
            visit(place, frame)

        self.session.collect(visit_phase)

    def do_memory(self, arg: str) -> None:
        """memory ARRAY[A:B]
        Print elements of an array."""
        try:
            value = self._getval(arg)
        except Exception:
            return  # pdb has printed it
        if not hasattr(value, "reshape"):
            self.error(f"{printable(arg)} is no array: expected elements such as memory a[0:64]")
            return
        self.message(memory_table(value))

    def do_watch(self, arg: str) -> None:
        """watch ARRAY[INDEX]
        Print who wrote an element last, who has read it since, and the next accesses: thread, statement, value."""
        assert self._thread is not None and self.place is not None
        try:
            memory, index = element_of(arg, self.stack[self.curindex][0], self._thread)
        except Exception as error:  # of an expression of the user
            self.error(printable(str(error)))
            return
        history = History(memory, index)
        own = self.place

        def visit(place: Place, frame: FrameType) -> None:
            if (place.block, place.thread, place.number) == (own.block, own.thread, own.number):
                history.now = len(history.accesses)

        self.session.collect(visit, [history])
        request = self.session.request
        self.message(history_text(history, request.grid, request.block))

    def do_run(self, arg: str) -> None:
        """run, restart
        The program runs once: start simtbed debug again."""
        self.error("the program runs once: start simtbed debug again")

    do_restart = do_run

    def message(self, msg: str) -> None:
        """Print lines, such as those of a source file, without control characters."""
        super().message(terminal(msg))

    def error(self, msg: str) -> None:
        self.message(f"*** {msg}")


_INTERNAL = ("click", "bdb", "pdb", "cmd", "runpy", "threading", "importlib", "contextlib")


def _at(target: Place) -> Goal:
    return lambda place, frame: place == target


def _ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
