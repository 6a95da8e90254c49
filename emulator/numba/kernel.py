"""A kernel of Numba for its argument types, as simtbed launches it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..errors import CompileError, Diagnostic
from ..frontend.launchable import LaunchableKernel
from ..frontend.signature import Signature
from ..ir import nodes as ir
from ..ir.walk import declared_bytes
from ..language.types import ArrayLayout, Scalar
from ..llvmir.parameters import ArrayView, Parameter, ScalarSource
from ..own_code import PtxText
from ..span import Span

WORDS = {
    "st.sync()": "cuda.syncthreads()",
    "st.syncwarp()": "cuda.syncwarp()",
    "st.syncwarp(mask)": "cuda.syncwarp(mask)",
    "st.ballot(condition)": "cuda.ballot_sync(mask, condition)",
    "st.grid_sync()": "cuda.cg.this_grid().sync()",
    "st.fence()": "cuda.threadfence()",
    "st.fence_block()": "cuda.threadfence_block()",
    " or st.volatile_load()": "",
    " or st.volatile_store()": "",
}
"""The language's words in findings, in Numba's words. Numba has no volatile accesses."""


def require_no_link(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise CompileError for the option `link=` of a kernel."""
    if options.get("link"):
        file, line = function.__code__.co_filename, function.__code__.co_firstlineno
        message = f"{function.__name__}: link=: sources and objects of CUDA C++ need NVIDIA's linker"
        raise CompileError([Diagnostic("compile", message, Span(file, line, 1, line, 1))])


@dataclass(frozen=True)
class KernelFacts:
    """Everything that a launch needs of a kernel except its program.

    parameters: of the LLVM function. arrays, scalars: the sources of the program's parameters. cooperative: whether blocks wait for
    each other.
    """

    name: str
    parameters: Sequence[Parameter]
    arrays: Mapping[str, ArrayView]
    scalars: Mapping[str, ScalarSource]
    cooperative: bool


class NumbaKernel(LaunchableKernel):
    """A kernel of Numba for its argument types. key: of its entries on disk, None for no entries. read: returns the program.
    own: its code on a GPU; None if only an emulator runs it."""

    unchecked = frozenset({"arithmetic"})  # integers of Numba wrap
    tolerated = frozenset({"convergence"})
    words = WORDS

    def __init__(
        self, facts: KernelFacts, key: str | None, read: Callable[[], ir.Program], own: PtxText | None
    ) -> None:
        self.__name__ = self.__qualname__ = facts.name
        self.facts, self._key, self._read, self._own = facts, key, read, own

    def __repr__(self) -> str:
        return f"<NumbaKernel {self.__name__}>"

    @cached_property
    def program(self) -> ir.Program:
        return self._read()

    def signature(self) -> Signature:
        return Signature.of_program(self.program)

    def specialise(
        self, consts: Mapping[str, Any], real: Scalar | None, layouts: Mapping[str, ArrayLayout]
    ) -> ir.Program:
        return self.program

    def declared_bytes(self, space: str) -> int:
        """Return the bytes of the arrays that the kernel declares in shared, local or constant memory."""
        return declared_bytes(self.program, space)

    def own_code(self, consts: Mapping[str, Any]) -> PtxText | None:
        return self._own

    def digest(self) -> str | None:
        return self._key
