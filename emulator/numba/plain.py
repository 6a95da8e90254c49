"""Compilations of a kernel as Numba does without the emulator: for its LLVM IR, PTX and dumps.

A device function has an overload for the emulator and another for these compilations.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.cuda.descriptor import cuda_target
from numba.cuda.dispatcher import CUDADispatcher


class _Mode(threading.local):
    """Whether this thread compiles without the emulator."""

    plain = False


MODE = _Mode()
_INTERNAL_FUNCTIONS: dict[Any, Any] = {}
"""Functions that Numba's lowering has compiled in plain compilations, as `cached_internal_func` of its context."""


@contextmanager
def plain_compilation() -> Iterator[None]:
    """Compile without the changes of the emulator, device functions included."""
    context = cuda_target.target_context
    before, context.cached_internal_func = context.cached_internal_func, _INTERNAL_FUNCTIONS
    MODE.plain = True
    try:
        yield
    finally:
        MODE.plain = False
        context.cached_internal_func = before


def separate_overloads() -> None:
    """Have each dispatcher keep its overloads of plain compilations in a table of their own."""

    def overloads(self: Any) -> Any:
        return self.__dict__.setdefault("plain_overloads" if MODE.plain else "overloads", OrderedDict())

    def set_overloads(self: Any, value: Any) -> None:
        self.__dict__["overloads"] = value

    CUDADispatcher.overloads = property(overloads, set_overloads)
    call_template = CUDADispatcher.get_call_template

    def get_call_template(self: Any, args: Any, kws: Any) -> Any:
        if MODE.plain and not self._can_compile:  # its signatures are given
            for types, result in self.__dict__["overloads"].items():
                self.compile_device(types, result.signature.return_type)
        return call_template(self, args, kws)

    CUDADispatcher.get_call_template = get_call_template
