"""A family of kernels as the rest of the project sees it: its variants, how it is solved, and how answers are compared."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from simtbed import Kernel, SimtbedError

if TYPE_CHECKING:  # rows are light: neither NumPy nor what launches is needed to list them
    import numpy.typing as npt
    from simtbed import Result

Problem = TypeVar("Problem")
Answer: TypeAlias = "npt.NDArray[Any]"


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
        import numpy as np

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


def load(reference: str) -> Any:
    """What a reference "module:name" stands for; the module is imported if it was not yet."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True)
class deferred:
    """A function that is imported when it is first called, from a reference "module:name". Other processes can be given it."""

    reference: str

    def __call__(self, *arguments: Any) -> Any:
        return load(self.reference)(*arguments)


@dataclass(frozen=True)
class Variant:
    """One way to compute a family's answer.

    location: "module:name" of the kernel that does most of the work. description: a line of text. paper: its source.
    """

    name: str
    location: str
    description: str
    paper: str

    @property
    def kernel(self) -> Kernel:
        """The kernel, imported when it is first asked for."""
        kernel: Kernel = load(self.location)
        return kernel


@dataclass(frozen=True)
class Explained:
    """How a variant works. section: of its paper. mapping: of work to threads, in sentences. layout: where values stand
    in memory, as a picture of text."""

    section: str
    mapping: str
    layout: str


def by_name(variants: Iterable[Variant]) -> dict[str, Variant]:
    """The variants of a family, by name, in their order."""
    return {variant.name: variant for variant in variants}


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


@dataclass(frozen=True)
class Family(Generic[Problem]):
    """An algorithm: its problems, the variants that solve them, and the oracle that knows the answer.

    A family is a light row: its host code (kernels/FAMILY/host), its kernels and its oracle are imported when first used.

    example: the problem shipped with the package. read: a problem from a file, InputError where it is malformed.
    solve: (problem, variant's name, launcher) to the answer. oracle: the answer by other means.
    compare: (answer, expected). preparing: the kernels that prepare what all variants need; a variant's profile leaves
    them out. explained: how each variant works, by name.
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
    preparing: Callable[[], frozenset[Kernel]] = frozenset
    explained: Callable[[], Mapping[str, Explained]] = dict
