"""Kernels under the dispatcher of `numba_cuda_mlir`: compilation with entries in the cache on disk, and launches."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from numba_cuda_mlir import _cext, compiler, descriptor, mlir_compiler, mlir_lowering, tools
from numba_cuda_mlir import mlir_optimization as optimization
from numba_cuda_mlir.caching import CachedCompileResult
from numba_cuda_mlir.numba_cuda import types as numba_types
from numba_cuda_mlir.numba_cuda import typing
from numba_cuda_mlir.numba_cuda.core import sigutils

from ...driver.core import require_threads
from ...driver.functions import Driver
from ...driver.memory import Pointer
from ...errors import LaunchError
from ..kernel import KernelFacts, NumbaKernel, require_no_link
from ..keys import UnnamedFunctions, kernel_key
from ..launching import Launcher
from ..marks import active_marks
from ..packages import NUMBA_CUDA_MLIR
from ..stored_kernels import CompiledKernel, new_kernel, stored_kernel
from .compiling import ERROR_CODE, translated
from .parameters import ValueReader, flat_types

if TYPE_CHECKING:
    from ...ir import nodes as ir

UNNAMED_FUNCTIONS = UnnamedFunctions(NUMBA_CUDA_MLIR)
EXCEPTIONS: dict[int, tuple[type[Exception], str]] = {
    1: (AssertionError, "Kernel assertion failed"),
    2: (IndexError, "Index out of bounds in kernel"),
    3: (ValueError, "Invalid value in kernel"),
    4: (RuntimeError, "Runtime error in kernel"),
    5: (ZeroDivisionError, "Division by zero in kernel"),
}
"""Exceptions of kernels with debug=True by their code, with the texts of the package."""
_FUNCTION, _UNMARKED = "simtbed_function", "simtbed_unmarked"
"""Keys in the metadata of a compile result: the Python function, and a function that compiles it without marks."""


def _no_own_code(facts: KernelFacts) -> None:
    """The package's code for a GPU needs NVIDIA's compiler and its own launcher."""


class EmulatedKernel:
    """A kernel for its argument types, in the place of its machine code."""

    driver: ClassVar[Driver]

    def __init__(
        self, compiled: CompiledKernel, kernel: NumbaKernel, types: Sequence[Any], options: dict[str, Any]
    ) -> None:
        self.compiled, self.kernel, self.debug = compiled, kernel, bool(options.get("debug"))
        self.types = [flat for type in types for _, flat in flat_types("", type)]
        bounds = options.get("launch_bounds")
        most = bounds[0] if isinstance(bounds, tuple) else bounds
        self._most_threads = most or self.driver.device.threads_per_block

    @cached_property
    def launcher(self) -> Launcher:
        return Launcher(self.kernel, self.driver.device, self.driver.available, self.driver.memory.written)

    @cached_property
    def _error_code(self) -> Pointer:
        """The memory of the error code."""
        address = self.driver.memory.allocate(ERROR_CODE.size)
        ctypes.memset(address, 0, ERROR_CODE.size)
        return Pointer(address, address, ERROR_CODE.size)

    def launch(self, arguments: Sequence[Any], grid: Any, block: Any, shared: int, cluster: Any = (1, 1, 1)) -> None:
        """Launch the kernel. arguments: without tuples. Raises LaunchError, FaultError, and exceptions of the kernel."""
        require_threads(self.kernel.__name__, block, self._most_threads)
        if len(arguments) != len(self.types):
            raise LaunchError(f"{self.kernel.__name__} has {len(self.types)} arguments, not {len(arguments)}")
        reader = ValueReader(self.driver.available)
        for type, value in zip(self.types, arguments, strict=True):
            reader.read(type, value)
        has_code = ERROR_CODE in self.compiled.facts.parameters
        values = [*reader.values, *([self._error_code] if has_code else ()), *reader.items]
        self.launcher.launch(values, grid, block, shared, cluster=cluster)
        for copy in reader.copies:
            copy()
        if has_code:
            self._raise_recorded()

    def _raise_recorded(self) -> None:
        """Raise the exception that a kernel with debug=True has recorded."""
        stored = ctypes.c_int32.from_address(self._error_code.address)
        code, stored.value = stored.value, 0
        if code and self.debug:
            exception, text = EXCEPTIONS.get(code, (RuntimeError, f"Kernel error (code {code})"))
            raise exception(text)

    # -------------------------------------------------------------- the interface of a library of machine code
    def get_cufunc(self) -> Any:
        return self.launcher.function(NUMBA_CUDA_MLIR, self.compiled.entry)

    def get_kernel_attributes(self) -> dict[str, int]:
        counts = self.get_cufunc().attrs
        return {
            "regs_per_thread": counts.regs,
            "shared_mem_per_block": counts.shared,
            "const_mem_size": counts.const,
            "local_mem_per_thread": counts.local,
            "max_threads_per_block": counts.maxthreads,
        }


class KernelDispatcher:
    """The kernels of a dispatcher by the types of their arguments, and by the values of arguments that the compiler reads."""

    def __init__(
        self,
        compile: Callable[[Sequence[Any]], tuple[Any, ...]],
        constant_arg_flags: Sequence[bool],
        ensure_context: Callable[[], Any],
        debug: bool = False,
        literal_arg_flags: Sequence[bool] = (),
    ) -> None:
        self._compile, self._kernels = compile, dict[Any, EmulatedKernel]()
        flags = zip(constant_arg_flags, literal_arg_flags or constant_arg_flags, strict=True)
        self._literals = [number for number, pair in enumerate(flags) if any(pair)]

    def kernel(self, arguments: Sequence[Any]) -> EmulatedKernel:
        """Return the kernel of a launch, whose types the package has in `_compile_arg_types`."""
        key = (*descriptor._compile_arg_types.types, *(arguments[number] for number in self._literals))
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = self._kernels[key] = self._compile(arguments)[0]
        return kernel


class LaunchConfiguration:
    """A kernel with its grid, its block and the blocks of a cluster."""

    def __init__(
        self,
        dispatcher: KernelDispatcher,
        grid: Any,
        block: Any,
        stream: Any = None,
        sharedmem: int | None = None,
        cluster: Any = None,
    ) -> None:
        if sharedmem is not None and sharedmem < 0:
            raise ValueError(f"sharedmem must be non-negative, got {sharedmem}")
        self.dispatcher, self.grid, self.block, self.shared = dispatcher, tuple(grid), tuple(block), sharedmem or 0
        self.cluster = (1, 1, 1) if cluster is None else cluster

    def __call__(self, *arguments: Any) -> None:
        self.dispatcher.kernel(arguments).launch(arguments, self.grid, self.block, self.shared, self.cluster)


class KernelCache:
    """The cache on disk of a dispatcher, for the package's interface."""

    cache_path = None

    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher = dispatcher

    def _key(self, argument_types: Sequence[Any]) -> str | None:
        own = self.dispatcher
        calls_python = own.targetoptions.get("experimental_ast_transforms")  # during the compilation
        if UNNAMED_FUNCTIONS.exist or calls_python:
            return None
        options = own.targetoptions | {"extensions": own.extensions}
        return kernel_key(NUMBA_CUDA_MLIR, own.py_func, argument_types, options)

    def load_overload(self, signature: Any, target: Any) -> CachedCompileResult | None:
        argument_types, _ = sigutils.normalize_signature(signature)
        stored = stored_kernel(self._key(argument_types), lambda: self._program(argument_types), _no_own_code)
        if stored is None:
            return None
        options = self.dispatcher.targetoptions
        kernel = EmulatedKernel(*stored, argument_types, options)

        def unmarked() -> Any:
            return self._compiled(argument_types).metadata[_UNMARKED]()

        metadata = {"cubin": kernel, "func_name": kernel.compiled.entry, "targetoptions": options, _UNMARKED: unmarked}
        return CachedCompileResult(typing.signature(numba_types.none, *argument_types), metadata)

    def save_overload(self, signature: Any, result: Any) -> None:
        argument_types, _ = sigutils.normalize_signature(signature)
        kernel = result.metadata.get("cubin")
        if isinstance(kernel, EmulatedKernel) and tuple(result.signature.args) == tuple(argument_types):
            kernel.kernel = new_kernel(kernel.compiled, kernel.kernel.program, self._key(argument_types), _no_own_code)

    def flush(self) -> None:
        """Keep all entries: the key of a changed function is another one."""

    def _program(self, argument_types: Sequence[Any]) -> ir.Program:
        """Return the program of a kernel, if it was removed from the cache."""
        result = self._compiled(argument_types)
        optimization.optimize(result)
        kernel: EmulatedKernel = result.metadata["cubin"]
        return kernel.kernel.program

    def _compiled(self, argument_types: Sequence[Any]) -> Any:
        own = self.dispatcher
        options = dict(own.targetoptions)
        return mlir_compiler.compile_mlir(own.py_func, numba_types.none, tuple(argument_types), options)


def replace_dispatcher(driver: Driver) -> None:
    """Replace compilation to machine code, launches and the cache of the package."""
    EmulatedKernel.driver = driver
    _cext.KernelDispatcher, descriptor.LaunchConfiguration = KernelDispatcher, LaunchConfiguration
    compiler.CodeLibrary = lambda kernel, name: kernel
    tools.get_cuda_runtime_version = lambda: (13, 0)
    compile_mlir, initialise = mlir_compiler.compile_mlir, descriptor.MLIRDispatcher.__init__
    text_of, initialise_target = mlir_lowering.get_mlir_module_str, descriptor.mlir_target.ensure_initialized

    def marked(pyfunc: Any, return_type: Any, args: Any, targetoptions: dict[str, Any]) -> Any:
        require_no_link(pyfunc, targetoptions)
        initialise_target()
        with active_marks(NUMBA_CUDA_MLIR, bool(targetoptions.get("debug"))), UNNAMED_FUNCTIONS.recorded(pyfunc):
            # Debugging information of variables stores pointers.
            result = compile_mlir(pyfunc, return_type, args, {**targetoptions, "lineinfo": True, "debug": False})
        result.metadata[_FUNCTION] = pyfunc
        result.metadata["targetoptions"] = targetoptions
        result.metadata[_UNMARKED] = partial(compile_mlir, pyfunc, return_type, args, dict(targetoptions))
        return result

    def emulated(result: Any) -> None:
        options, function = result.metadata["targetoptions"], result.metadata[_FUNCTION]
        if options.get("_compile_output") is not None:
            raise LaunchError(
                f"{function.__name__}: PTX and LTO-IR need NVIDIA's compiler, which the emulator does not have"
            )
        if not options.get("device"):
            present = [type for type in result.fndesc.argtypes if not mlir_lowering._is_omitted_arg(type)]
            entry = tools.generate_mangled_name(result.fndesc.qualname, present)
            compiled, program = translated(result, function, entry)
            kernel = new_kernel(compiled, program, None, _no_own_code)
            result.metadata["cubin"] = EmulatedKernel(compiled, kernel, result.signature.args, options)
            result.metadata["func_name"] = entry

    def unmarked_text(metadata: dict[str, Any]) -> Any:
        if "mlir_module_str" not in metadata:
            metadata["mlir_module_str"] = text_of(metadata[_UNMARKED]().metadata)
        return metadata["mlir_module_str"]

    def initialised(self: Any, *args: Any, **options: Any) -> None:
        initialise(self, *args, **options)
        self._cache = KernelCache(self)

    mlir_compiler.compile_mlir, optimization.optimize = marked, emulated
    mlir_lowering.get_mlir_module_str = unmarked_text
    descriptor.mlir_target.ensure_initialized = lambda: None  # a kernel on disk needs no functions of the compiler
    descriptor.MLIRDispatcher.__init__ = initialised
    descriptor.MLIRDispatcher.enable_caching = lambda self: None  # kernels have entries in the cache of simtbed
    for name in ("inspect_asm", "inspect_llvm", "inspect_lto_ptx", "inspect_ptx", "inspect_sass"):
        setattr(descriptor.MLIRDispatcher, name, _refused(name))


def _refused(name: str) -> Callable[..., Any]:
    def inspect(self: Any, *signature: Any) -> Any:
        raise LaunchError(f"{self.py_func.__name__}: {name} needs NVIDIA's compiler, which the emulator does not have")

    return inspect
