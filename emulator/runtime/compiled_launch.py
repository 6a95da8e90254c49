"""Compiled launches: a kernel with its grid and options, validated and compiled before a loop of launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import LaunchError
from ..tracebacks import without_own_frames
from .launching import compile_launch, launch
from .registry import EngineName
from .result import Result
from .specialisation import AnyKernel
from .streams import Stream


class CompiledLaunch:
    """A callable that launches a kernel, the result of `compile`.

    Positional arguments have the order of the kernel's parameters; they and those by name replace the ones of `compile`.
    stream: as for `launch`. Returns the result. Arguments of other types or shapes are validated and compiled at their first
    launch. Raises the errors of `launch`.
    """

    def __init__(
        self, kernel: AnyKernel, args: Mapping[str, Any], engine: EngineName, options: Mapping[str, Any]
    ) -> None:
        self.kernel, self.engine = kernel, engine
        self._args, self._options, self._names = args, dict(options), tuple(args)

    def __repr__(self) -> str:
        return f"<CompiledLaunch of {self.kernel.__name__} on engine {self.engine}>"

    @without_own_frames
    def __call__(self, *values: Any, stream: Stream | None = None, **named: Any) -> Result:
        args = self._args
        if values or named:
            if len(values) > len(self._names):
                raise LaunchError(f"{self.kernel.__name__} takes {', '.join(self._names)}: {len(values)} are given")
            args = {**args, **dict(zip(self._names, values, strict=False)), **named}
        return launch(self.kernel, args=args, engine=self.engine, stream=stream, **self._options)


@without_own_frames
def compile(
    kernel: AnyKernel, *, args: Mapping[str, Any] | Sequence[Any], engine: EngineName = "jit", **options: Any
) -> CompiledLaunch:
    """Return a callable that launches a kernel on a grid, for loops. It validates and compiles now, and launches nothing.

    Parameters
    ----------
    args, engine, options : as for `launch`; grid and block are required. `args` are the arguments of calls without others.

        step = st.compile(relax, grid=64, block=256, args=(old, new, n), engine="cuda")
        for _ in range(1000):
            step(old, new)
            old, new = new, old

    Raises the errors of `launch`.
    """
    named = compile_launch(kernel, args=args, engine=engine, stream=None, **options)
    return CompiledLaunch(kernel, named, engine, options)
