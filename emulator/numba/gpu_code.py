"""A kernel's own code on a GPU: PTX by Numba and NVIDIA's NVVM, and the bytes of its parameters.

Products and sums are not contracted, as on the emulators: the results have the same bits, except functions such as `exp`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cuda.pathfinder import load_nvidia_dynamic_lib
from numba.cuda import types
from numba.cuda.compiler import compile_cuda, kernel_fixup
from numba.cuda.cudadrv import nvvm

from ..errors import LaunchError, UnavailableError
from ..own_code import Ptx, PtxText
from .kernel import KernelFacts, own_argument
from .plain import plain_compilation

SYMBOL = "numba_kernel"
"""The symbol of every kernel in its PTX. Numba's contains the number of compilations of the process."""
LIBDEVICE = "nvvm/libdevice/libdevice.10.bc"
"""CUDA's mathematical functions in the folder of a toolkit."""
_OF_THE_DRIVER = {"vprintf", "malloc", "free", "__assertfail"}
"""External functions of PTX that the driver has."""
_EXTERNAL = re.compile(r"\.extern\s+\.func\s+(?:\([^)]*\)\s*)?(\w+)")


def own_code(
    function: Callable[..., Any], argument_types: Sequence[Any], options: dict[str, Any], facts: KernelFacts
) -> PtxText:
    """Return the code of a kernel. options: of `compile_cuda`."""
    arguments = tuple(
        own_argument(index, facts) for index in range(1, len(facts.parameters))
    )  # the first is the result
    captured = any(view.parameter is None for view in facts.arrays.values())
    return PtxText(
        kernel=SYMBOL, arguments=arguments, text=KernelPtx(function, tuple(argument_types), options, captured)
    )


@dataclass(frozen=True)
class KernelPtx:
    """The function of `PtxText`. captured: whether the kernel contains addresses of the emulator."""

    function: Callable[..., Any]
    argument_types: tuple[Any, ...]
    options: dict[str, Any]
    captured: bool

    def __call__(self, arch: str) -> Ptx:
        """Compile for an architecture such as "sm_90". Raises UnavailableError without NVVM, LaunchError for a kernel to be linked."""
        name = self.function.__name__
        if self.captured:
            raise LaunchError(
                f"{name}: the kernel contains the address of an array of the emulator: give it as an argument"
            )
        number = arch.removeprefix("sm_")
        options = {**self.options, "cc": (int(number[:-1]), int(number[-1])), "debug": False}
        with plain_compilation():
            result = compile_cuda(self.function, types.void, self.argument_types, **options)
        library = result.library
        entry = library.get_function(result.fndesc.llvm_func_name)
        kernel_fixup(entry, False)
        ptx = _compiled(library.llvm_strs, f"compute_{number}", bool(options["fastmath"]))
        if missing := [symbol for symbol in _EXTERNAL.findall(ptx.text) if symbol not in _OF_THE_DRIVER]:
            raise LaunchError(
                f"{name}: {missing[0]} needs NVIDIA's linker: run the program on a GPU without SIMTBED_NUMBA"
            )
        return replace(ptx, text=ptx.text.replace(entry.name, SYMBOL))

    def __reduce__(self) -> tuple[Any, ...]:
        return _NoCompiler, (self.function.__name__,)


@dataclass(frozen=True)
class _NoCompiler:
    """The function of `PtxText` in another process."""

    kernel: str

    def __call__(self, arch: str) -> Ptx:
        raise LaunchError(f"{self.kernel}: another process cannot compile this kernel of Numba")


def _compiled(texts: Sequence[str], arch: str, fast: bool) -> Ptx:
    """Return the PTX of modules of LLVM IR with CUDA's mathematical functions. Raises UnavailableError."""
    options: dict[str, Any] = {"arch": arch, "opt": 3, "fma": False}
    if fast:
        options |= {"ftz": True, "prec_div": False, "prec_sqrt": False}
    try:
        unit = nvvm.CompilationUnit(options)
        library = load_nvidia_dynamic_lib("nvvm").abs_path
        toolkit = next(folder for folder in Path(library).parents if (folder / LIBDEVICE).exists())
    except (nvvm.NvvmSupportError, RuntimeError, StopIteration) as error:
        raise UnavailableError(f"NVIDIA's NVVM is not found: pip install 'simtbed[nvcc]' ({error})") from None
    for text in texts:
        unit.add_module(nvvm.llvm_replace(text).encode())
    unit.verify()
    unit.lazy_add_module((toolkit / LIBDEVICE).read_bytes())
    return Ptx(bytes(unit.compile()).decode().rstrip("\0"), toolkit)
