"""How the error that ends a program is shown: as Python does, but for what called the program and what a report shows."""

from __future__ import annotations

import importlib
import sys
import traceback
from types import TracebackType

from simtbed import FaultError

_IMPORTING = (importlib.__file__, "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")
_CALLING: list[str] = []
"""Files whose frames called the program."""
_reported = False
"""Whether the findings of launches stand in a report."""


def show_without(file: str) -> None:
    """Leave out the frames of a file that calls the program, and those before it."""
    _CALLING.append(file)
    sys.excepthook = _show


def show_findings_once() -> None:
    """A report shows the findings: say so where one ends the program, unless the program shows its errors by itself."""
    global _reported
    _reported = True
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    while _CALLING and trace and trace.tb_frame.f_code.co_filename in ("<string>", *_CALLING, *_IMPORTING):
        trace = trace.tb_next
    if not (_reported and isinstance(error, FaultError)):
        sys.__excepthook__(kind, error.with_traceback(trace), trace)
        return
    shown = traceback.TracebackException(kind, error, trace)
    lines, last = list(shown.format()), list(shown.format_exception_only())
    what = "a finding, which" if len(error.result.faults) == 1 else "findings, which"
    if sys.stderr is not None:
        print("".join(lines[: -len(last)]) + f"{kind.__name__}: {what} the report shows", file=sys.stderr)
