"""Search for the elements of outputs that no thread wrote: a second launch has another pattern of poison."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import Diagnostic
from ..language.types import Array
from ..runtime.arrays import split
from ..runtime.engine import Request
from ..runtime.poison import poison
from ..runtime.registry import EngineName, engine_named
from ..runtime.unwritten import outputs, unwritten_elements

Arrays = Mapping[str, npt.NDArray[Any]]


def quiet(request: Request) -> Request:
    """Return a request for its arrays only: without counters, checks and prints, on copies of device arrays."""
    return replace(
        request,
        device_arrays={},
        in_place=frozenset(),
        counters=False,
        detail=False,
        checks=frozenset(),
        schedule=None,
        show_prints=False,
    )


def find_unwritten(request: Request, arrays: Arrays, engine: EngineName) -> list[Diagnostic]:
    """Return a diagnostic for each output with elements that no thread wrote. arrays: the result of the request.

    Such an element holds poison. An output with poison is computed again with another pattern: elements with the new
    pattern in place of the old one were not written.
    """
    names = outputs(request)
    missing = {name: _equal(request, arrays, name, request.filled[name]) for name in names}
    if not any(flags.any() for flags in missing.values()):
        return []
    parameters, second = request.specialisation.summary.parameters, {}
    for name in names:
        type = parameters[name]
        assert isinstance(type, Array)
        second[name] = np.broadcast_to(poison(split(type.element)[0], second=True), request.filled[name].shape)
    again = replace(quiet(request), filled={**request.filled, **second})
    repeated = request.shaped(engine_named(engine).run(again).buffers)
    for name in request.specialisation.summary.changed:
        if name in missing:
            missing[name] &= _equal(request, repeated, name, second[name])
    return unwritten_elements(request, {name: ~flags for name, flags in missing.items()})


def _equal(request: Request, arrays: Arrays, name: str, element: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which elements of an array of the program have the bits of `element`: bool by element."""
    array, path = request.owners.get(name, (name, ()))
    values = arrays[array]
    for key in path:
        values = values[key]
    unsigned, shape = f"u{element.itemsize}", request.forms[name].shape
    bits = np.ascontiguousarray(values).view(unsigned).reshape(*shape, element.size)
    flags: npt.NDArray[np.bool_] = (bits == element.reshape(-1).view(unsigned)).all(-1)
    return flags
