"""A kernel of Numba for its argument types, as simtbed launches it."""

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
from ..llvmir.parameters import ArrayParameter, ArrayView, ConstantParameter, Parameter, ScalarParameter, ScalarSource
from ..own_code import OwnArgument, OwnCode
from ..span import Span

WORDS = {
    "st.sync()": "cuda.syncthreads()",
    "st.syncwarp()": "cuda.syncwarp()",
    "st.syncwarp(mask)": "cuda.syncwarp(mask)",
    "st.ballot(condition)": "cuda.ballot_sync(mask, condition)",
    "st.grid_sync()": "cuda.cg.this_grid().sync()",
    "st.cluster_sync()": "a barrier of the cluster",
    "st.fence()": "cuda.threadfence()",
    "st.fence_block()": "cuda.threadfence_block()",
    " or st.volatile_load()": "",
    " or st.volatile_store()": "",
}
"""The language's words in findings, in Numba's words. Numba has no volatile accesses."""
_POINTER = 8


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


def own_argument(index: int, facts: KernelFacts) -> OwnArgument:
    """Return the bytes of one parameter. One that the program does not use is 0."""
    parameter = facts.parameters[index]
    sources = {name: source for name, source in facts.scalars.items() if source.parameter == index}
    match parameter:
        case ScalarParameter():
            size = parameter.type.size
            for name, source in sources.items():
                if source.divisor == 1:
                    return OwnArgument(size, ((0, name),))
            terms = tuple((name, source.divisor) for name, source in sources.items())[:1]
            return OwnArgument(size, (), terms=terms)
        case ArrayParameter():
            views = [(view.phase, name) for name, view in facts.arrays.items() if view.parameter == index]
            if not views:
                return OwnArgument(_POINTER, ())
            phase, name = min(views)
            offsets = [(name, source.divisor) for name, source in sources.items() if source.kind == "offset"]
            return OwnArgument(_POINTER, ((0, name),), -phase, terms=tuple(offsets[:1]))
        case ConstantParameter():
            return OwnArgument(parameter.type.size, (), constant=parameter.value)
    return OwnArgument(_POINTER, ())


class NumbaKernel(LaunchableKernel):
    """A kernel of Numba for its argument types. key: of its entries on disk, None for no entries. read: returns the program.
    own: its code on a GPU; None if only an emulator runs it."""

    unchecked = frozenset({"arithmetic"})  # integers of Numba wrap
    tolerated = frozenset({"convergence"})
    words = WORDS

    def __init__(
        self, facts: KernelFacts, key: str | None, read: Callable[[], ir.Program], own: OwnCode | None
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

    def own_code(self, consts: Mapping[str, Any]) -> OwnCode | None:
        return self._own

    def digest(self) -> str | None:
        return self._key
