"""The kernels of one source of a program, by their symbols."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256

import numpy as np

from ... import disk_cache
from ...cuda_cpp.addresses import Bytes, memory_at
from ...cuda_cpp.compiled_text import CompiledModule
from ...cuda_cpp.declaration import Declaration, HostParameter, OutsideVariable
from ...cuda_cpp.kernel import CudaKernel, CudaSource
from ...cuda_cpp.lowering import outside_variable
from ...cuda_cpp.places import SourceText


class ProgramUnit(CudaSource):
    """The kernels of a source. module: its LLVM IR; instances of templates are those that the host code launches."""

    def __init__(self, path: str, module: str, options: tuple[str, ...]) -> None:
        super().__init__(SourceText.of_file(path), options)
        self.module = CompiledModule(self.source, module)
        self.digest = sha256(f"{disk_cache.edition()} {module}".encode()).hexdigest()

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
        variable = self.module.module.variables.get(symbol)
        return bytes(size) if variable is None else outside_variable(self.module, variable).contents

    @property
    def compiled(self) -> CompiledModule:  # type: ignore[override]
        return self.module

    def kernel(self, symbol: str) -> CudaKernel | None:
        """Return the kernel with a symbol. A name of several kernels is replaced by the symbol."""
        functions = self.module.functions
        function = functions.get(symbol)
        if function is None:
            return None
        names = Counter(own.name for own in functions.values())
        declaration = Declaration(symbol, tuple(HostParameter(*own) for own in function.parameters))
        return CudaKernel(self, function.name if names[function.name] == 1 else symbol, declaration)
