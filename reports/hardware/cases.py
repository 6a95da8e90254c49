"""Cases of a record, found by the names of functions: `--cases MODULE:FUNCTION`."""

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy.typing as npt
from simtbed import SimtbedError
from simtbed.checked import shown
from simtbed.ir.ops import Op
from simtbed.kernels import FAMILIES, Launcher
from simtbed.language.types import Scalar
from simtbed.runtime.engine import Request

Values = npt.NDArray[Any]

DATA_SETS = {
    "pairhmm": ("pairhmm/10s.in", "pairhmm/tiny.in"),
    "alignment": ("alignment/edge.tsv", "alignment/ren64.tsv", "alignment/sit2_10s.tsv"),
    "sfs": ("sfs_1000g/small.vcf.gz", "sfs_angsd/beagle.txt"),
    "correction": ("example",),
}
"""Published inputs by family, below the folder SIMTBED_DATA; "example" is the shipped example."""


@dataclass(frozen=True)
class Case:
    """A named function that launches kernels through a launcher."""

    name: str
    run: Callable[[Launcher], object]


@dataclass(frozen=True)
class OperationCase:
    """Rows of the op table with common operands, computed by one launch. type: of the last operand.

    prepare: the request, with a buffer out_ROW for each row, and the operands. comparable: mask of the elements to compare.
    """

    name: str
    type: Scalar
    rows: tuple[Op, ...]
    prepare: Callable[[], tuple[Request, tuple[Values, ...]]]
    comparable: Callable[[Op, tuple[Values, ...]], Values]


CHECKOUT = "tests.validation"
"""Cases and records of this project, in a checkout only."""
VARIANTS = "simtbed.reports.hardware.cases:variants"
"""Every shipped variant on its family's example."""


def variants() -> Iterator[Case]:
    """Yield one case for each variant, on the example of its family."""
    for family in FAMILIES.values():
        for variant in family.variants:
            yield Case(f"{family.name} {variant}", partial(family.solve, family.example(), variant))


def data_set_cases(folder: Path, only: str = "*") -> list[Case]:
    """Return the variants with names that match `only`, on every published data set of their family: "FAMILY VARIANT DATA"."""
    return [
        Case(f"{family} {variant} {data}", partial(solve_data_set, family, variant, folder / data))
        for family, sets in DATA_SETS.items()
        for variant in FAMILIES[family].variants
        if fnmatchcase(f"{family} {variant}", only)
        for data in sets
    ]


def solve_data_set(family: str, variant: str, path: Path, launcher: Launcher) -> None:
    """Run a variant on a whole data set; a path that ends in `example` is the shipped example."""
    FAMILIES[family].solve(_problem(family, path), variant, launcher)


@cache
def _problem(family: str, path: Path) -> Any:
    chosen = FAMILIES[family]
    return chosen.example() if path.name == "example" else chosen.read(path)


def results_of(names: Iterable[str]) -> Iterator[Any]:
    """Return the items of the functions with the names "MODULE:FUNCTION", default `cases`. Raises SimtbedError for an unknown name."""
    for name in names:
        module, _, function = name.partition(":")
        if str(Path.cwd()) not in sys.path:
            sys.path.append(str(Path.cwd()))
        try:
            make = getattr(importlib.import_module(module), function or "cases")
        except (ImportError, AttributeError, TypeError, ValueError) as error:  # the last two: no name of a module
            if isinstance(error, ModuleNotFoundError) and CHECKOUT.startswith(str(error.name)):
                raise SimtbedError(
                    f"{name}: run this in a checkout of simtbed, or name other cases: --cases MODULE:FUNCTION"
                ) from None
            raise SimtbedError(f"{name}: expected module:function, a function that gives cases: {error}") from None
        if not callable(make):
            raise SimtbedError(f"{name}: expected module:function, a function that gives cases, not {shown(make)}")
        try:
            items = list(make())
        except SimtbedError:
            raise
        except Exception as error:  # it is a program of the user
            reason = f"{type(error).__name__}: {error}"
            raise SimtbedError(f"{name}: expected module:function, a function that gives cases: {reason}") from None
        yield from items


def find_all(names: Sequence[str], only: str = "*") -> list[Case | OperationCase]:
    """Return the cases of the functions "MODULE:FUNCTION" with names that match the pattern `only`. Raises SimtbedError
    if none does, or two cases have one name."""
    cases: list[Case | OperationCase] = list(results_of(names))
    if wrong := [case for case in cases if not isinstance(case, Case | OperationCase)]:
        raise SimtbedError(f"{', '.join(names)}: expected functions that give cases, not {shown(wrong[0])}")
    names_found = [case.name for case in cases]
    if twice := {name for name in names_found if names_found.count(name) > 1}:
        raise SimtbedError(f"two cases are called {', '.join(sorted(twice))}")
    chosen = [case for case in cases if fnmatchcase(case.name, only)]
    if not chosen:
        raise SimtbedError(f"no case fits {only!r}; there are {', '.join(names_found)}")
    return chosen


def find(names: Sequence[str], only: str = "*") -> list[Case]:
    """Return the cases of `find_all` that launch kernels of the language."""
    return [case for case in find_all(names, only) if isinstance(case, Case)]
