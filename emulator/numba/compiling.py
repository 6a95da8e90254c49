"""Compilation of a kernel for its argument types: Python to Numba's LLVM IR, then LLVM's passes over it."""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from numba.cuda import types
from numba.cuda.compiler import compile_cuda
from numba.cuda.core import config
from numba.cuda.core.errors import NumbaWarning

from ..llvmir.optimising import optimised
from .marks import EXCEPTIONS, FIRST_CODE, RaisedException, active_marks
from .packages import NUMBA_CUDA

_CODE = re.compile(rf"\bi32 (\d{{{len(str(FIRST_CODE))}}})\b")
"""A number in the IR that may be the code of an exception."""


@dataclass(frozen=True)
class CompiledFunction:
    """A kernel as LLVM IR. entry: the name of its function. result: Numba's compile result. raised: the exceptions of the kernel
    and its device functions, by the codes that they return."""

    text: str
    entry: str
    result: Any
    raised: dict[int, RaisedException]


@contextmanager
def recording(debug: bool) -> Iterator[None]:
    """Preserve positions, accesses and names in the compilations of this thread. debug: whether the user requested positions."""
    from .hooks import install_hooks  # late: it imports Numba's lowering

    install_hooks()
    with active_marks(NUMBA_CUDA, debug), _no_dumps():
        yield


def requested_dumps() -> dict[str, Any]:
    """Return Numba's settings that print intermediate results of a compilation, with their values."""
    return {name: value for name in dir(config) if name.startswith("DUMP_") and (value := getattr(config, name))}


@contextmanager
def _no_dumps() -> Iterator[None]:
    """Print nothing of a compilation with changes of the emulator: Numba's own compilation prints."""
    dumps = requested_dumps()
    for name in dumps:
        setattr(config, name, 0)
    try:
        yield
    finally:
        for name, value in dumps.items():
            setattr(config, name, value)


@contextmanager
def observed_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Collect Numba's warnings, and show all warnings at the end."""
    numbas: list[warnings.WarningMessage] = []
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            yield numbas
    finally:
        numbas += [own for own in caught if issubclass(own.category, NumbaWarning)]
        for own in caught:
            warnings.warn_explicit(own.message, own.category, own.filename, own.lineno)


def compile_function(function: Callable[..., Any], argument_types: Sequence[Any], **options: Any) -> CompiledFunction:
    """Compile a kernel for the emulator. options: of `compile_cuda`. Raises Numba's errors."""
    with recording(bool(options.get("debug"))):
        result = compile_cuda(function, types.void, tuple(argument_types), lineinfo=True, **options)
    entry = result.fndesc.llvm_func_name
    texts = result.library.llvm_strs
    codes = {int(number) for text in texts for number in _CODE.findall(text)}
    raised = {code: EXCEPTIONS[code] for code in sorted(codes & EXCEPTIONS.keys())}
    return CompiledFunction(optimised(texts, entry), entry, result, raised)
