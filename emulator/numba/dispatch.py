"""The kernel class under Numba's dispatcher: it compiles for the emulator and launches there."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar

from numba.cuda import compiler, dispatcher, types, typing
from numba.cuda.core.compiler_lock import global_compiler_lock
from numba.cuda.cudadrv import nvvm

from ..driver.core import require_threads
from ..driver.function_attributes import FunctionAttributes
from ..driver.functions import Driver
from ..runtime.result import FaultError
from ..tracebacks import without_own_frames
from .arguments import ValueReader
from .compiling import recording, requested_dumps
from .kernel import require_no_link
from .launching import Launcher
from .packages import NUMBA_CUDA
from .plain import MODE, plain_compilation, separate_overloads
from .translating import UNNAMED_FUNCTIONS, compiled_kernel

_INDICES = re.compile(r"\((\d+), (\d+), (\d+)\)")
"""The indices of a block and of a thread in a finding."""
_COMPILER_OPTIONS = ("debug", "fastmath", "forceinline")
_RESULTS = ("target_context", "fndesc", "environment", "call_helper", "library", "type_annotation")
"""Attributes of a kernel that are those of Numba's compile result."""


class _KernelLibrary:
    """Numba's library of a kernel. Attributes other than the function on the device compile it."""

    def __init__(self, kernel: EmulatedKernel) -> None:
        self._kernel = kernel

    def get_cufunc(self) -> Any:
        return self._kernel.launcher.function(NUMBA_CUDA, self._kernel.entry_name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel._result.library, name)


class EmulatedKernel(dispatcher._Kernel):  # type: ignore[misc]
    """A kernel for its argument types, under Numba's dispatcher."""

    driver: ClassVar[Driver]

    @global_compiler_lock  # type: ignore[untyped-decorator]
    def __init__(
        self, py_func: Callable[..., Any], argtypes: Sequence[Any], device: bool = False, **options: Any
    ) -> None:
        if device:
            raise RuntimeError("Cannot compile a device function as a kernel")
        require_no_link(py_func, options)
        self.objectmode, self.entry_point = False, None
        self.py_func, self.argtypes = py_func, tuple(argtypes)
        self.debug, self.lineinfo = bool(options.get("debug")), bool(options.get("lineinfo"))
        self.extensions = options.get("extensions") or []
        self.launch_bounds, self.shared_memory_carveout = options.get("launch_bounds"), None
        bounds = self.launch_bounds if isinstance(self.launch_bounds, tuple) else (self.launch_bounds,)
        if len(bounds) > 3:
            raise ValueError(f"Got {len(bounds)} launch bounds: {bounds}. A maximum of 3 are supported")
        self._most_threads = bounds[0] or self.driver.device.threads_per_block
        self._referenced_environments: list[Any] = []
        self.lifted: list[Any] = []
        self.signature = typing.signature(types.void, *self.argtypes)
        self._options = {name: options.get(name) or False for name in _COMPILER_OPTIONS}
        self._link_options = {name: options[name] for name in ("max_registers", "lto") if name in options}
        self._optimise = bool(options.get("opt", True))
        self._options["cc"] = tuple(self.driver.device.compute_capability)
        self.compiled, self.kernel = compiled_kernel(py_func, self.argtypes, self._options)
        self.entry_name, self.cooperative = self.compiled.entry, self.compiled.facts.cooperative
        self.launch_config_sensitive = self.compiled.sensitive
        if "DUMP_ASSEMBLY" in (dumps := requested_dumps()):
            self.library.get_asm_str()
        elif dumps:
            assert self._result  # compiles and prints

    @cached_property
    def launcher(self) -> Launcher:
        return Launcher(self.kernel, self.driver.device, self.driver.available, self.driver.memory.written)

    @cached_property
    def _attributes(self) -> FunctionAttributes:
        return FunctionAttributes(self.kernel.declared_bytes("shared"))

    def bind(self) -> None:
        """Do nothing: no module is loaded."""

    def launch(self, args: Any, griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int = 0) -> None:
        require_threads(self.py_func.__name__, blockdim, self._most_threads)
        if sharedmem:
            name, advice = self.py_func.__name__, "Numba-CUDA cannot request them"
            self._attributes.require_shared(self.driver.device, name, int(sharedmem), advice)
        reader = ValueReader(self.extensions, stream, self.driver.available)
        for type, value in zip(self.argtypes, args, strict=False):
            reader.read(type, value)
        try:
            self.launcher.launch(reader.values, tuple(griddim), tuple(blockdim), int(sharedmem))
        except FaultError as error:
            self._raise_as_python(error)
            raise
        for copy in reader.copies:
            copy()

    def _raise_as_python(self, error: FaultError) -> None:
        """Raise the exception that a kernel with debug=True has raised, with Numba's text."""
        for fault in error.details.faults:
            exception = self.compiled.raised.get((fault.message.removeprefix("assertion failed: "), fault.span))
            if fault.kind != "assertion" or exception is None:
                continue
            place = ""
            if exception.place is not None:
                function, file, line = exception.place
                place = f"In function {function!r}, file {os.path.abspath(file)}, line {line}, "
            block, thread = ([int(n) for n in reversed(indices)] for indices in _INDICES.findall(fault.notes[0]))
            text = f"{place}tid={thread} ctaid={block}"
            first = [f"{text}: {exception.arguments[0]}"] if exception.arguments else [text]
            raise exception.type(*first, *exception.arguments[1:]) from None

    # -------------------------------------------------------------- inspection
    @cached_property
    def _result(self) -> Any:
        """Numba's own compile result, with the attributes and metadata of a kernel."""
        nvvm_options = {"fastmath": self._options["fastmath"], "opt": 3 if self._optimise else 0}
        with plain_compilation():
            result = compiler.compile_cuda(
                self.py_func,
                types.void,
                self.argtypes,
                lineinfo=self.lineinfo,
                nvvm_options=nvvm_options | ({"g": None} if self.debug else {}),
                **self._options,
                **self._link_options,
            )
        library = result.library
        function = library.get_function(result.fndesc.llvm_func_name)
        library._entry_name = function.name
        dispatcher.kernel_fixup(function, self.debug)
        nvvm.set_launch_bounds(function, self.launch_bounds)
        return result

    def __getattr__(self, name: str) -> Any:
        own = name.removeprefix("_").replace("codelibrary", "library")
        if own not in _RESULTS:
            raise AttributeError(f"a kernel of the emulator has no {name}", name=name, obj=self)
        return _KernelLibrary(self) if own == "library" else getattr(self._result, own)


def replace_kernels(driver: Driver) -> None:
    """Replace the kernel class of the dispatcher and its cache, and mark the device functions that it compiles."""
    EmulatedKernel.driver = driver
    dispatcher._Kernel = EmulatedKernel
    dispatcher.CUDADispatcher.enable_caching = lambda self: None  # kernels have entries in the cache of simtbed
    configured = dispatcher._LaunchConfiguration
    configured.__call__ = without_own_frames(configured.__call__)
    compile_cuda = dispatcher.compile_cuda

    def marked(function: Any, *args: Any, **options: Any) -> Any:
        if MODE.plain:
            return compile_cuda(function, *args, **options)
        with recording(bool(options.get("debug"))), UNNAMED_FUNCTIONS.recorded(function):
            return compile_cuda(function, *args, **{**options, "lineinfo": True})

    dispatcher.compile_cuda = marked
    separate_overloads()
