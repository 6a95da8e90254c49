"""Translation of a kernel that Triton compiled: its LLVM IR, the parameters by the names of the Python function, its positions."""

import ast
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from .. import source_text
from ..errors import CompileError, Diagnostic, LaunchError
from ..ir.names import component
from ..language.tensor_maps import TensorMapForm
from ..language.types import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, Scalar
from ..llvmir.module import Position
from ..llvmir.parameters import (
    ArrayParameter,
    Parameter,
    ScalarParameter,
    TextureParameter,
    Translation,
    UnusedPointer,
)
from ..llvmir.text import parse_declarations
from ..llvmir.translate import translate
from ..span import Span

TYPES: Mapping[str, Scalar] = {
    "i1": BOOL, "u1": BOOL, "i8": I8, "i16": I16, "i32": I32, "i64": I64, "u8": U8, "u16": U16, "u32": U32, "u64": U64, "fp16": F16,
    "bf16": BF16, "fp32": F32, "f32": F32, "fp64": F64,
}  # fmt: skip
"""Types of arguments by Triton's names."""
TENSOR_MAP = "tensormap"
"""The type of a tensor descriptor that is a tensor map."""
_BY_VALUE = re.compile(r'ptr byval\(\[128 x i8\]\) align 64 "nvvm.grid_constant"')


@dataclass(frozen=True)
class Argument:
    """An argument of the LLVM function. path: the index of the parameter of the Python function, then of the items of tuples.
    type: as Triton names it; `*fp16` is a pointer."""

    name: str
    path: tuple[int, ...]
    type: str

    @property
    def is_pointer(self) -> bool:
        return self.type.startswith("*")

    @property
    def is_memory(self) -> bool:
        return self.is_pointer or self.type == TENSOR_MAP

    def parameter(self, offset: bool, form: TensorMapForm | None) -> Parameter:
        """Return the parameter of the LLVM function. offset: whether elements may precede the tensor in its storage. form: of a
        tensor map.

        Raises LaunchError for another type than numbers, pointers to them and tensor maps.
        """
        if self.type == TENSOR_MAP:
            return TextureParameter(self.name, form)
        if not self.is_pointer:
            if self.type not in TYPES:
                raise LaunchError(f"{self.name}: an argument {self.type} is not supported")
            return ScalarParameter(self.name, TYPES[self.type])
        element = TYPES.get(self.type.removeprefix("*").removeprefix("k"), U8)
        element = I8 if element is BOOL else element
        return ArrayParameter(self.name, element, element.size, offset)


def arguments_of(signature: Mapping[str, Any]) -> list[Argument]:
    """Return the arguments of the LLVM function. signature: of Triton's source, types by the names of parameters."""
    return [own for number, (name, type) in enumerate(signature.items()) for own in _leaves(name, (number,), type)]


def _leaves(name: str, path: tuple[int, ...], type: Any) -> Iterator[Argument]:
    if isinstance(type, tuple):
        for number, item in enumerate(type):
            yield from _leaves(component(name, str(number)), (*path, number), item)
    elif type != "constexpr":
        yield Argument(name, path, type)


def parameters_of(
    arguments: Sequence[Argument], offsets: frozenset[str], forms: Mapping[str, TensorMapForm], scratch: bool
) -> list[Parameter]:
    """Return the parameters of the LLVM function.

    offsets: names of the tensors with elements before them in their storage. forms: of tensor maps by name. scratch: whether blocks
    have global scratch memory.
    """
    own = [argument.parameter(argument.name in offsets, forms.get(argument.name)) for argument in arguments]
    return [*own, ArrayParameter("global_scratch", None, 1) if scratch else UnusedPointer(), UnusedPointer()]


def translated(text: str, entry: str, name: str, span: Span, parameters: Sequence[Parameter]) -> Translation:
    """Return the program of a kernel. text: LLVM IR. entry: the name of its function. parameters: of the function.

    Raises CompileError with the position of an unsupported construct.
    """
    span_of, text = _span_of(text), _BY_VALUE.sub("ptr", text)
    try:
        return translate(text, entry, parameters, name=name, span=span, span_of=span_of, pointers="arrays")
    except CompileError as error:
        raise CompileError([_with_advice(one) for one in error.diagnostics]) from None


_HOPPER = re.compile(r"mbarrier|cp\.async\.bulk|tensormap|setmaxnreg|multicast|a barrier|barriers with")
_INSTEAD = "--device A100 compiles the kernel for sm_80, which has none"


def _with_advice(refusal: Diagnostic) -> Diagnostic:
    """Return a refusal; that of an instruction of Hopper with the device whose code has none."""
    if not _HOPPER.search(refusal.message):
        return refusal
    first = re.sub(r"'(\S+) [^']*'", r"'\1'", refusal.message)
    return replace(
        refusal,
        message=f"{first}: copies to several blocks, warp specialisation and reductions of boxes are those of sm_90; {_INSTEAD}",
    )


def _span_of(text: str) -> Callable[[Position], Span | None]:
    """Return a function from positions to spans of the user's files; None for a position in Triton's own library."""
    import triton

    debug, library = parse_declarations(text).debug, os.path.dirname(triton.__file__) + os.sep
    files: dict[str, Mapping[tuple[int, int], Span]] = {}

    def span_of(position: Position) -> Span | None:
        file = debug.file(position.scope)
        if not file or not position.line or file.startswith(library):
            return None
        if file not in files:
            files[file] = _expressions(file, "".join(source_text.lines(file)))
        line, column = position.line, position.column
        return files[file].get((line, column)) or Span(file, line, column, line, column + 1)

    return span_of


@lru_cache(maxsize=16)
def _expressions(file: str, text: str) -> Mapping[tuple[int, int], Span]:
    """Return the spans in the text of a file by line and column of their begin, from 1: of the call there, else of the longest
    expression."""
    try:
        tree = source_text.parsed(text)
    except (SyntaxError, ValueError):
        return {}
    spans: dict[tuple[int, int], tuple[bool, Span]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr):
            continue
        key, is_call = (node.lineno, node.col_offset + 1), isinstance(node, ast.Call)
        is_known_call, _ = spans.get(key, (False, None))
        if key not in spans or (
            isinstance(node, ast.Call) and (not is_known_call or isinstance(node.func, ast.Attribute))
        ):
            own = Span(file, node.lineno, key[1], node.end_lineno or node.lineno, (node.end_col_offset or 0) + 1)
            spans[key] = is_call, own
    return {key: span for key, (_, span) in spans.items()}
