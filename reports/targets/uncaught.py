"""Exception hook of a target: a traceback without simtbed's own frames and without reported findings, or one line if a
component is missing."""

import importlib
import sys
import traceback
from types import TracebackType

from simtbed import FaultError, UnavailableError
from simtbed.escaping import printable
from simtbed.tracebacks import show, user_frames

from ..printing import print_message

_IMPORTING = (importlib.__file__, "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")
UNAVAILABLE = 3
"""Exit code of a command that cannot run on this machine."""
_CALLERS: list[str] = []
"""Files with frames between the interpreter and the program."""
_reported = False
"""Whether a report shows the findings of launches."""


def show_without(file: str) -> None:
    """Omit the frames of a file that calls the program, and the frames before them, from tracebacks."""
    _CALLERS.append(file)
    sys.excepthook = _show


def show_findings_once() -> None:
    """Refer to the report instead of printing findings, unless the program has its own exception hook."""
    global _reported
    _reported = True
    if sys.excepthook in (sys.__excepthook__, show):
        sys.excepthook = _show


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    while _CALLERS and trace and trace.tb_frame.f_code.co_filename in ("<string>", *_CALLERS, *_IMPORTING):
        trace = trace.tb_next
    trace = user_frames(error, trace)
    if isinstance(error, UnavailableError):
        frames = traceback.extract_tb(trace)
        place = f"{printable(frames[-1].filename)}:{frames[-1].lineno}: " if frames else ""
        print_message(f"simtbed: {place}{error}")
        raise SystemExit(UNAVAILABLE)  # Python exits with this code
    if not (_reported and isinstance(error, FaultError)):
        sys.__excepthook__(kind, error.with_traceback(trace), trace)
        return
    shown = traceback.TracebackException(kind, error, trace)
    lines, last = list(shown.format()), list(shown.format_exception_only())
    findings = "a finding" if len(error.details.faults) == 1 else "findings"
    print_message("".join(lines[: -len(last)]) + f"{kind.__name__}: {findings}, see the report")
