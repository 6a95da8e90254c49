"""The packages whose programs run on the emulator: their modules, tested versions and extras. Private names of these are replaced."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..errors import UnavailableError


@dataclass(frozen=True)
class Package:
    """A package of Numba for CUDA.

    module: contains `types`, `cudadrv` and the other modules. dispatcher: module and class of kernels and device functions.
    libraries: packages whose versions are in the keys of kernels. tested: accepted versions by distribution, a version, or the
    beginning of one that ends with a dot. extra: of simtbed.
    """

    module: str
    dispatcher: tuple[str, str]
    libraries: tuple[str, ...]
    tested: Mapping[str, tuple[str, ...]]
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
        for name, accepted in self.tested.items():
            expected = " or ".join(f"{text}*" if text.endswith(".") else text for text in accepted)
            try:
                own = version(name)
            except PackageNotFoundError:
                raise UnavailableError(f"{name} is not installed: pip install 'simtbed[{self.extra}]'") from None
            if not any(own == text or (text[-1] == "." and own.startswith(text)) for text in accepted):
                raise UnavailableError(
                    f"{name} {own} is not supported: simtbed runs Numba programs with {name} {expected}; "
                    f"pip install '{name}=={expected}'"
                )

    def installed_versions(self) -> dict[str, str]:
        """Return the versions of the distributions, a component of cache keys."""
        return {name: version(name) for name in self.tested}


NUMBA_CUDA = Package(
    "numba.cuda",
    ("numba.cuda.dispatcher", "CUDADispatcher"),
    ("numba", "numba_cuda", "numpy", "os"),
    {"numba-cuda": ("0.30.4",), "numba": ("0.68.",), "llvmlite": ("0.50.",)},
    "numba-cuda",
)
NUMBA_CUDA_MLIR = Package(
    "numba_cuda_mlir.numba_cuda",
    ("numba_cuda_mlir.descriptor", "MLIRDispatcher"),
    ("numba_cuda_mlir", "numpy", "os"),
    {"numba-cuda-mlir": ("0.6.0",), "llvmlite": ("0.50.",)},
    "numba-cuda-mlir",
)
