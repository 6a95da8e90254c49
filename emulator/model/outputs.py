"""Comparison of the outputs of a configuration with those of the launch as given.

The launch as given runs once, without counters. Its outputs are the reference of all other configurations of the launch. A
configuration must also write the elements that the launch writes: an array may contain the result of an earlier launch.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from ..checked import shown
from ..errors import LaunchError, SimtbedError
from ..ir.fingerprint import fingerprint
from ..runtime.arrays import Buffer
from ..runtime.engine import Request
from ..runtime.registry import engine_named
from ..runtime.tolerance import Tolerance
from .launches import counting_rules
from .observed import ObservedLaunch
from .writes import WriteTrace

MAX_ROUNDING = 1e-2
"""Relative difference of floats up to which another order of additions is a likely cause."""


class Agreement(StrEnum):
    """The result of a comparison: of the launch as given itself, or of another configuration with it."""

    reference = "reference"
    equal = "equal"
    differ = "differ"
    unknown = "not compared"


@dataclass(frozen=True)
class Comparison:
    """The rule of a comparison. not_compared: arrays that may depend on the configuration. tolerance: of the others."""

    not_compared: tuple[str, ...] = ()
    tolerance: Tolerance = field(default_factory=Tolerance)

    def require_names(self, outputs: Iterable[str]) -> None:
        """Raise LaunchError for an array that no launch writes."""
        available = sorted(set(outputs))
        for name in self.not_compared:
            if name not in available:
                raise LaunchError(
                    f"not_compared: no launch writes {shown(name)}; there are {', '.join(available) or 'none'}"
                )


@dataclass(eq=False)
class Reference:
    """The launch as given. request: None for an invalid launch, with the reason in `refused`."""

    request: Request | None
    refused: str = ""
    _lock: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)
    _outputs: _Outputs | None = field(init=False, repr=False, default=None)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the outputs: a worker computes them again."""
        return Reference, (self.request, self.refused)

    def name(self) -> str:
        """Return a text that identifies the launch among those with the same arguments."""
        if self.request is None:
            return self.refused
        request = self.request
        program = request.specialisation.key or fingerprint(request.program)
        return f"{program} {request.grid} {request.block} {counting_rules(request.device)}"

    def outputs(self) -> _Outputs:
        """Return the written arrays and elements. Raises LaunchError with the reason if the launch fails."""
        with self._lock:
            if self.request is not None and self._outputs is None and not self.refused:
                writes = WriteTrace(self.request)
                try:
                    request = replace(self.request, counters=False, show_prints=False, trace=writes)
                    outcome = engine_named("jit").run(request)
                    self._outputs = _Outputs(outcome.buffers, writes.flags)
                    faults = self.request.specialisation.ending(outcome.faults)
                    self.refused = faults[0].message if faults else ""
                except SimtbedError as error:
                    self.refused = str(error).splitlines()[0]
            if self.refused or self._outputs is None:
                raise LaunchError(self.refused)
            return self._outputs

    def compare(self, launch: ObservedLaunch, rule: Comparison) -> tuple[Agreement, str]:
        """Return whether the outputs of a configuration agree, and the reason if they do not or are not compared. launch:
        with written elements."""
        request = launch.request
        compared = [name for name in launch.outputs if _owner(request, name) not in rule.not_compared]
        omitted = ", ".join(name for name in rule.not_compared if name in output_names(request))
        if not compared:
            return Agreement.unknown, f"not compared: {omitted or 'no output'}"
        try:
            expected = self.outputs()
        except LaunchError as error:
            return Agreement.unknown, f"not compared: the launch as given fails: {error}"
        texts = [
            _difference(request, name, launch.outputs[name], expected.arrays[name], rule.tolerance)
            or _omission(request, name, launch.written[name], expected.written[name])
            for name in compared
        ]
        if different := "; ".join(filter(None, texts)):
            return Agreement.differ, different + _order_note(request)
        return Agreement.equal, f"equal, {omitted} not compared" if omitted else "equal"


class _Outputs(NamedTuple):
    """The written arrays of a launch, flat, and their written elements (`writes.WriteTrace`)."""

    arrays: Mapping[str, Buffer]
    written: Mapping[str, Buffer]


def output_names(request: Request) -> set[str]:
    """Return the arrays that a kernel may write, by the caller's names."""
    return {_owner(request, name) for name in request.specialisation.summary.changed}


def _owner(request: Request, name: str) -> str:
    """Return the caller's name of an array: for a field, that of its array of structs."""
    return request.owners[name][0] if name in request.owners else name


def _difference(request: Request, name: str, actual: Buffer, expected: Buffer, tolerance: Tolerance) -> str:
    """Return a text about the elements of an array that differ, with the options that allow them; "" without any."""
    form = request.forms[name]
    values, reference = form.shaped(actual), form.shaped(expected)
    unequal = tolerance.differing(values, reference)
    if not len(unequal):
        return ""
    user_name = _user_name(request, name)
    text = f"{user_name} differs: {_elements(request, name, unequal, values)}"
    options = [_not_compared(request, name)]
    largest = _relative_difference(values[tuple(unequal.T)], reference[tuple(unequal.T)])
    if largest <= MAX_ROUNDING:
        text += f", by at most {largest:.1e} of its value"
        options.append(f"rtol (--rtol {10.0 ** math.ceil(math.log10(largest)):.0e})")
    return f"{text}; if {user_name} depends on the configuration: {' or '.join(options)}"


def _omission(request: Request, name: str, written: Buffer, expected: Buffer) -> str:
    """Return a text about the elements of an array that the launch as given writes and a configuration does not; "" without any."""
    flags = np.zeros_like(expected)
    bytes_of = [array.reshape(-1).view(np.uint8) for array in (flags, expected, written)]
    bytes_of[0][:] = bytes_of[1] & ~bytes_of[2]
    missing = request.forms[name].shaped(flags)
    where = Tolerance().differing(missing, np.zeros_like(missing))
    if not len(where):
        return ""
    user_name = _user_name(request, name)
    text = f"{user_name} is not written: {_elements(request, name, where, missing)}, which the launch as given writes"
    return f"{text}; if {user_name} depends on the configuration: {_not_compared(request, name)}"


def _elements(request: Request, name: str, where: Buffer, values: Buffer) -> str:
    """Return the number of elements of an array at some indices, int64[n, dimensions], and the first. values: the array."""
    index = [str(n) for n in where[0].tolist()]
    dimensions = len(request.forms[name].shape)
    owner, path = request.owners.get(name, (name, ()))
    lanes = ["xyzw"[int(lane)] for lane in index[dimensions:]]
    element = ".".join([f"{owner}[{', '.join(index[:dimensions])}]", *path, *lanes])
    return f"{len(where):,} of {values.size:,} elements, first {element}"


def _user_name(request: Request, name: str) -> str:
    """Return the name of an array, or of a field of an array of structs, for a message."""
    owner, path = request.owners.get(name, (name, ()))
    return ".".join([owner, *path])


def _not_compared(request: Request, name: str) -> str:
    return f"not_compared (--not-compared {_owner(request, name)})"


def _relative_difference(actual: Buffer, expected: Buffer) -> float:
    """Return the largest difference of floats in units of the expected value; infinite for other types and values."""
    if actual.dtype.kind not in "fc":
        return math.inf
    with np.errstate(all="ignore"):
        wide = np.result_type(actual.dtype, np.float64)
        difference = np.abs(actual.astype(wide) - expected.astype(wide)) / np.abs(expected.astype(wide))
    largest = float(difference.max())
    return largest if 0 < largest < math.inf else math.inf


def _order_note(request: Request) -> str:
    """Return a note for a kernel whose results may depend on the order of its threads."""
    if not request.specialisation.summary.ordered:
        return ""
    return "; the order of its atomic operations may decide"
