"""Elements of arrays given as `empty` that no thread of a launch wrote: a remark of a checked launch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import Diagnostic
from .arrays import Buffer
from .engine import Request

KIND = "unwritten"


def outputs(request: Request) -> list[str]:
    """Return the program's parameters for arrays given as `empty` that the host receives from this launch. The elements
    of a device array may be written by another launch."""
    changed = set(request.specialisation.summary.changed)
    owners = {request.owners[name][0] for name in changed if name in request.owners}
    return [
        name
        for name in request.forms
        if name in request.unwritten
        and name not in request.device_arrays
        and (request.owners[name][0] in owners if name in request.owners else name in changed)
    ]


def tracked_elements(request: Request, written: Mapping[str, Buffer]) -> dict[str, Buffer]:
    """Return which elements of `outputs` were written, in the arrays' shapes. written: flat, from the engine."""
    flags = {}
    for name in outputs(request):
        form = request.forms[name]
        flags[name] = np.lib.stride_tricks.as_strided(written[name][form.begin or 0 :], form.shape, form.strides)
    return flags


def unwritten_elements(request: Request, written: Mapping[str, Buffer]) -> list[Diagnostic]:
    """Return a diagnostic for each output with elements that were not written.

    written: bool by element, for each of `outputs`. A struct is written if all its fields are.
    """
    by_array: dict[str, Buffer] = {}
    for name, flags in written.items():
        array = request.owners[name][0] if name in request.owners else name
        by_array[array] = by_array[array] & flags if array in by_array else flags
    return [_diagnostic(request, array, ~flags) for array, flags in by_array.items() if not flags.all()]


def _diagnostic(request: Request, array: str, missing: Buffer) -> Diagnostic:
    first = ", ".join(map(str, np.unravel_index(int(missing.argmax()), missing.shape)))
    count, be = int(np.count_nonzero(missing)), "was" if missing.sum() == 1 else "were"
    message = f"{count:,} of {missing.size:,} elements of {array} {be} never written, first {array}[{first}]"
    params = request.prepared.program.kernel.params
    span = next(p.span for p in params if array in (p.name, *request.owners.get(p.name, ())[:1]))
    poison = " and ".join(
        str(request.filled[name].reshape(-1)[0])
        for name in request.filled
        if array in (name, *request.owners.get(name, ())[:1])
    )
    notes = (
        f"{array} was given as empty: these elements hold {poison}",
        "if the kernel is meant to write only some elements, give st.zeros(shape, type)",
    )
    return Diagnostic(KIND, message, span, notes)
