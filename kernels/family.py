"""Interface of a kernel family: variants, solver, oracle, and comparison of answers."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from simtbed import Kernel, SimtbedError

if TYPE_CHECKING:  # listing families needs neither NumPy nor the launch code
    import numpy.typing as npt
    from simtbed import Result

Problem = TypeVar("Problem")
Answer: TypeAlias = "npt.NDArray[Any]"


class Launcher(Protocol):
    """Launches a family's kernels with a fixed engine, device and set of counters.

    A derived class must define only `launch`.
    """

    @abstractmethod
    def launch(self, kernel: Kernel, **arguments: Any) -> Result:
        """Launch a kernel. arguments: grid, block, args and the other arguments of `simtbed.launch`."""

    def launch_concurrent(self, launches: Iterable[tuple[Kernel, Mapping[str, Any]]]) -> Iterator[Result]:
        """Yield the results, in order, of independent launches: (kernel, arguments of `launch`).

        This implementation runs each launch when its result is requested.
        """
        for kernel, arguments in launches:
            yield self.launch(kernel, **arguments)

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Answer:
        """Return a host array for launch arguments, in the memory with the fastest copies of the engine."""
        import numpy as np

        return np.empty(shape, dtype)


@dataclass(frozen=True)
class FunctionLauncher(Launcher):
    """A launcher that calls a function with the signature of `simtbed.launch`."""

    function: Callable[..., Result]

    def launch(self, kernel: Kernel, **arguments: Any) -> Result:
        return self.function(kernel, **arguments)


class PlannedLaunch(NamedTuple):
    """An independent launch and the consumer of its result."""

    kernel: Kernel
    arguments: Mapping[str, Any]
    collect: Callable[[Result], None]


def run_planned(planned: Iterable[PlannedLaunch], launcher: Launcher) -> None:
    """Run the launches concurrently if the launcher can; collect each result as soon as it is available."""
    collecting: deque[Callable[[Result], None]] = deque()

    def launches() -> Iterator[tuple[Kernel, Mapping[str, Any]]]:
        for planned_launch in planned:
            collecting.append(planned_launch.collect)
            yield planned_launch.kernel, planned_launch.arguments

    for result in launcher.launch_concurrent(launches()):
        collecting.popleft()(result)


class InputError(SimtbedError):
    """A malformed input file. The message is one line: `file:line: found content, expected content`."""


def load(reference: str) -> Any:
    """Return the object of a reference "module:name". The module is imported on first use."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True)
class deferred:
    """A function imported at its first call, from a reference "module:name". It can be pickled."""

    reference: str

    def __call__(self, *arguments: Any) -> Any:
        return load(self.reference)(*arguments)


@dataclass(frozen=True)
class Variant:
    """An algorithm that computes a family's answer.

    location: "module:name" of the main kernel. description: one line of text. paper: its source.
    """

    name: str
    location: str
    description: str
    paper: str

    @property
    def kernel(self) -> Kernel:
        """The main kernel, imported on first use."""
        kernel: Kernel = load(self.location)
        return kernel


@dataclass(frozen=True)
class Explained:
    """Explanation of a variant. section: section of its paper. mapping: mapping of work to threads, in sentences.
    layout: memory layout as a text diagram. choices: sentences on details that the paper does not describe."""

    section: str
    mapping: str
    layout: str
    choices: tuple[str, ...] = ()


def by_name(variants: Iterable[Variant]) -> dict[str, Variant]:
    """Return the variants by name, in order."""
    return {variant.name: variant for variant in variants}


@dataclass(frozen=True)
class Agreement:
    """Comparison of two answers.

    compared: number of compared values. differing: number of values with a distance above `tolerance`.
    worst: largest distance, in `unit`; 0.0 if no value was compared.
    """

    compared: int
    differing: int
    worst: float
    tolerance: float
    unit: str

    @property
    def agrees(self) -> bool:
        return self.differing == 0


def merge_agreements(agreements: Sequence[Agreement]) -> Agreement:
    """Merge the comparisons of several pieces of an answer, at least one."""
    compared, differing = sum(p.compared for p in agreements), sum(p.differing for p in agreements)
    return replace(agreements[0], compared=compared, differing=differing, worst=max(p.worst for p in agreements))


@dataclass(frozen=True)
class Family(Generic[Problem]):
    """An algorithm: its problems, the variants that solve them, and an oracle.

    The row is light: host code (kernels/FAMILY/host), kernels and oracle are imported on first use.

    example: the shipped problem. read: reads a problem from a file, raises InputError if it is malformed. solve:
    (problem, name of the
    variant, launcher) to the answer. oracle: the answer by an independent algorithm. compare: (answer, expected) to the agreement.
    setup_kernels: kernels that prepare data for all variants, excluded from a variant's profile. explained: explanation of each
    variant, by name.
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
    setup_kernels: Callable[[], frozenset[Kernel]] = frozenset
    explained: Callable[[], Mapping[str, Explained]] = dict
