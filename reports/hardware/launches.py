"""Timed launches: arguments, expected outputs, selection by name."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import numpy.typing as npt
from simtbed import DeviceArray, Kernel, LaunchError, SimtbedError
from simtbed.checked import shown
from simtbed.language.types import Array
from simtbed.runtime.engine import Request
from simtbed.runtime.request import prepare_request
from simtbed.runtime.specialisation import signature_of

Values = npt.NDArray[Any]
TIMED = "tests.validation.launches:timed"
"""Launches of the validated times: kernels of one kind each, validation kernels, shipped variants."""
NEAR = 1e-4
"""Largest difference of floating-point outputs, relative to the largest expected value."""


@dataclass(frozen=True)
class Timed:
    """A launch to be timed. make: returns its arguments. shared: bytes of dynamic shared memory. answer: expected
    arrays, from the arguments. unordered: arrays in the order of threads. restored: arrays that each launch receives
    unchanged, because the kernel changes its own input."""

    name: str
    kernel: Kernel
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    make: Callable[[], Mapping[str, Any]]
    shared: int = 0
    answer: Callable[[Mapping[str, Any]], Mapping[str, Values]] | None = None
    unordered: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()

    def request(self, arguments: Mapping[str, Any] | None = None) -> Request:
        """Return the request, with its global arrays (except those of structs) on the GPU. arguments: the result of
        `make`, if it exists."""
        parameters = signature_of(self.kernel).parameters
        args = {
            name: DeviceArray(v) if _is_device_array(v, parameters[name].type) else v
            for name, v in (arguments or self.make()).items()
        }
        return prepare_request(
            self.kernel, grid=self.grid, block=self.block, args=args, shared=self.shared, counters=False
        )  # fmt: skip

    def check(self, args: Mapping[str, Any], left: Mapping[str, Values]) -> None:
        """Compare the arrays after a launch with the expected ones: integers exactly, others within NEAR. Raises LaunchError."""
        for name, expected in (self.answer(args) if self.answer else {}).items():
            output = left[name]
            if name in self.unordered:
                output, expected = np.sort(output)[-expected.size :], np.sort(expected)
            if not agree(output, expected):
                raise LaunchError(f"{self.name}: {name} is not what NumPy computes")


def _is_device_array(value: Any, type: Any) -> bool:
    return (
        isinstance(value, np.ndarray) and not value.dtype.names and isinstance(type, Array) and type.space == "global"
    )


def agree(output: Values, expected: Values) -> bool:
    """Return whether two arrays are equal within NEAR."""
    if output.size != expected.size:
        return False
    if output.dtype.names:
        return all(agree(output[name], expected[name]) for name in output.dtype.names)
    if output.dtype.kind in "fc":
        return bool(
            np.abs(output.ravel() - expected.ravel()).max(initial=0.0) <= NEAR * np.abs(expected).max(initial=0.0)
        )
    return bool((output.ravel() == expected.ravel()).all())


def matching(cases: Iterable[Timed], pattern: str) -> list[Timed]:
    """Return the launches with names that match a pattern. Raises SimtbedError if none does, or a case is no launch."""
    given = list(cases)
    if wrong := [case for case in given if not isinstance(case, Timed)]:
        raise SimtbedError(f"expected functions that give launches, not {shown(wrong[0])}")
    chosen = [case for case in given if fnmatchcase(case.name, pattern)]
    if not chosen:
        raise SimtbedError(f"no case fits {pattern!r}")
    return chosen
