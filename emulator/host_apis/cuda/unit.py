"""The kernels of one source of a program, by their symbols."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from ... import disk_cache
from ...cuda_cpp.addresses import Bytes, memory_at
from ...cuda_cpp.declaration import Declaration, OutsideVariable
from ...cuda_cpp.kernel import CudaKernel, CudaSource
from ...cuda_cpp.places import SourceText
from ...errors import UnavailableError
from ...escaping import printable
from ...llvmir.types import UnsupportedError
from ...runtime.textures import Surface, Texture

if TYPE_CHECKING:
    from ...cuda_cpp.compiled_text import CompiledModule

MAX_NAME = 60
"""Characters of a kernel's name that is shown whole: those of library templates have up to 1,000."""


@dataclass(frozen=True)
class UnitContents:
    """The kernels of a source, by symbol: their name and declaration. variables: initial contents that are not zeros, by symbol."""

    kernels: Mapping[str, tuple[str, Declaration]]
    variables: Mapping[str, bytes]


class ProgramUnit(CudaSource):
    """The kernels of a source. module: its LLVM IR; instances of templates are those that the host code launches."""

    def __init__(self, path: str, module: str, options: tuple[str, ...]) -> None:
        super().__init__(SourceText.of_file(path), options)
        self.module = module
        self.digest = sha256(f"{disk_cache.edition()} {module}".encode()).hexdigest()

        self.textures: dict[str, Callable[[], Texture | Surface]] = {}
        """What texture references are bound to, by name."""
        self.addresses: dict[str, int] = {}
        """Addresses of the variables that host code names, by symbol."""
        self.hidden: dict[str, Bytes] = {}
        """Memory of the other variables."""

    def memory(self, row: OutsideVariable) -> Bytes:
        """Return the memory of a variable."""
        if row.symbol in self.addresses:
            return memory_at(self.addresses[row.symbol], len(row.contents))
        return self.hidden.setdefault(row.symbol, np.frombuffer(row.contents, np.uint8).copy())

    def initial_bytes(self, symbol: str, size: int) -> bytes:
        """Return the initial contents of a variable; zeros for one that no kernel accesses."""
        return self.contents.variables.get(symbol, bytes(size))

    @cached_property
    def compiled(self) -> CompiledModule:  # type: ignore[override]
        from ...cuda_cpp.compiled_text import CompiledModule  # late: most processes find their kernels on the disk

        return CompiledModule(self.source, self.module)

    @cached_property
    def contents(self) -> UnitContents:
        """The kernels and variables of the module."""
        return disk_cache.cached_object(f"unit {self.digest}", self._contents)

    def _contents(self) -> UnitContents:
        from ...cuda_cpp.lowering import outside_variable  # late, as above

        functions, variables = self.compiled.functions, self.compiled.module.variables
        names = Counter[str]()
        kernels = {}
        for symbol, own in functions.items():
            name = short_name(own.name)
            names[name] += 1
            numbered = name if names[name] == 1 else f"{name} #{names[name]}"
            kernels[symbol] = numbered, self.compiled.declaration(own)
        filled = {}
        for symbol, variable in variables.items():
            try:
                if variable.described >= 0 and any(contents := outside_variable(self.compiled, variable).contents):
                    filled[symbol] = contents
            except UnsupportedError:
                text = "pointers to functions and virtual functions are not supported"
                raise UnavailableError(f"{printable(self.source.file)}: {symbol}: {text}") from None
        return UnitContents(kernels, filled)

    def kernel(self, symbol: str) -> CudaKernel | None:
        """Return the kernel with a symbol. The second kernel of a name, and further ones, have a number behind it."""
        row = self.contents.kernels.get(symbol)
        return None if row is None else CudaKernel(self, *row)


def short_name(name: str) -> str:
    """Return a kernel's name, one of more than MAX_NAME characters without namespaces and nested template arguments, else without any."""
    if len(name) <= MAX_NAME:
        return name
    flat, depth = "", 0
    for letter in name:
        depth -= letter == ">"
        flat += letter * (depth < 2)
        depth += letter == "<"
    flat = re.sub(r"\b\w+(?:<>)?::", "", flat)
    return flat if len(flat) <= MAX_NAME else f"{name.partition('<')[0]}<...>"
