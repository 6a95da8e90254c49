"""Tracebacks of errors of launches: the frames of the user's program, without those of this package.

pytest leaves out a frame with `__tracebackhide__`. Python has no such word: its exception hooks are replaced when the
first error is made, unless the program has hooks of its own. IPython takes the lines of `_render_traceback_`.
"""

import sys
import threading
import traceback
from collections.abc import Callable
from functools import wraps
from types import FrameType, TracebackType
from typing import ParamSpec, TypeVar

from .span import name_of

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
Raised = TypeVar("Raised", bound=Exception)


def without_own_frames(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Have the errors of a public function end at its caller, or in `error.trace`. A defect of this package keeps its frames."""

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        __tracebackhide__ = True
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if not for_the_user(error):
                raise
            raise shortened(error) from error.__cause__

    return call


def shortened(error: Raised) -> Raised:
    """Return an error for the user without the frames of this package: they end at the caller, or in `error.trace`."""
    set_hooks()
    return error.with_traceback(getattr(error, "trace", None))


def for_the_user(error: BaseException) -> bool:
    """Return whether the frames of this package say nothing about an error: its text is for the user."""
    return bool(getattr(error, "for_the_user", False))


def set_hooks() -> None:
    """Replace the exception hooks of Python, unless the program has hooks of its own."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = show
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = _show_in_thread


def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an exception as Python does, an error of a launch without the frames of this package."""
    trace = user_frames(error, trace)
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


def _show_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None:
        trace = user_frames(args.exc_value, args.exc_traceback)
        values = (args.exc_type, args.exc_value.with_traceback(trace), trace, args.thread)
        args = threading.ExceptHookArgs(values)
    threading.__excepthook__(args)


def user_frames(error: BaseException, trace: TracebackType | None) -> TracebackType | None:
    """Return the frames of the user in the traceback of an error; the traceback of another exception unchanged."""
    if not for_the_user(error):
        return trace
    frames = []
    while trace is not None:
        if not _is_own(trace) and _package(trace) != "functools":  # a cached property of this package
            frames.append(trace)
        trace = trace.tb_next
    shortened: TracebackType | None = None
    for frame in reversed(frames):
        shortened = TracebackType(shortened, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return shortened


def _is_own(trace: TracebackType) -> bool:
    return is_own_frame(trace.tb_frame)


def is_own_frame(frame: FrameType) -> bool:
    """Return whether a frame is of this package."""
    return _package_of(frame) == __name__.partition(".")[0]


def _package(trace: TracebackType) -> str:
    return _package_of(trace.tb_frame)


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def notebook_lines(error: BaseException) -> list[str]:
    """Return the traceback of an error as lines, without the frames of IPython and of this package."""
    frames, trace = [], user_frames(error, error.__traceback__)
    for frame in traceback.extract_tb(trace):
        assert trace is not None
        if _package(trace) not in ("IPython", "ipykernel"):
            frames.append(traceback.FrameSummary(name_of(frame.filename), frame.lineno, frame.name, line=frame.line))
        trace = trace.tb_next
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(frames)] if frames else []
    lines += traceback.format_exception_only(error)
    return "".join(lines).splitlines()
