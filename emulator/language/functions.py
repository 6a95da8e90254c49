"""Kernels and device functions: read by the front end, never run by Python."""

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from .. import source_text
from ..checked import shown
from ..errors import HostCallError, LaunchError
from .from_text import function_of

F = TypeVar("F", bound=Callable[..., Any])


class SourceFunction:
    """A Python function stored for its source. versions: of its file, newest first; none without a text."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if not isinstance(function, FunctionType):
            raise LaunchError(f"@st.kernel and @st.device mark a function defined with def, not {shown(function)}")
        self.function = function
        self.versions = source_text.capture(function.__code__, function.__globals__)
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__wrapped__ = function

    @property
    def defaults(self) -> dict[str, Any]:
        """Default values of parameters, by name."""
        function: Any = self.function
        positional = function.__code__.co_varnames[: function.__code__.co_argcount]
        values = function.__defaults__ or ()
        if not values and not function.__kwdefaults__:
            return {}
        return {
            **dict(zip(positional[len(positional) - len(values) :], values, strict=True)),
            **(function.__kwdefaults__ or {}),
        }

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise HostCallError(
            f"{self.__name__} runs on an engine: use simtbed.launch({self.__name__}, grid=..., block=..., args=...)"
        )

    def __reduce__(self) -> str:
        """Pickle by name, like a function."""
        return self.__qualname__

    def __getitem__(self, configuration: Any) -> NoReturn:
        raise HostCallError(
            f"{self.__name__}[grid, block](...) is Numba's: write simtbed.launch({self.__name__}, grid=..., block=..., "
            "args=dict(...))"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.__module__}.{self.__name__}>"


class Kernel(SourceFunction):
    """An entry point for `launch`, the result of `@kernel`."""


class DeviceFunction(SourceFunction):
    """A function callable from kernels and device functions, the result of `@device`."""


@overload
def kernel(function: Callable[..., None]) -> Kernel: ...
@overload
def kernel(*, source: str) -> Kernel: ...
@overload
def kernel() -> Callable[[Callable[..., None]], Kernel]: ...
def kernel(
    function: Callable[..., None] | None = None, *, source: str | None = None
) -> Kernel | Callable[[Callable[..., None]], Kernel]:
    """Mark a function as a kernel: annotated parameters, no result. `@st.kernel()` is equivalent.

    Parameters
    ----------
    source : the text of the function instead, for the Python prompt and for generated code. Its names are resolved
    at this call. The last function of the text is the kernel.
    """
    if source is not None:
        return Kernel(_plain(function_of(source, "kernel")))
    return Kernel if function is None else Kernel(function)


if TYPE_CHECKING:

    @overload
    def device(function: F) -> F: ...
    @overload
    def device(*, source: str) -> Callable[..., Any]: ...
    @overload
    def device() -> Callable[[F], F]: ...
    def device(function: Any = None, *, source: str | None = None) -> Any:
        """Mark a function as callable from kernels, with annotated parameters and result. source: as for `kernel`."""

else:

    def device(function=None, *, source=None):
        """Mark a function as callable from kernels, with annotated parameters and result. source: as for `kernel`."""
        if source is not None:
            function = _plain(function_of(source, "device"))
        return DeviceFunction if function is None else DeviceFunction(function)


def _plain(function: Any) -> Any:
    """Return the function without its mark; the text may contain the decorator."""
    return function.function if isinstance(function, SourceFunction) else function


__all__ = ["DeviceFunction", "Kernel", "SourceFunction", "device", "kernel"]
