"""PyCUDA's modules that generate kernels: elementwise, reduction, scan, curandom."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..cuda_cpp.kernel import CudaSource
from ..cuda_cpp.places import SourceText
from ..errors import LaunchError
from .gpuarray import GPUArray, to_gpu
from .memory import Variables, launch_by_address
from .names import Named

THREADS = 128
MAX_BLOCKS = 1_024
C_NAMES = {
    "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short", "int32": "int",
    "uint32": "unsigned int", "int64": "long long", "uint64": "unsigned long long", "float32": "float", "float64": "double",
    "complex64": "pycuda::complex<float>", "complex128": "pycuda::complex<double>",
}  # fmt: skip
_LOOP = """#include <pycuda-complex.hpp>
{preamble}
__global__ void {name}({arguments}, long long n)
{{
  unsigned tid = threadIdx.x, total_threads = gridDim.x * blockDim.x, cta_start = blockDim.x * blockIdx.x;
  long long i;
  {prepare};
  for (i = cta_start + tid; i < n; i += total_threads) {{
    {operation};
  }}
  {finish};
}}
"""
_SCAN = """#include <pycuda-complex.hpp>
{preamble}
#define SCAN_EXPR(a, b, across_seg_boundary) ({scan})
__global__ void {name}({arguments}, long long n)
{{
  {type} sum = {neutral};
  for (long long i = 0; i < n; i++) {{
    {type} item = x[i], before = sum;
    sum = i || {exclusive} ? SCAN_EXPR(sum, item, false) : item;
    out[i] = {exclusive} ? before : sum;
  }}
}}
"""
_REDUCTION = """#include <pycuda-complex.hpp>
{preamble}
#define REDUCE(a, b) ({reduce})
__global__ void {name}({type} *out, {arguments}, long long n)
{{
  __shared__ {type} sdata[{threads}];
  {type} acc = {neutral};
  for (long long i = threadIdx.x; i < n; i += {threads}) acc = REDUCE(acc, ({map}));
  sdata[threadIdx.x] = acc;
  for (int half = {threads} / 2; half > 0; half /= 2) {{
    __syncthreads();
    if (threadIdx.x < half) sdata[threadIdx.x] = REDUCE(sdata[threadIdx.x], sdata[threadIdx.x + half]);
  }}
  if (threadIdx.x == 0) out[0] = sdata[0];
}}
"""


def ctype(dtype: Any) -> str:
    """Return the type of a NumPy type in CUDA C++."""
    return C_NAMES[np.dtype(dtype).name]


class Argument:
    """A declared argument of a generated kernel."""

    pointer = ""

    def __init__(self, dtype: Any, name: str) -> None:
        self.dtype, self.name = np.dtype(dtype), name

    def __str__(self) -> str:
        return f"{ctype(self.dtype)} {self.pointer}{self.name}"


class ScalarArg(Argument):
    pass


class VectorArg(Argument):
    pointer = "*"


class _Generated(Named):
    """A kernel of a generated text."""

    def __init__(self, template: str, arguments: Any, name: str, **pieces: Any) -> None:
        if not isinstance(arguments, str):
            arguments = ", ".join(map(str, arguments))
        text = template.format(arguments=re.sub(r"\s+", " ", arguments), name=name, **pieces)
        source = CudaSource(SourceText.inside(text, ""))
        self.kernel, self.variables = source[name], Variables(source)

    def launch(self, blocks: int, args: Sequence[Any], threads: int = THREADS) -> None:
        own = [getattr(arg, "gpudata", arg) for arg in args]
        launch_by_address(self.kernel, (blocks, 1), (threads, 1, 1), own, self.variables)

    def size(self, args: Sequence[Any]) -> int:
        arrays = [arg for arg in args if isinstance(arg, GPUArray)]
        if not all(arg.flags.forc for arg in arrays):
            raise RuntimeError(f"{self.kernel.__name__} takes contiguous arrays")
        sizes = {arg.size for arg in arrays}
        if len(sizes) != 1:
            raise LaunchError(f"{self.kernel.__name__} takes arrays of one size, these have {sorted(sizes)}")
        return int(sizes.pop())


class ElementwiseKernel(_Generated):
    """A statement for each index i of its arrays."""

    def __init__(
        self, arguments: Any, operation: str, name: str = "kernel", keep: bool = False, options: Any = None, *,
        preamble: str = "", loop_prep: str = "", after_loop: str = "",
    ) -> None:  # fmt: skip
        super().__init__(
            _LOOP, arguments, name, operation=operation, preamble=preamble, prepare=loop_prep, finish=after_loop
        )

    def __call__(self, *args: Any, stream: Any = None) -> None:
        size = self.size(args)
        self.launch(min(-(-size // THREADS), MAX_BLOCKS), [*args, np.int64(size)])


class ReductionKernel(_Generated):
    """One number of all elements of its arrays. PyCUDA adds in another order."""

    def __init__(
        self, dtype_out: Any, neutral: str, reduce_expr: str, map_expr: str | None = None, arguments: Any = None,
        name: str = "reduce_kernel", *options: Any, preamble: str = "",
    ) -> None:  # fmt: skip
        """options: `keep` and options of nvcc, which have no effect."""
        self.dtype = np.dtype(dtype_out)
        super().__init__(
            _REDUCTION, arguments, name, reduce=reduce_expr, map=map_expr or "in[i]", neutral=neutral, preamble=preamble,
            type=ctype(dtype_out), threads=THREADS,
        )  # fmt: skip

    def __call__(self, *args: Any, stream: Any = None) -> GPUArray:
        result = GPUArray((), self.dtype)
        self.launch(1, [result, *args, np.int64(self.size(args))])
        return result


class _ScanKernel(_Generated):
    """Partial results of all elements of an array, by one thread. PyCUDA combines elements in another order."""

    exclusive = False

    def __init__(
        self, dtype: Any, scan_expr: str, neutral: str | None = None, name_prefix: str = "scan", options: Any = None,
        preamble: str = "",
    ) -> None:  # fmt: skip
        if self.exclusive and neutral is None:
            raise ValueError("neutral element is required for exclusive scan")
        self.dtype = np.dtype(dtype)
        super().__init__(
            _SCAN, (VectorArg(dtype, "x"), VectorArg(dtype, "out")), name_prefix, scan=scan_expr, type=ctype(dtype), preamble=preamble,
            neutral=neutral or f"{ctype(dtype)}()", exclusive=str(self.exclusive).lower(),
        )  # fmt: skip

    def __call__(self, input_ary: GPUArray, output_ary: Any = None, allocator: Any = None, stream: Any = None) -> Any:
        new = isinstance(output_ary, str)
        output = input_ary if output_ary is None else GPUArray(input_ary.shape, input_ary.dtype) if new else output_ary
        self.launch(1, [input_ary, output, np.int64(self.size([input_ary, output]))], threads=1)
        return output


class InclusiveScanKernel(_ScanKernel):
    pass


class ExclusiveScanKernel(_ScanKernel):
    exclusive = True


def vectors() -> dict[str, Any]:
    """Return NumPy types of CUDA's vectors, such as `float3`, and functions that make them, such as `make_float3`."""
    results: dict[str, Any] = {}
    for name, kind in (("char", "i1"), ("uchar", "u1"), ("short", "i2"), ("ushort", "u2"), ("int", "i4"), ("uint", "u4"),
                       ("long", "i8"), ("ulong", "u8"), ("float", "f4"), ("double", "f8")):  # fmt: skip
        for lanes in (1, 2, 3, 4):
            dtype = np.dtype([(letter, kind) for letter in "xyzw"[:lanes]])
            results[f"{name}{lanes}"] = dtype
            results[f"make_{name}{lanes}"] = partial(_vector, dtype)
    return results


def _vector(dtype: Any, *values: Any) -> Any:
    return np.array(values, dtype)[()]


def rand(shape: Any, dtype: Any = np.float32, stream: Any = None) -> GPUArray:
    """Return uniform random numbers in [0, 1), by NumPy's generator."""
    return to_gpu(np.random.default_rng().random(shape).astype(dtype))
