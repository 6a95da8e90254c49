"""Kernels and device functions: the front end reads their source, and Python never runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ..errors import HostCallError

F = TypeVar("F", bound=Callable[..., Any])


class SourceFunction:
    """A Python function kept as source."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__wrapped__ = function

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise HostCallError(
            f"{self.__name__} runs on an engine: use simtbed.launch({self.__name__}, grid=..., block=..., args=...)"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.__module__}.{self.__name__}>"


class Kernel(SourceFunction):
    """The result of `@kernel`: an entry point for `launch`."""


class DeviceFunction(SourceFunction):
    """The result of `@device`: a function that kernels and device functions may call."""


def kernel(function: Callable[..., None]) -> Kernel:
    """Mark a function as a kernel. Its parameters are annotated; it returns nothing."""
    return Kernel(function)


if TYPE_CHECKING:

    def device(function: F) -> F:
        """Mark a function as callable from kernels. Parameters and result are annotated."""

else:

    def device(function):
        """Mark a function as callable from kernels. Parameters and result are annotated."""
        return DeviceFunction(function)


__all__ = ["DeviceFunction", "Kernel", "SourceFunction", "device", "kernel"]
