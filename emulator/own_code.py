"""A kernel's code from the user's own source, for the engine that runs it on a GPU instead of the printed program."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class OwnArgument:
    """The bytes of one parameter of the kernel's own code.

    size: in bytes. contents: the program's parameters in it, by offset; of an array, its address plus `shift` bytes.
    null: whether a pointer without an array is null; another one is never dereferenced.
    constant, terms: a number, and scalars of the program, each with a factor, that are added to an integer parameter.
    form: `language.tensor_maps.TensorMapForm` of a tensor map, whose array is that of `contents`.
    """

    size: int
    contents: tuple[tuple[int, str], ...]
    shift: int = 0
    null: bool = True
    constant: int = 0
    terms: tuple[tuple[str, int], ...] = ()
    form: object = None


@dataclass(frozen=True, kw_only=True)
class OwnCode:
    """A kernel's own code. kernel: its symbol. arguments: in order. constants: contents of variables in constant memory, by symbol."""

    kernel: str
    arguments: tuple[OwnArgument, ...]
    constants: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, kw_only=True)
class CudaText(OwnCode):
    """A kernel in CUDA C++ as its user wrote it.

    text: a translation unit; its `#line` directives name the user's lines. options: of nvcc.
    """

    text: str
    options: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CubinCode(OwnCode):
    """A kernel that the compiler of its language compiled for one architecture, such as "sm_90"."""

    cubin: bytes
    architecture: str


@dataclass(frozen=True)
class Ptx:
    """PTX, and the folder of the CUDA toolkit that made it: an nvcc of another version may not accept it."""

    text: str
    toolkit: Path


@dataclass(frozen=True, kw_only=True)
class PtxText(OwnCode):
    """A kernel that the compiler of its language translates to PTX.

    text: returns the PTX for an architecture such as "sm_90". Another process has no such compiler: there it raises LaunchError.
    """

    text: Callable[[str], Ptx]
