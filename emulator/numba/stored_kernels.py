"""Translated kernels, and their entries in the cache on disk, that make the compiler unnecessary."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import disk_cache
from ..own_code import PtxText
from ..span import Span
from .kernel import KernelFacts, NumbaKernel
from .marks import RaisedException

if TYPE_CHECKING:
    from ..ir import nodes as ir

OwnCode = Callable[[KernelFacts], PtxText | None]
"""Returns the code of a kernel on a GPU; None if only an emulator runs it."""


@dataclass(frozen=True)
class CompiledKernel:
    """A translated kernel. entry: the name of its LLVM function. raised: the exceptions of a kernel with debug=True, by the
    message and the position of their finding. sensitive: whether Numba compiles it for one launch configuration."""

    facts: KernelFacts
    entry: str
    raised: dict[tuple[str, Span], RaisedException]
    sensitive: bool


def stored_kernel(
    key: str | None, translated: Callable[[], ir.Program], own: OwnCode
) -> tuple[CompiledKernel, NumbaKernel] | None:
    """Return a kernel from the cache on disk. translated: returns its program if that was removed from the cache."""
    compiled: CompiledKernel | None = None if key is None else disk_cache.load(f"{key}.numba", pickle.loads)
    if compiled is None:
        return None

    def read() -> ir.Program:
        return disk_cache.load(f"{key}.program", pickle.loads) or translated()

    return compiled, NumbaKernel(compiled.facts, key, read, own(compiled.facts))


def new_kernel(compiled: CompiledKernel, program: ir.Program, key: str | None, own: OwnCode) -> NumbaKernel:
    """Return a kernel; with a key it is stored in the cache on disk, unless it belongs to this process alone."""
    if key is None or compiled.sensitive or any(view.parameter is None for view in compiled.facts.arrays.values()):
        return NumbaKernel(compiled.facts, None, lambda: program, own(compiled.facts))
    disk_cache.save(f"{key}.program", pickle.dumps(program))
    disk_cache.save(f"{key}.numba", pickle.dumps(compiled))
    return NumbaKernel(compiled.facts, key, lambda: program, own(compiled.facts))
