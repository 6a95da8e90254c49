"""`pycuda.driver` and `pycuda.compiler`: compilation, launches, memory. Launches are complete when they return, so that streams have
no queues. Surfaces and OpenGL are missing."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ..cuda_cpp.kernel import CudaKernel, CudaSource
from ..cuda_cpp.places import SourceText
from ..driver.attributes import ROWS, attributes
from ..driver.function_attributes import CARVEOUT, MAX_DYNAMIC_SHARED, FunctionAttributes
from ..errors import CompileError, LaunchError
from ..machine import device as machine
from ..runtime.host_findings import note_read
from ..runtime.observing import overrides
from . import pycuda_textures
from .memory import MEMORY, Variables, bytes_of, launch_by_address
from .names import Constants, Named


class Error(LaunchError):
    """PyCUDA's base class of errors."""


class LogicError(Error):
    """A wrong use of the driver."""


class DeviceAllocation(Named):
    """Memory of the device. An integer, its address, in arithmetic."""

    def __init__(self, size: int) -> None:
        self.size, self.address, self.is_freed = int(size), MEMORY.allocate(int(size)), False

    def free(self) -> None:
        if self.is_freed:
            raise LogicError(f"no allocation begins at {self.address:#x}: it was freed")
        MEMORY.free(self.address)
        self.is_freed = True  # another allocation may have the address

    def __reduce__(self) -> NoReturn:
        raise TypeError("DeviceAllocation has no copies, and cannot be pickled")

    def __del__(self) -> None:
        if not vars(self).get("is_freed", True):
            MEMORY.remove(self.address)

    def __int__(self) -> int:
        return self.address

    __index__ = __int__

    def __add__(self, offset: int) -> int:
        return self.address + int(offset)


class HostAllocation(DeviceAllocation):
    """Memory that host and device access: the `base` of page-locked and managed arrays."""

    def __init__(self, size: int) -> None:
        super().__init__(max(int(size), 1))
        MEMORY.written.written_by_the_host(self.address)
        self.__array_interface__ = {
            "shape": (int(size),),
            "typestr": "|u1",
            "data": (self.address, False),
            "version": 3,
        }

    get_device_pointer = DeviceAllocation.__int__

    @classmethod
    def array(cls, shape: Any, dtype: Any, order: str = "C", mem_flags: int = 0) -> Any:
        """Return an array in new memory. Its contents are not those of an earlier one."""
        form = np.empty(shape, dtype, order)  # type: ignore[call-overload]
        return np.asarray(cls(form.nbytes))[: form.nbytes].view(form.dtype).reshape(form.shape, order=order)


class ArgumentHandler(Named):
    """An array of the host that is copied to the device before a launch, after it, or both."""

    copies_in, copies_out = False, False

    def __init__(self, array: Any) -> None:
        self.array = array
        self.memory = bytes_of(array, self.copies_out)


class In(ArgumentHandler):
    copies_in = True


class Out(ArgumentHandler):
    copies_out = True


class InOut(ArgumentHandler):
    copies_in = copies_out = True


class Function(Named):
    """A kernel of a SourceModule."""

    def __init__(self, kernel: CudaKernel, variables: Variables) -> None:
        self.kernel, self.variables = kernel, variables
        self.attributes = FunctionAttributes(kernel.declared_bytes("shared"))

    def __call__(
        self, *args: Any, block: Any, grid: Any = (1, 1), stream: Any = None, shared: int = 0, time_kernel: bool = False,
        texrefs: Any = (),
    ) -> float | None:  # fmt: skip
        """Launch the kernel. Return the seconds with time_kernel=True. Texture references of its module are bound in any case."""
        for name, extents in (("block", block), ("grid", grid)):
            if not isinstance(extents, tuple):
                raise TypeError(f"Function.__call__ takes {name} as a tuple, not {extents!r}")
        setting = f"call set_attribute(function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, {shared})"
        self.attributes.require_shared(emulated_device(), self.kernel.__name__, shared, setting)
        start = time.perf_counter()
        handlers = [(arg, DeviceAllocation(arg.memory.size)) for arg in args if isinstance(arg, ArgumentHandler)]
        addresses = {id(arg): allocation for arg, allocation in handlers}
        for arg, allocation in handlers:
            if arg.copies_in:
                memcpy_htod(allocation, arg.array)
        launch_by_address(
            self.kernel, grid, block, [addresses.get(id(arg)) or _input(arg) for arg in args], self.variables, shared
        )
        for arg, allocation in handlers:
            if arg.copies_out:
                memcpy_dtoh(arg.array, allocation)
            allocation.free()
        return time.perf_counter() - start if time_kernel else None

    def prepare(self, arg_types: Any, shared: int | None = None, texrefs: Any = ()) -> Function:
        """Set the types of the arguments of prepared calls, as letters of `struct` or NumPy types."""
        self.types = [np.intp if one in ("P", np.intp) else np.dtype(one).type for one in arg_types]
        self.prepared_shared = shared or 0
        return self

    def prepared_call(self, grid: Any, block: Any, *args: Any, shared_size: int = 0) -> None:
        as_given = [kind is np.intp and not isinstance(arg, int) for kind, arg in zip(self.types, args, strict=True)]
        inputs = [arg if own else kind(arg) for own, kind, arg in zip(as_given, self.types, args, strict=True)]
        self(*inputs, grid=grid, block=block, shared=shared_size or self.prepared_shared)

    def prepared_async_call(self, grid: Any, block: Any, stream: Any, *args: Any, shared_size: int = 0) -> None:
        self.prepared_call(grid, block, *args, shared_size=shared_size)

    def set_attribute(self, attribute: int, value: int) -> None:
        if not self.attributes.set(emulated_device(), attribute, value):
            raise LogicError(f"cuFuncSetAttribute failed: invalid argument: attribute {attribute}, value {value}")

    def get_attribute(self, attribute: int) -> int:
        if attribute != MAX_DYNAMIC_SHARED:
            raise AttributeError(f"Function.get_attribute({attribute}) is not emulated")
        return self.attributes.dynamic_shared(emulated_device())

    def set_cache_config(self, config: Any) -> None:
        """Accept a preference of caches, which has no effect."""


def _input(argument: Any) -> Any:
    """Return an argument as a driver takes it: an address, or a number of NumPy, whose bytes are copied."""
    if type(argument) in (int, float, bool, complex):
        raise LaunchError(f"PyCUDA takes NumPy numbers: give np.int32({argument}) or np.float32({argument})")
    if isinstance(argument, np.ndarray) and MEMORY.range_of(argument.ctypes.data):  # managed or page-locked
        return argument.ctypes.data
    interface = getattr(argument, "__cuda_array_interface__", None)
    return argument if interface is None else interface["data"][0]


class SourceModule(Named):
    """The kernels of a CUDA C++ text. nvcc, arch and other options of the compiler have no effect."""

    def __init__(  # noqa: PLR0913 - PyCUDA's parameters
        self, source: str, nvcc: str = "nvcc", options: Sequence[str] | None = None, keep: bool = False,
        no_extern_c: bool = False, arch: str | None = None, code: str | None = None, cache_dir: Any = None,
        include_dirs: Sequence[str] = (),
    ) -> None:  # fmt: skip
        folders = [f"-I{folder}" for folder in include_dirs]
        text = SourceText.inside(str(source), sys._getframe(1).f_code.co_filename)
        self.source, self.no_extern_c = CudaSource(text, (*(options or ()), *folders)), no_extern_c
        self.variables = Variables(self.source)

    def get_function(self, name: str) -> Function:
        kernel = self.source[name]
        if self.no_extern_c and kernel.declaration.symbol != name:
            raise LogicError(f'SourceModule.get_function: {name} is not declared extern "C", and no_extern_c=True')
        return Function(kernel, self.variables)

    def get_global(self, name: str) -> tuple[int, int]:
        return self.variables.address(name)

    def get_texref(self, name: str) -> pycuda_textures.TextureReference:
        if not re.search(rf"\btexture\s*<[^;]*\b{re.escape(name)}\s*;", self.source.source.text):
            raise LogicError(f"SourceModule.get_texref: the text has no texture {name}")
        return self.variables.textures.setdefault(name, pycuda_textures.TextureReference())  # type: ignore[no-any-return]


# ------------------------------------------------------------------ memory
def memcpy_htod(dest: Any, src: Any) -> None:
    data = bytes_of(src)
    MEMORY.section(int(dest), len(data))[:] = data


def memcpy_dtoh(dest: Any, src: Any) -> None:
    data = bytes_of(dest, written=True)
    note_read(MEMORY.written, int(src), len(data), "memcpy_dtoh")
    data[:] = MEMORY.section(int(src), len(data), written=False)


def memcpy_dtod(dest: Any, src: Any, size: int) -> None:
    data = MEMORY.section(int(src), size, written=False).copy()
    MEMORY.section(int(dest), size, written=False)[:] = data
    MEMORY.written.write(int(dest), size, int(src))


def to_device(bf_obj: Any) -> DeviceAllocation:
    allocation = DeviceAllocation(bytes_of(bf_obj).size)
    memcpy_htod(allocation, bf_obj)
    return allocation


def from_device(devptr: Any, shape: Any, dtype: Any, order: str = "C") -> Any:
    result = np.empty(shape, dtype, order)  # type: ignore[call-overload]
    memcpy_dtoh(result, devptr)
    return result


def from_device_like(devptr: Any, other_ary: Any) -> Any:
    result = np.empty_like(other_ary)
    memcpy_dtoh(result, devptr)
    return result


def _memset(type: Any) -> Callable[..., None]:
    """Return the function that fills memory with an unsigned number of a type."""

    def fill(dest: Any, data: int, count: int, stream: Any = None) -> None:
        if not isinstance(data, int | np.integer) or not 0 <= data <= np.iinfo(type).max:
            raise LogicError(f"memset takes a number from 0 to {np.iinfo(type).max}, not {data!r}")
        MEMORY.section(int(dest), np.dtype(type).itemsize * count).view(type)[:] = data

    return fill


# ------------------------------------------------------------------ streams, devices and contexts
class Stream(Named):
    """A stream. Its work is complete."""

    handle = 0

    def __init__(self, flags: int = 0) -> None: ...

    def synchronize(self) -> None: ...

    def is_done(self) -> bool:
        return True

    def wait_for_event(self, event: Event) -> None: ...


class Event(Named):
    """A point in time of the host."""

    def __init__(self, flags: int = 0) -> None:
        self.time: float | None = None

    def record(self, stream: Any = None) -> Event:
        self.time = time.perf_counter()
        return self

    def synchronize(self) -> Event:
        return self

    def query(self) -> bool:
        return True

    def time_till(self, event: Event) -> float:
        if self.time is None or event.time is None:
            raise LogicError("Event.time_till: both events must be recorded")
        return (event.time - self.time) * 1e3

    def time_since(self, event: Event) -> float:
        return event.time_till(self)


MEMORY_SIZE = 1 << 34


def emulated_device() -> machine.Device:
    """Return the device of a launch."""
    return overrides("jit", machine.H200)[1]


class Context(Named):
    """The context of the emulated device, which is always current."""

    synchronize = pop = staticmethod(lambda: None)
    push = detach = lambda self: None
    set_cache_config = staticmethod(lambda config: None)
    set_limit = staticmethod(lambda limit, value: None)

    @staticmethod
    def get_device() -> Device:
        return Device(0)

    @staticmethod
    def get_current() -> Context:
        return Context()


class Device(Named):
    """The emulated device."""

    def __init__(self, number: int = 0) -> None:
        if number:
            raise LogicError(f"Device({number}): there is one emulated device, 0")

    @staticmethod
    def count() -> int:
        return 1

    def make_context(self, flags: int = 0) -> Context:
        return Context()

    def retain_primary_context(self) -> Context:
        return Context()

    def name(self) -> str:
        return "simtbed"

    def compute_capability(self) -> tuple[int, int]:
        return emulated_device().compute_capability

    def total_memory(self) -> int:
        return MEMORY_SIZE

    def get_attributes(self) -> dict[str, int]:
        return attributes(emulated_device())

    def get_attribute(self, name: str) -> int:
        return self.get_attributes()[name]

    def __getattr__(self, name: str) -> Any:
        return self.get_attribute(name.upper()) if name.upper() in ROWS else super().__getattr__(name)


def driver() -> dict[str, Any]:
    """Return the names of `pycuda.driver`."""

    def zeros(*args: Any, **options: Any) -> Any:
        (array := HostAllocation.array(*args, **options))[...] = 0
        return array

    return {
        **pycuda_textures.contents(),
        **{
            f"{kind}_{name}{end}": (lambda array, mem_flags=0, make=make: make(array.shape, array.dtype)) if end else make
            for kind in ("pagelocked", "managed") for name, make in (("empty", HostAllocation.array), ("zeros", zeros))
            for end in ("", "_like")
        },
        "In": In, "Out": Out, "InOut": InOut, "ArgumentHandler": ArgumentHandler, "DeviceAllocation": DeviceAllocation,
        "mem_alloc": DeviceAllocation, "mem_alloc_like": lambda ary: DeviceAllocation(ary.nbytes),
        "to_device": to_device, "from_device": from_device, "from_device_like": from_device_like,
        "memcpy_htod": memcpy_htod, "memcpy_dtoh": memcpy_dtoh, "memcpy_dtod": memcpy_dtod,
        "memcpy_htod_async": lambda dest, src, stream=None: memcpy_htod(dest, src),
        "memcpy_dtoh_async": lambda dest, src, stream=None: memcpy_dtoh(dest, src),
        "memcpy_dtod_async": lambda dest, src, size, stream=None: memcpy_dtod(dest, src, size),
        **{
            f"memset_d{8 * np.dtype(kind).itemsize}{end}": _memset(kind)
            for kind in (np.uint8, np.uint16, np.uint32) for end in ("", "_async")
        },
        "Stream": Stream, "Event": Event, "Context": Context, "Device": Device, "Function": Function,
        "init": lambda flags=0: None, "get_version": lambda: (12, 8, 0), "get_driver_version": lambda: 12080,
        "Error": Error, "CompileError": CompileError, "LogicError": LogicError,
        "LaunchError": LaunchError, "MemoryError": type("MemoryError", (Error,), {}),
        "RuntimeError": type("RuntimeError", (Error,), {}), "mem_get_info": lambda: (MEMORY_SIZE, MEMORY_SIZE),
        "device_attribute": Constants("device_attribute", **{name: name for name in ROWS}),
        "function_attribute": Constants(
            "function_attribute", MAX_DYNAMIC_SHARED_SIZE_BYTES=MAX_DYNAMIC_SHARED, PREFERRED_SHARED_MEMORY_CARVEOUT=CARVEOUT,
        ),
        "limit": Constants("limit", STACK_SIZE=0, PRINTF_FIFO_SIZE=1, MALLOC_HEAP_SIZE=2, DEV_RUNTIME_SYNC_DEPTH=3),
        "host_alloc_flags": Constants("host_alloc_flags", PORTABLE=1, DEVICEMAP=2, WRITECOMBINED=4),
        "mem_attach_flags": Constants("mem_attach_flags", GLOBAL=1, HOST=2, SINGLE=4),
        "func_cache": Constants("func_cache", PREFER_NONE=0, PREFER_SHARED=1, PREFER_L1=2, PREFER_EQUAL=3),
        "ctx_flags": Constants("ctx_flags", SCHED_AUTO=0, SCHED_SPIN=1, SCHED_YIELD=2, SCHED_BLOCKING_SYNC=4, MAP_HOST=8),
        "event_flags": Constants("event_flags", DEFAULT=0, BLOCKING_SYNC=1, DISABLE_TIMING=2),
    }  # fmt: skip


class Pool(Named):
    """A pool of device memory; freed blocks are not kept."""

    allocate = DeviceAllocation

    def free_held(self) -> None: ...

    stop_holding = free_held


class HostPool(Pool):
    def allocate(self, shape: Any, dtype: Any, order: str = "C") -> Any:  # type: ignore[override]
        return np.empty(shape, dtype, order)  # type: ignore[call-overload]
