"""The functions of the CUDA runtime over host memory. An address of the device is the host's address of the same byte.

A function takes the arguments of its declaration, pointers as numbers, and returns an error code. Work is complete when it returns.
"""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from ...errors import REFUSED, LaunchError, SimtbedError, UnavailableError
from .declarations import RuntimeFunction, runtime_functions
from .graphs import Graphs
from .queues import SUCCESS, flush_host_output

_QUERIES = ("cudaGetLastError", "cudaPeekAtLastError")
_USING = ("cudaMemcpy", "cudaMemset", "cudaGraphLaunch", "simtbedLaunch", "simtbedAccess")
"""Functions that use memory: after a sticky error they do nothing."""


class Runtime(Graphs):
    """The runtime of one program. units: its kernels by source. report: prints a line on stderr."""

    def implementations(self) -> dict[str, Callable[..., int]]:
        """Return a function for each entry of the table: arguments, then file and line of the call."""
        functions = {function.name: function for function in runtime_functions()}
        return {name: self._guarded(name, functions) for name in functions}

    def _guarded(self, name: str, functions: Mapping[str, RuntimeFunction]) -> Callable[..., int]:
        """Return a function that keeps its error code for `cudaGetLastError`, and ends the program after an exception."""
        function = getattr(self, name)
        names = [own for _, own in functions[name].parameters]
        stream = names.index("stream") if "stream" in names else None

        def call(*arguments: Any) -> int:
            *own, file, line = arguments
            self.thread.place = file, line, name
            try:
                code: int | None = None
                if stream is not None and self.captures:
                    code = self.recorded(name, own[stream] or 0, function, tuple(own))
                if self.sticky and name.startswith(_USING):
                    code = self.sticky
                code = int((function(*own) if code is None else code) or SUCCESS) or self.sticky
            except BaseException as error:  # it has no caller in Python
                self.end(error)
            if code and name not in _QUERIES:
                self.thread.last = code
            return code

        return call

    def end(self, error: BaseException) -> NoReturn:
        """End the program: a kernel or a function is not supported, or the user left the debugger."""
        flush_host_output()
        if isinstance(error, SystemExit):
            _flush()
            os._exit(error.code if isinstance(error.code, int) else 1)
        file, line, _ = self.place
        text = str(error) if isinstance(error, SimtbedError) else repr(error)
        is_placed = isinstance(error, UnavailableError) or not isinstance(error, LaunchError)
        self.report(f"simtbed: {text}" if is_placed else f"simtbed: {file}:{line}: {text}")
        _flush()
        os._exit(3)

    def cudaGetLastError(self) -> int:
        code = self.cudaPeekAtLastError()
        self.thread.last = SUCCESS
        return code

    def cudaPeekAtLastError(self) -> int:
        if self.unread is not None:
            place, _, refusal = self.unread
            if refusal:
                self.findings.add(REFUSED, place, refusal)
        self.unread = None
        return int(getattr(self.thread, "last", SUCCESS))

    def simtbedEnd(self, status: int) -> None:
        """Write what Python has in its buffers: the process ends without the interpreter's exit."""
        if self.unread is not None:
            place, code, refusal = self.unread
            text = f"error {code} of this launch is not read: call cudaGetLastError()"
            text = f"{text}. {refusal}" if refusal else text
            self.findings.add("unread error", place, text)
        self.findings.finish()
        _flush()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
