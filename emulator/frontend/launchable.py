"""The protocol of kernels: the interface between launches and any front end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..language.types import ArrayLayout, Scalar
from .signature import Signature

if TYPE_CHECKING:
    from ..ir import nodes as ir
    from ..own_code import OwnCode


class LaunchableKernel(ABC):
    """A kernel of any front end, an argument of `launch`, `verify` and `whatif`.

    A front end implements `signature` and `specialise`; the other members have defaults. `ProgramKernel` is an example.

    Every parameter of the program is a parameter of the signature with the same name and type. A parameter of the signature
    without a type is a Const value: no parameter of the program, but a key of `consts`. A global array has one dimension and no
    gaps in the program unless `layouts` contains it (`ArrayLayout`); a front end without such arrays requires contiguous arguments.
    The program satisfies `ir.spec.verify`. Its spans refer to the user's file, or to a name registered in `linecache`.

    Attributes
    ----------
    defaults : values of parameters that a launch need not give, by name.
    unchecked : checkers without a meaning for the kernel's language, such as "arithmetic" if its integers wrap.
    tolerated : kinds of findings that end no launch without checkers and are no remarks, as their results are defined on a GPU.
    words : replacements of the language's words in findings, such as {"st.sync()": "__syncthreads()"}.
    text : the text of the kernel, `result.source`; None for the program printed as CUDA C++.
    places : files and lines of the spans, part of the key of compiled line tables.
    cluster : blocks of a cluster by axis that the text declares.
    stale : whether the kernel has changed since it was first launched; its specialisations are then discarded.
    """

    __name__: str
    unchecked: frozenset[str] = frozenset()
    tolerated: frozenset[str] = frozenset()
    words: Mapping[str, str] = {}
    text: str | None = None
    places: str = ""

    @property
    def defaults(self) -> Mapping[str, Any]:
        return {}

    @property
    def cluster(self) -> tuple[int, int, int]:
        return 1, 1, 1

    @property
    def stale(self) -> bool:
        return False

    def bind(self, args: Any) -> tuple[LaunchableKernel, Any]:
        """Return the kernel for the types of these arguments of a launch, and its arguments: a mapping by name, or a sequence.

        A front end whose parameters have no declared types returns another kernel for each combination, created once.
        The result's own `bind` returns itself.
        """
        return self, args

    @abstractmethod
    def signature(self) -> Signature:
        """Return the parameters in order. Raises CompileError."""

    @abstractmethod
    def specialise(
        self, consts: Mapping[str, Any], real: Scalar | None, layouts: Mapping[str, ArrayLayout]
    ) -> ir.Program:
        """Return the program for these Const values, this type of Real and these array layouts. Raises CompileError."""

    def own_code(self, consts: Mapping[str, Any]) -> OwnCode | None:
        """Return the code of the user's own source for these Const values, which the cuda engine runs; None for the printed program."""
        return None

    def digest(self) -> str | None:
        """Return a digest of everything that determines the programs, the key of caches on disk; None for no such cache."""
        return None


class ProgramKernel(LaunchableKernel):
    """A kernel for one IR program."""

    def __init__(self, program: ir.Program) -> None:
        self.__name__, self.program = program.kernel.name, program

    def signature(self) -> Signature:
        return Signature.of_program(self.program)

    def specialise(
        self, consts: Mapping[str, Any], real: Scalar | None, layouts: Mapping[str, ArrayLayout]
    ) -> ir.Program:
        return self.program
