"""The modules of PyCUDA: compilation, launches, memory, arrays. Streams and contexts have no effect: launches are complete when they
return. Textures, surfaces, OpenGL and code generators are missing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..cuda_cpp.kernel import CudaKernel, CudaSource
from ..cuda_cpp.places import SourceText
from ..errors import LaunchError
from .memory import MEMORY, Variables, launch_by_address


class DeviceAllocation:
    """Memory of the device. An integer, its address, in arithmetic."""

    def __init__(self, size: int) -> None:
        self.size, self.address = int(size), MEMORY.allocate(int(size))

    def free(self) -> None:
        MEMORY.free(self.address)

    def __del__(self) -> None:
        MEMORY.blocks.pop(self.address, None)

    def __int__(self) -> int:
        return self.address

    __index__ = __int__

    def __add__(self, offset: int) -> int:
        return self.address + int(offset)


class ArgumentHandler:
    """An array of the host that is copied to the device before a launch, after it, or both."""

    copies_in, copies_out = False, False

    def __init__(self, array: Any) -> None:
        self.array = array


class In(ArgumentHandler):
    copies_in = True


class Out(ArgumentHandler):
    copies_out = True


class InOut(ArgumentHandler):
    copies_in = copies_out = True


class Function:
    """A kernel of a SourceModule."""

    num_regs = shared_size_bytes = local_size_bytes = const_size_bytes = 0

    def __init__(self, kernel: CudaKernel, variables: Variables) -> None:
        self.kernel, self.variables = kernel, variables

    def __call__(self, *args: Any, block: Any, grid: Any = (1, 1), shared: int = 0, **options: Any) -> float | None:
        """Launch the kernel. Return the seconds with time_kernel=True."""
        start = time.perf_counter()
        args = tuple(InOut(arg) if hasattr(arg, "__cuda_array_interface__") else arg for arg in args)
        handlers = [(arg, DeviceAllocation(arg.array.nbytes)) for arg in args if isinstance(arg, ArgumentHandler)]
        addresses = {id(arg): allocation for arg, allocation in handlers}
        for arg, allocation in handlers:
            if arg.copies_in:
                memcpy_htod(allocation, arg.array)
        inputs = [addresses.get(id(arg), getattr(arg, "gpudata", arg)) for arg in args]
        if wrong := [arg for arg in inputs if type(arg) in (int, float, bool)]:
            raise LaunchError(f"PyCUDA takes NumPy numbers: give np.int32({wrong[0]}) or np.float32({wrong[0]})")
        launch_by_address(self.kernel, tuple(grid), tuple(block), inputs, self.variables, shared)
        for arg, allocation in handlers:
            if arg.copies_out:
                memcpy_dtoh(arg.array, allocation)
            allocation.free()
        return time.perf_counter() - start if options.get("time_kernel") else None

    def prepare(self, arg_types: Any, **options: Any) -> Function:
        """Set the types of the arguments of prepared calls, as letters of `struct` or NumPy types."""
        self.types = [np.intp if one in ("P", np.intp) else np.dtype(one).type for one in arg_types]
        return self

    def prepared_call(self, grid: Any, block: Any, *args: Any, shared_size: int = 0) -> None:
        inputs = [arg if kind is np.intp else kind(arg) for kind, arg in zip(self.types, args, strict=True)]
        self(*inputs, grid=grid, block=block, shared=shared_size)

    def prepared_async_call(self, grid: Any, block: Any, stream: Any, *args: Any, shared_size: int = 0) -> None:
        self.prepared_call(grid, block, *args, shared_size=shared_size)

    def set_cache_config(self, config: Any) -> None:
        """Accept a preference of caches, which has no effect."""


class SourceModule:
    """The kernels of a CUDA C++ text. nvcc, arch and other options of the compiler have no effect."""

    def __init__(
        self, source: str, nvcc: str = "nvcc", options: Sequence[str] | None = None, *args: Any, **operands: Any
    ) -> None:
        folders = [f"-I{folder}" for folder in operands.get("include_dirs") or ()]
        text = SourceText.inside(source, sys._getframe(1).f_code.co_filename)
        self.source = CudaSource(text, (*(options or ()), *folders))
        self.variables = Variables(self.source)

    def get_function(self, name: str) -> Function:
        return Function(self.source[name], self.variables)

    def get_global(self, name: str) -> tuple[int, int]:
        return self.variables.address(name)

    def __getattr__(self, name: str) -> Any:
        raise LaunchError(f"SourceModule.{name} is not emulated: textures and surfaces are not supported")


# ------------------------------------------------------------------ memory
def memcpy_htod(target: Any, source: Any) -> None:
    data = np.ascontiguousarray(source).reshape(-1).view(np.uint8)
    MEMORY.section(int(target), len(data))[:] = data


def memcpy_dtoh(target: Any, source: Any) -> None:
    if not target.flags.c_contiguous:
        raise LaunchError("a copy to the host needs a contiguous array: give a copy of it")
    target.reshape(-1).view(np.uint8)[:] = MEMORY.section(int(source), target.nbytes)


def memcpy_dtod(target: Any, source: Any, size: int) -> None:
    MEMORY.section(int(target), size)[:] = MEMORY.section(int(source), size).copy()


def to_device(array: Any) -> DeviceAllocation:
    allocation = DeviceAllocation(array.nbytes)
    memcpy_htod(allocation, array)
    return allocation


def from_device(source: Any, shape: Any, dtype: Any, order: str = "C") -> Any:
    result = np.empty(shape, dtype)
    memcpy_dtoh(result, source)
    return result


def from_device_like(source: Any, like: Any) -> Any:
    return from_device(source, like.shape, like.dtype)


def memset(type: Any) -> Callable[[Any, int, int], None]:
    def fill(target: Any, value: int, count: int) -> None:
        size = np.dtype(type).itemsize * count
        MEMORY.section(int(target), size).view(type)[:] = value

    return fill


class GPUArray:
    """An array on the device. Arithmetic is NumPy's."""

    def __init__(self, shape: Any, dtype: Any, **options: Any) -> None:
        self.shape: tuple[int, ...] = (int(shape),) if isinstance(shape, int | np.integer) else tuple(shape)
        self.dtype = np.dtype(dtype)
        self.size = int(np.prod(self.shape))
        self.nbytes = self.mem_size = self.size * self.dtype.itemsize
        self.gpudata = DeviceAllocation(self.nbytes)

    @property
    def ptr(self) -> int:
        return int(self.gpudata)

    def get(self, ary: Any = None, **options: Any) -> Any:
        """Return the elements, in `ary` if it is given."""
        if ary is None:
            return from_device(self.gpudata, self.shape, self.dtype)
        if ary.dtype != self.dtype or ary.size != self.size or not ary.flags.c_contiguous:
            raise LaunchError(f"get takes a contiguous array of {self.size} elements of {self.dtype}")
        memcpy_dtoh(ary, self.gpudata)
        return ary

    def fill(self, value: Any, **options: Any) -> GPUArray:
        self.set(np.full(self.shape, value, self.dtype))
        return self

    def copy(self) -> GPUArray:
        return to_gpu(self.get())

    def astype(self, dtype: Any) -> GPUArray:
        return to_gpu(self.get().astype(dtype))

    def __repr__(self) -> str:
        return repr(self.get())

    __str__ = __repr__

    def set(self, array: Any, **options: Any) -> None:
        memcpy_htod(self.gpudata, np.asarray(array, self.dtype))

    def __len__(self) -> int:
        return self.shape[0]

    def __setitem__(self, index: Any, value: Any) -> None:
        MEMORY.section(self.ptr, self.nbytes).view(self.dtype).reshape(self.shape)[index] = value

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"GPUArray.{name} is not emulated")


def _operator(name: str) -> Callable[..., Any]:
    def apply(self: GPUArray, *operands: Any) -> Any:
        values = [one.get() if isinstance(one, GPUArray) else one for one in operands]
        return to_gpu(np.asarray(getattr(self.get(), name)(*values)))

    return apply


for _name in (
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "pow",
    "neg",
    "abs",
    "eq",
    "lt",
    "gt",
):
    setattr(GPUArray, f"__{_name}__", _operator(f"__{_name}__"))


def to_gpu(array: Any, *args: Any, **options: Any) -> GPUArray:
    result = GPUArray(array.shape, array.dtype)
    result.set(array)
    return result


def filled(make: Callable[..., Any]) -> Callable[..., GPUArray]:
    def create(*args: Any, **options: Any) -> GPUArray:
        inputs = [one.get() if isinstance(one, GPUArray) else one for one in args]
        return to_gpu(make(*inputs, **{key: value for key, value in options.items() if key in ("shape", "dtype")}))

    return create


# ------------------------------------------------------------------ modules
class Event:
    """A point in time of the host."""

    def __init__(self, *flags: Any) -> None:
        self.time = 0.0

    def record(self, stream: Any = None) -> Event:
        self.time = time.perf_counter()
        return self

    def synchronize(self) -> Event:
        return self

    def query(self) -> bool:
        return True

    def time_till(self, other: Event) -> float:
        return (other.time - self.time) * 1e3

    def time_since(self, other: Event) -> float:
        return (self.time - other.time) * 1e3


class Inert:
    """A stream, a context or a flag: its methods have no effect."""

    handle = 0

    def __init__(self, *args: Any, **options: Any) -> None: ...

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **options: None


ATTRIBUTES = {
    "CLOCK_RATE": 1_980_000, "COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0, "CONCURRENT_KERNELS": 1,
    "GLOBAL_MEMORY_BUS_WIDTH": 5_120, "L2_CACHE_SIZE": 50 << 20, "MAX_BLOCK_DIM_X": 1_024, "MAX_BLOCK_DIM_Y": 1_024,
    "MAX_BLOCK_DIM_Z": 64, "MAX_GRID_DIM_X": (1 << 31) - 1, "MAX_GRID_DIM_Y": 65_535, "MAX_GRID_DIM_Z": 65_535,
    "MAX_REGISTERS_PER_BLOCK": 65_536, "MAX_SHARED_MEMORY_PER_BLOCK": 49_152, "MAX_THREADS_PER_BLOCK": 1_024,
    "MAX_THREADS_PER_MULTIPROCESSOR": 2_048, "MULTIPROCESSOR_COUNT": 132, "TOTAL_CONSTANT_MEMORY": 65_536, "WARP_SIZE": 32,
}  # fmt: skip
"""Attributes of the emulated device, those of an H100."""


class Device(Inert):
    """The emulated device."""

    @staticmethod
    def count() -> int:
        return 1

    def make_context(self, *flags: Any) -> Inert:
        return Inert()

    def retain_primary_context(self) -> Inert:
        return Inert()

    def name(self) -> str:
        return "simtbed"

    def compute_capability(self) -> tuple[int, int]:
        return 9, 0

    def total_memory(self) -> int:
        return 1 << 34

    def get_attributes(self) -> dict[str, int]:
        return dict(ATTRIBUTES)

    def get_attribute(self, name: str) -> int:
        return ATTRIBUTES[name]


class Context(Inert):
    @staticmethod
    def synchronize() -> None: ...

    @staticmethod
    def pop() -> None: ...

    @staticmethod
    def get_device() -> Device:
        return Device(0)


class Error(Exception):
    """PyCUDA's base class of errors."""


class Pool:
    """A pool of device memory; freed blocks are not kept."""

    allocate = DeviceAllocation

    def free_held(self) -> None: ...

    stop_holding = free_held


class HostPool(Pool):
    def allocate(self, shape: Any, dtype: Any) -> Any:  # type: ignore[override]
        return np.empty(shape, dtype)
