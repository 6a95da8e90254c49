"""The packages whose programs run on the emulator: their modules, tested versions and extras. Private names of these are replaced."""

import importlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..errors import UnavailableError


@dataclass(frozen=True)
class Package:
    """A package of Numba for CUDA.

    module: contains `types`, `cudadrv` and the other modules. dispatcher: module and class of kernels and device functions.
    libraries: packages whose versions are in the keys of kernels. tested: accepted versions, the newest first: the oldest and the
    newest by distribution, each with all versions that begin with it; the first distribution decides which are valid for the
    others. extra: of simtbed.
    """

    module: str
    dispatcher: tuple[str, str]
    libraries: tuple[str, ...]
    tested: Sequence[Mapping[str, tuple[str, str]]]
    extra: str

    def submodule(self, name: str) -> Any:
        """Import a module of the package."""
        return importlib.import_module(f"{self.module}.{name}")

    @cached_property
    def dispatcher_class(self) -> type[Any]:
        module, name = self.dispatcher
        dispatcher: type[Any] = getattr(importlib.import_module(module), name)
        return dispatcher

    @cached_property
    def folders(self) -> tuple[str, ...]:
        """The folders of the libraries."""
        files = [importlib.import_module(name).__file__ or "" for name in self.libraries]
        return tuple(os.path.dirname(file) + os.sep for file in files)

    def require_versions(self) -> None:
        """Raise UnavailableError for a missing distribution or for another version than the tested ones."""
        first, own = next(iter(self.tested[0])), self.version()
        rows = [row for row in self.tested if _is_within(own, *row[first])]
        if not rows:
            raise _unsupported(first, own, "simtbed", self.tested[-1][first][0], self.tested[0][first][1])
        for name, limits in rows[0].items():
            if not _is_within(other := self._installed(name), *limits):
                raise _unsupported(name, other, f"{first} {own}", *limits)

    def version(self) -> str:
        """Return the version of the package. Raises UnavailableError if it is not installed."""
        return self._installed(next(iter(self.tested[0])))

    def _installed(self, name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            raise UnavailableError(f"{name} is not installed: pip install 'simtbed[{self.extra}]'") from None

    def installed_versions(self) -> dict[str, str]:
        """Return the versions of the distributions, a component of cache keys."""
        return {name: version(name) for name in self.tested[0]}


def _is_within(own: str, oldest: str, newest: str) -> bool:
    first, last = _numbers(oldest), _numbers(newest)
    return first <= _numbers(own) and _numbers(own)[: len(last)] <= last


def _numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of a version: (0, 30, 4)."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def _unsupported(name: str, own: str, needs: str, oldest: str, newest: str) -> UnavailableError:
    return UnavailableError(
        f"{name} {own} is not supported: {needs} runs Numba programs with {name} {oldest} to {newest}; "
        f"pip install '{name}=={newest}.*'"
    )


NUMBA_CUDA = Package(
    "numba.cuda",
    ("numba.cuda.dispatcher", "CUDADispatcher"),
    ("numba", "numba_cuda", "numpy", "os"),
    (
        {
            "numba-cuda": ("0.30.4", "0.30.4"),
            "numba": ("0.62", "0.68"),
            "llvmlite": ("0.45", "0.50"),
            "numpy": ("2", "2.4"),
        },
        {
            "numba-cuda": ("0.28", "0.30.3"),
            "numba": ("0.62", "0.65"),
            "llvmlite": ("0.45", "0.47"),
            "numpy": ("2", "2.4"),
        },
    ),
    "numba-cuda",
)
NUMBA_CUDA_MLIR = Package(
    "numba_cuda_mlir.numba_cuda",
    ("numba_cuda_mlir.descriptor", "MLIRDispatcher"),
    ("numba_cuda_mlir", "numpy", "os"),
    ({"numba-cuda-mlir": ("0.6.0", "0.6.0"), "llvmlite": ("0.50", "0.50"), "numpy": ("2", "2.4")},),
    "numba-cuda-mlir",
)
PACKAGES = {"numba.cuda": NUMBA_CUDA, "numba_cuda_mlir": NUMBA_CUDA_MLIR}
"""The packages by the module that their programs import."""
