"""What a record is taken of and compared with: cases, found by the names of functions that give them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy.typing as npt
from simtbed import DeviceArray, SimtbedError
from simtbed.ir.ops import Op
from simtbed.kernels import FAMILIES, Launcher
from simtbed.language.types import Scalar
from simtbed.runtime.engine import Request

from .textbook import KERNELS, Textbook

Values = npt.NDArray[Any]

DATA_SETS = {
    "pairhmm": ("pairhmm/10s.in", "pairhmm/tiny.in"),
    "alignment": ("alignment/edge.tsv", "alignment/ren64.tsv", "alignment/sit2_10s.tsv"),
    "sfs": ("sfs_1000g/small.vcf.gz", "sfs_angsd/beagle.txt"),
    "correction": ("example",),
}
"""Published inputs by family, below the folder that SIMTBED_DATA names; "example" is the shipped one."""


@dataclass(frozen=True)
class Case:
    """Something that launches kernels through a launcher."""

    name: str
    run: Callable[[Launcher], object]


@dataclass(frozen=True)
class OperationCase:
    """Rows of the op table that share their operands, all computed by one launch. type: of the last operand.

    prepare: the request, whose buffer out_ROW receives a row, and the operands. comparable: where a row is compared.
    """

    name: str
    type: Scalar
    rows: tuple[Op, ...]
    prepare: Callable[[], tuple[Request, tuple[Values, ...]]]
    comparable: Callable[[Op, tuple[Values, ...]], Values]


VARIANTS = "simtbed.reports.hardware.cases:variants"
"""Every shipped variant on its family's example."""
TEXTBOOK = "simtbed.reports.hardware.cases:textbook"
"""Every textbook kernel, at a small size."""


def variants() -> Iterator[Case]:
    """One case a variant."""
    for family in FAMILIES.values():
        for variant in family.variants:
            yield Case(f"{family.name} {variant}", partial(family.solve, family.example(), variant))


def textbook() -> Iterator[Case]:
    """One case a textbook kernel: "textbook KERNEL"."""
    for one in KERNELS:
        yield Case(f"textbook {one.name}", partial(solve_textbook, one))


def solve_textbook(one: Textbook, launcher: Launcher) -> None:
    """A textbook kernel at the size whose counters are recorded. Arrays that hang on the order of threads stay on the device."""
    case = one.small
    args = {name: DeviceArray(value) if name in case.unordered else value for name, value in case.make().items()}
    launcher.launch(case.kernel, grid=case.grid, block=case.block, args=args, shared=case.shared)


def data_set_cases(folder: Path, only: str = "*") -> list[Case]:
    """Variants that fit the pattern `only`, each on every published data set of its family: "FAMILY VARIANT DATA"."""
    return [
        Case(f"{family} {variant} {data}", partial(solve_data_set, family, variant, folder / data))
        for family, sets in DATA_SETS.items()
        for variant in FAMILIES[family].variants
        if fnmatchcase(f"{family} {variant}", only)
        for data in sets
    ]


def solve_data_set(family: str, variant: str, path: Path, launcher: Launcher) -> None:
    """A whole data set through one variant; a path that ends in `example` stands for the shipped one."""
    FAMILIES[family].solve(_problem(family, path), variant, launcher)


@cache
def _problem(family: str, path: Path) -> Any:
    chosen = FAMILIES[family]
    return chosen.example() if path.name == "example" else chosen.read(path)


def find_all(names: Iterable[str], only: str = "*") -> list[Case | OperationCase]:
    """The cases that functions named "module:function" give, those whose names fit the pattern `only`. Raises
    SimtbedError where there is none, or two of a name."""
    found: list[Case | OperationCase] = []
    for name in names:
        module, _, function = name.partition(":")
        if str(Path.cwd()) not in sys.path:
            sys.path.append(str(Path.cwd()))
        try:
            found += getattr(importlib.import_module(module), function or "cases")()
        except (ImportError, AttributeError) as error:
            raise SimtbedError(f"{name}: expected module:function, a function that gives cases: {error}") from None
    known = [case.name for case in found]
    if twice := {name for name in known if known.count(name) > 1}:
        raise SimtbedError(f"two cases are called {', '.join(sorted(twice))}")
    chosen = [case for case in found if fnmatchcase(case.name, only)]
    if not chosen:
        raise SimtbedError(f"no case fits {only!r}; there are {', '.join(known)}")
    return chosen


def find(names: Iterable[str], only: str = "*") -> list[Case]:
    """Those of them that launch kernels of the language."""
    return [case for case in find_all(names, only) if isinstance(case, Case)]
