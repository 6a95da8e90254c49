"""Elements of arrays given as `empty` that no thread of a launch wrote: a remark of a checked launch."""

import functools
import math
from collections.abc import Iterable, Mapping

import numpy as np

from ..errors import Diagnostic
from .arrays import Buffer, flags_of_elements
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
        and name in request.filled
        and name not in request.device_arrays
        and (request.owners[name][0] in owners if name in request.owners else name in changed)
    ]


def tracked_elements(request: Request, written: Mapping[str, Buffer]) -> dict[str, Buffer]:
    """Return which elements of `outputs` were written, in the arrays' shapes. written: flat, from the engine."""
    flags = {}
    for name in outputs(request):
        form = request.forms[name]
        if form.own is None:
            flags[name] = np.lib.stride_tricks.as_strided(written[name][form.begin or 0 :], form.shape, form.strides)
        else:
            shape = form.own[1]
            flags[name] = flags_of_elements(written[name], math.prod(shape)).reshape(shape)
    return flags


def unwritten_elements(request: Request, written: Mapping[str, Buffer]) -> list[Diagnostic]:
    """Return a diagnostic for each output with elements that were not written.

    written: bool by element, for each of `outputs`. A struct is written if all its fields are; where some fields of its array
    are complete, the message names the others.
    """
    by_array: dict[str, dict[str, Buffer]] = {}
    for name, flags in written.items():
        by_array.setdefault(request.owners.get(name, (name,))[0], {})[name] = ~flags
    return [_diagnostic(request, array, missing) for array, missing in by_array.items() if _any(missing.values()).any()]


def _any(missing: Iterable[Buffer]) -> Buffer:
    return functools.reduce(np.bitwise_or, missing)


def _diagnostic(request: Request, array: str, missing: Mapping[str, Buffer]) -> Diagnostic:
    incomplete = {name: flags for name, flags in missing.items() if flags.any()}
    fields = [".".join(request.owners[name][1]) for name in incomplete] if len(incomplete) < len(missing) else []
    elements = _any(incomplete.values())
    first = f"{array}[{', '.join(map(str, np.unravel_index(int(elements.argmax()), elements.shape)))}]"
    first += f".{fields[0]}" if len(fields) == 1 else ""
    owner = f"field{'s' * (len(fields) > 1)} {' and '.join(fields)} of " if fields else ""
    count, be = int(np.count_nonzero(elements)), "was" if elements.sum() == 1 else "were"
    message = f"{owner}{count:,} of {elements.size:,} elements of {array} {be} never written, first {first}"
    span = next(p.span for p in request.prepared.program.kernel.params if p.name in incomplete)
    poison = " and ".join(dict.fromkeys(_poison(request, name) for name in incomplete))
    notes = (
        f"{array} was given as empty: these elements hold {poison}",
        "if the kernel is meant to write only some elements, give st.zeros(shape, type)",
    )
    return Diagnostic(KIND, message, span, notes)


def _poison(request: Request, name: str) -> str:
    """Return the value of an unwritten element in the argument's own type."""
    value, own = request.filled[name].reshape(-1), request.forms[name].own
    return str((value if own is None else np.resize(value.view(np.uint8), own[0].itemsize).view(own[0]))[0])
