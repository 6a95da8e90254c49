"""The own CUDA C++ text of a kernel, for the engine that compiles CUDA C++."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TextArgument:
    """The bytes of one parameter of the text's kernel.

    size, alignment: in bytes. contents: the program's parameters in it, by offset; of an array, its address plus `shift` bytes.
    null: whether a pointer without an array is null; another one is never dereferenced.
    """

    size: int
    alignment: int
    contents: tuple[tuple[int, str], ...]
    shift: int = 0
    null: bool = True


@dataclass(frozen=True)
class CudaText:
    """A kernel as its user wrote it.

    text: a translation unit; its `#line` directives name the user's lines. options: of nvcc. kernel: the symbol of the kernel.
    arguments: in order. constants: contents of variables in constant memory, by symbol.
    """

    text: str
    options: tuple[str, ...]
    kernel: str
    arguments: tuple[TextArgument, ...]
    constants: tuple[tuple[str, bytes], ...] = ()
