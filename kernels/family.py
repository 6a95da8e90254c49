"""What the kernels of one algorithm are to the rest of the house: a family, its variants, how answers are compared."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from simtbed import Kernel, Result, SimtbedError

Problem = TypeVar("Problem")
Answer = npt.NDArray[Any]


class Launcher(Protocol):
    """Runs a family's kernels; the engine, the device and what is counted are already chosen.

    Only `launch` must be defined by a class that derives from this one.
    """

    @abstractmethod
    def launch(self, kernel: Kernel, **arguments: Any) -> Result:
        """One launch. arguments: grid, block, args and whatever else `simtbed.launch` takes."""

    def launch_concurrent(self, launches: Iterable[tuple[Kernel, Mapping[str, Any]]]) -> Iterator[Result]:
        """The results, in order, of launches that do not depend on each other: (kernel, arguments of `launch`).

        Here each launch runs when its result is asked for.
        """
        for kernel, arguments in launches:
            yield self.launch(kernel, **arguments)

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Answer:
        """A host array for arguments of launches, in the memory that the engine copies fastest."""
        return np.empty(shape, dtype)


@dataclass(frozen=True)
class FunctionLauncher(Launcher):
    """A launcher that calls a function like `simtbed.launch`."""

    function: Callable[..., Result]

    def launch(self, kernel: Kernel, **arguments: Any) -> Result:
        return self.function(kernel, **arguments)


class PlannedLaunch(NamedTuple):
    """A launch that does not depend on others, and what is to be done with its result."""

    kernel: Kernel
    arguments: Mapping[str, Any]
    collect: Callable[[Result], None]


def run_planned(planned: Iterable[PlannedLaunch], launcher: Launcher) -> None:
    """Run the launches concurrently where the launcher can; each result is collected as soon as it is there."""
    collecting: deque[Callable[[Result], None]] = deque()

    def launches() -> Iterator[tuple[Kernel, Mapping[str, Any]]]:
        for one in planned:
            collecting.append(one.collect)
            yield one.kernel, one.arguments

    for result in launcher.launch_concurrent(launches()):
        collecting.popleft()(result)


class InputError(SimtbedError):
    """A file that is not what its format says: one line, `file:line: what was found, what was expected`."""


@dataclass(frozen=True)
class Variant:
    """One way to compute a family's answer. `description` is a line of text, `paper` says where it comes from."""

    name: str
    kernel: Kernel
    description: str
    paper: str


@dataclass(frozen=True)
class Agreement:
    """Two answers side by side.

    compared, differing: values looked at; values further apart than `tolerance`.
    worst: the largest distance, in `unit` (0.0 where nothing was compared).
    """

    compared: int
    differing: int
    worst: float
    tolerance: float
    unit: str

    @property
    def agrees(self) -> bool:
        return self.differing == 0


def joined(parts: Sequence[Agreement]) -> Agreement:
    """The agreement of answers that were compared in parts, at least one."""
    compared, differing = sum(p.compared for p in parts), sum(p.differing for p in parts)
    return replace(parts[0], compared=compared, differing=differing, worst=max(p.worst for p in parts))


def agreement(answer: Answer, expected: Answer, tolerance: float, unit: str) -> Agreement:
    """Compare two arrays of numbers, element by element; equal infinities agree, a NaN agrees with nothing.

    Raises ValueError where the shapes differ: that is no disagreement but a mistake.
    """
    if answer.shape != expected.shape:
        raise ValueError(f"an answer of shape {answer.shape} cannot be compared with one of {expected.shape}")
    with np.errstate(invalid="ignore"):
        apart = np.where(answer == expected, 0.0, np.abs(answer - expected))
    apart = np.where(np.isnan(apart), np.inf, apart)
    worst = float(apart.max()) if apart.size else 0.0
    return Agreement(apart.size, int((apart > tolerance).sum()), worst, tolerance, unit)


@dataclass(frozen=True)
class Family(Generic[Problem]):
    """An algorithm: its problems, the variants that solve them, and the oracle that knows the answer.

    example: the problem shipped with the package. read: a problem from a file, InputError where it is malformed.
    solve: (problem, variant's name, launcher) to the answer. oracle: the answer by other means.
    compare: (answer, expected). preparing: kernels that make what all variants need first; a variant's profile leaves them out.
    """

    name: str
    title: str
    papers: tuple[str, ...]
    variants: Mapping[str, Variant]
    example: Callable[[], Problem]
    read: Callable[[Path], Problem]
    solve: Callable[[Problem, str, Launcher], Answer]
    oracle: Callable[[Problem], Answer]
    compare: Callable[[Answer, Answer], Agreement]
    preparing: frozenset[Kernel] = frozenset()
