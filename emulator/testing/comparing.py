"""Comparison of two results of one launch: the first element that differs, and the statement and thread that wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from ..errors import Diagnostic
from ..runtime.engine import Request
from ..runtime.tolerance import Tolerance
from ..sanitizer.places import thread_text
from .writers import Written, last_write

Answer = Mapping[str, npt.NDArray[Any]]


def disagreement(
    request: Request, actual: Answer, expected: Answer, names: tuple[str, str], tolerance: Tolerance
) -> Diagnostic | None:
    """Return a diagnostic of the first element that differs, at the statement that wrote it, or None.

    actual, expected: arrays of the same names and shapes. names: of the two results. request: with the values of its arguments.
    """
    for array, values in actual.items():
        unequal = tolerance.differing(values, expected[array])
        if not len(unequal):
            continue
        at, form = tuple(int(n) for n in unequal[0]), request.forms[array]
        index, lane = at[: len(form.shape)], at[len(form.shape) :]
        element = f"{array}[{', '.join(map(str, index))}]" + "".join(f".{'xyzw'[n]}" for n in lane)
        message = f"{element} is {values[at]} from {names[0]}, {expected[array][at]} from {names[1]}"
        notes = [f"{len(unequal):,} of {values.size:,} elements of {array} do not agree {tolerance}"]
        written = last_write(request, array, sum(n * stride for n, stride in zip(index, form.strides, strict=True)))
        if written is None:
            return Diagnostic(
                "disagreement", message, request.program.kernel.span, (*notes, f"no thread writes {element}")
            )
        (x, y, _), (i, j, _) = request.grid, request.block
        block = written.block[0] + x * (written.block[1] + y * written.block[2])
        thread = written.thread[0] + i * (written.thread[1] + j * written.thread[2])
        notes.append("written by " + thread_text(block, thread, request.grid, request.block, 0))
        notes.append(f"to stop there: {debug_command(request, written)}")
        return Diagnostic("disagreement", message, written.span, tuple(notes), len(unequal))
    return None


TARGET = "SCRIPT"
"""The target in `debug_command`."""


def debug_command(request: Request, written: Written) -> str:
    """Return the command that stops at a write, without the launch and the name of the program."""
    kernel = request.program.kernel
    block, thread = (",".join(map(str, place)) for place in (written.block, written.thread))
    line = f" --line {written.span.line}" if written.span.file == kernel.span.file else ""
    return f"simtbed debug --kernel {kernel.name} --block {block} --thread {thread}{line} {TARGET}"
