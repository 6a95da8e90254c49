"""A launch that is timed: how it is made, what it answers, and how some of many are chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import numpy.typing as npt
from simtbed import DeviceArray, Kernel, LaunchError, SimtbedError
from simtbed.language.types import Array
from simtbed.runtime.engine import Request
from simtbed.runtime.request import prepare_request
from simtbed.runtime.specialisation import signature_of

Values = npt.NDArray[Any]
TIMED = "tests.validation.launches:timed"
"""Launches of the validated times: kernels of one kind each, validation kernels, shipped variants."""
NEAR = 1e-4
"""How far numbers that are not whole may be from the answer: a share of the largest of them."""


@dataclass(frozen=True)
class Timed:
    """One launch to be timed. make: its arguments. shared: bytes of dynamic shared memory. answer: arrays that it leaves,
    from its arguments, where they are known. unordered: those whose order hangs on which thread comes first. restored:
    arrays that each launch is given anew, because it would do something else on what the one before left."""

    name: str
    kernel: Kernel
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    make: Callable[[], Mapping[str, Any]]
    shared: int = 0
    answer: Callable[[Mapping[str, Any]], Mapping[str, Values]] | None = None
    unordered: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()

    def request(self, given: Mapping[str, Any] | None = None) -> Request:
        """The launch, its global arrays but those of structs on the GPU once it was made. given: arguments that are there already."""
        parameters = signature_of(self.kernel).parameters
        args = {
            name: DeviceArray(v) if _stays(v, parameters[name].type) else v
            for name, v in (given or self.make()).items()
        }
        return prepare_request(
            self.kernel, grid=self.grid, block=self.block, args=args, shared=self.shared, counters=False
        )  # fmt: skip

    def check(self, args: Mapping[str, Any], left: Mapping[str, Values]) -> None:
        """Hold what a launch left to the answer: whole numbers exactly, others to 1 in 10,000 of the largest. Raises
        LaunchError."""
        for name, expected in (self.answer(args) if self.answer else {}).items():
            found = left[name]
            if name in self.unordered:
                found, expected = np.sort(found)[-expected.size :], np.sort(expected)
            if not agree(found, expected):
                raise LaunchError(f"{self.name}: {name} is not what NumPy computes")


def _stays(given: Any, type: Any) -> bool:
    return (
        isinstance(given, np.ndarray) and not given.dtype.names and isinstance(type, Array) and type.space == "global"
    )


def agree(found: Values, expected: Values) -> bool:
    """Whether two arrays are the same, but for rounding."""
    if found.size != expected.size:
        return False
    if found.dtype.names:
        return all(agree(found[name], expected[name]) for name in found.dtype.names)
    if found.dtype.kind in "fc":
        return bool(
            np.abs(found.ravel() - expected.ravel()).max(initial=0.0) <= NEAR * np.abs(expected).max(initial=0.0)
        )
    return bool((found.ravel() == expected.ravel()).all())


def matching(cases: Iterable[Timed], pattern: str) -> list[Timed]:
    """Return the launches with names that match a pattern. Raises SimtbedError if none does."""
    found = [case for case in cases if fnmatchcase(case.name, pattern)]
    if not found:
        raise SimtbedError(f"no case fits {pattern!r}")
    return found
