"""Comparison of two results of one launch: the first element that differs, and the statement and thread that wrote it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import Diagnostic
from ..runtime.engine import Request
from ..runtime.tolerance import Tolerance
from ..sanitizer.places import thread_text
from .writers import Written, last_write

Values = npt.NDArray[Any]
Answer = Mapping[str, Values]


@dataclass(frozen=True)
class Comparison:
    """How results are compared. any_order: arrays compared as multisets of their elements."""

    tolerance: Tolerance = field(default_factory=Tolerance)
    any_order: tuple[str, ...] = ()

    def differing(self, array: str, actual: Values, expected: Values) -> npt.NDArray[np.int64]:
        """Return the indices of elements that do not agree; of sorted elements for an array of `any_order`."""
        if array in self.any_order:
            actual, expected = np.sort(actual, axis=None), np.sort(expected, axis=None)
        return self.tolerance.differing(actual, expected)


def disagreement(
    request: Request, actual: Answer, expected: Answer, names: tuple[str, str], comparison: Comparison
) -> Diagnostic | None:
    """Return a diagnostic of the first element that differs, at the statement that wrote it, or None.

    actual, expected: arrays of the same names and shapes. names: of the two results. request: with the values of its arguments.
    """
    tolerance = comparison.tolerance
    for array, values in actual.items():
        unequal = comparison.differing(array, values, expected[array])
        if not len(unequal):
            continue
        if array in comparison.any_order:
            message = f"{array}: {len(unequal):,} of {values.size:,} elements from {names[0]} are not among those from {names[1]}"
            return Diagnostic(
                "disagreement", message, request.program.kernel.span, ("compared in any order",), len(unequal)
            )
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


def order_remarks(
    request: Request, actual: Answer, expected: Answer, names: tuple[str, str], comparison: Comparison
) -> list[Diagnostic]:
    """Return a remark for each array that depends on the order of threads and differs, at the cause of the dependence.

    An array of `any_order` has none: it states the comparison.
    """
    remarks = []
    for array, span in request.prepared.order_dependent.items():
        if array not in actual or array in comparison.any_order:
            continue
        count = len(comparison.differing(array, actual[array], expected[array]))
        if count:
            differ = f"{count:,} of {actual[array].size:,} elements differ between {names[0]} and {names[1]}"
            message = f"{array} depends on the order of threads: {differ}"
            advice = (
                f'compare its elements in any order (any_order=["{array}"], --any-order {array}), or with a tolerance'
            )
            remarks.append(Diagnostic("order", message, span, (advice,), count, array=array))
    return remarks


REMARKS = ("order", "native")
"""Kinds of differences that are no disagreement: due to the order of threads, and of CUDA's own functions."""
TARGET = "SCRIPT"
"""The target in `debug_command`."""


def debug_command(request: Request, written: Written) -> str:
    """Return the command that stops at a write, without the launch and the name of the program."""
    kernel = request.program.kernel
    block, thread = (",".join(map(str, place)) for place in (written.block, written.thread))
    line = f" --line {written.span.line}" if written.span.file == kernel.span.file else ""
    return f"simtbed debug --kernel {kernel.name} --block {block} --thread {thread}{line} {TARGET}"
