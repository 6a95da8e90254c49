"""One launch on a GPU through PyCUDA: contexts, loaded kernels, arrays copied in and out, times by the GPU's events."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from ...errors import LaunchError, OutOfMemory, UnavailableError
from ...runtime.arrays import Buffer, DeviceArray
from ...runtime.engine import Dim3, Request, Resources
from ...runtime.gpus import current_gpu
from ...runtime.specialisation import Specialisation
from .binary import binary
from .cooperative import CooperativeFunction
from .filling import fill
from .interface import Interface
from .nvcc import Built
from .own_text import joined, packed

NO_PYCUDA = 'PyCUDA is not installed: pip install "simtbed[cuda]"'
DEFAULT_SHARED = 48 * 1024
"""Bytes of shared memory of a kernel without opt-in."""


# ------------------------------------------------------------------ the device
@dataclass(eq=False)
class Context:
    """A device's primary context, shared with other libraries of the process.

    loaded: kernels in its memory. before_the_end: functions to call before the context is destroyed.
    """

    device: Any
    context: Any
    loaded: weakref.WeakKeyDictionary[Specialisation, dict[Dim3, _Loaded]] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    before_the_end: list[Callable[[], None]] = field(default_factory=list)

    @property
    def arch(self) -> str:
        """As nvcc calls it, such as "sm_90"."""
        major, minor = self.device.compute_capability()
        return f"sm_{major}{minor}"

    @contextmanager
    def current(self) -> Iterator[None]:
        self.context.push()
        try:
            yield
        finally:
            self.context.pop()


def pycuda_driver() -> Any:
    try:
        import pycuda.driver
    except ModuleNotFoundError:
        raise UnavailableError(NO_PYCUDA) from None
    except ImportError as error:
        raise UnavailableError(f"PyCUDA does not load, an NVIDIA driver must be installed: {error}") from None
    return pycuda.driver


def primary_context() -> Context:
    """Return the primary context of the device of launches."""
    return context_of(current_gpu())


@cache
def context_of(number: int) -> Context:
    """The primary context of a device, by its number."""
    with _usable():
        device = device_of(number)
        context = Context(device, device.retain_primary_context())
    atexit.register(_forget, context)
    return context


def device_of(number: int) -> Any:
    """A device by its number, without a context. Raises UnavailableError."""
    driver = pycuda_driver()
    with _usable():
        driver.init()
        if number >= driver.Device.count():
            raise UnavailableError(
                f"there is no CUDA device {number}: the driver counts {driver.Device.count()}, from 0"
            )
        return driver.Device(number)


@contextmanager
def _usable() -> Iterator[None]:
    try:
        yield
    except pycuda_driver().Error as error:
        raise UnavailableError(f"no CUDA device can be used: {error}") from None


# ------------------------------------------------------------------ loaded kernels
@dataclass(frozen=True)
class _Loaded:
    """A built kernel in the device's memory. handles: the objects that own it; the last is its function."""

    interface: Interface
    resources: Resources
    handles: list[Any]

    @property
    def function(self) -> Any:
        return self.handles[-1]

    @staticmethod
    def create(context: Context, interface: Interface, resources: Resources, *handles: Any) -> _Loaded:
        instance = _Loaded(interface, resources, list(handles))
        weakref.finalize(instance, _unload, context, instance.handles)
        return instance


def _unload(context: Context, handles: list[Any]) -> None:
    """Release a module in its context: PyCUDA makes it current only in the thread that created it."""
    with suppress(Exception), context.current():  # at the end of a process there may be no driver any more
        handles.clear()


def _forget(context: Context) -> None:
    """Unload before the context is destroyed."""
    with context.current():
        context.loaded.clear()
        for clear in context.before_the_end:
            clear()


def is_loaded(request: Request) -> bool:
    return request.block in primary_context().loaded.get(request.specialisation, {})


def load(request: Request) -> _Loaded:
    """A request's program in the device's memory."""
    context = primary_context()
    cache = context.loaded.setdefault(request.specialisation, {})
    if request.block not in cache:
        compiled = binary(request, context.arch)
        interface, built = compiled.interface, compiled.built
        resources = replace(built.resources, shared_bytes=built.resources.shared_bytes + interface.carved_bytes)
        if interface.cooperative:
            handles = [CooperativeFunction(built.cubin, interface.kernel)]
        else:
            module = _module(built)
            handles = [module, module.get_function(interface.kernel)]
        own = request.specialisation.cuda_text
        for symbol, contents in () if own is None else own.constants:
            address, _ = handles[0].get_global(symbol)
            pycuda_driver().memcpy_htod(address, contents)
        cache[request.block] = _Loaded.create(context, interface, resources, *handles)
    return cache[request.block]


def _module(built: Built) -> Any:
    """Load a compiled kernel into the device's memory. Raises UnavailableError if the driver rejects it."""
    driver = pycuda_driver()
    try:
        return driver.module_from_buffer(built.cubin)
    except driver.MemoryError:
        raise
    except driver.Error as error:
        version = driver.get_driver_version()
        raise UnavailableError(
            f"the GPU does not load the kernel: {error}; its driver is for CUDA {version // 1000}.{version % 1000 // 10}, "
            f"and the kernel was made by {built.compiler}"
        ) from None


# ------------------------------------------------------------------ one launch
@dataclass(frozen=True)
class _RemoteArray:
    """An array in the device's memory, freed with its last reference."""

    context: Context
    allocation: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def read(self) -> Buffer:
        contents = np.empty(self.shape, self.dtype)
        with self.context.current():
            pycuda_driver().memcpy_dtoh(contents, self.allocation)
        return contents

    @staticmethod
    def create(context: Context, allocation: Any, form: Buffer) -> _RemoteArray:
        """An array of that shape and type."""
        instance = _RemoteArray(context, allocation, form.shape, form.dtype)
        weakref.finalize(instance, _free, context, allocation)
        return instance


def _free(context: Context, allocation: Any) -> None:
    """Free in the allocation's context: PyCUDA makes it current only in the thread that allocated."""
    with suppress(pycuda_driver().Error), context.current():  # a failed kernel destroys the context
        allocation.free()


def result_array(form: Buffer) -> Buffer:
    """Return an array for a copy of device memory, in C order. form: of its shape and type; a filled one repeats an element, with
    strides of 0, whose order `np.empty_like` would change."""
    return np.empty(form.shape, form.dtype)


class DeviceLaunch:
    """A request's arrays on the device, from entry to exit."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.driver, self.context = pycuda_driver(), primary_context()
        self.addresses: dict[str, Any] = {}
        self.own: list[Any] = []  # freed when the launch is over

    def __enter__(self) -> DeviceLaunch:
        self.context.context.push()
        try:
            with self.errors():
                self.loaded = load(self.request)
                self.copy_in()
                self.allow_shared()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for allocation in self.own:
            with suppress(self.driver.Error):  # a failed kernel destroys the context
                allocation.free()
        self.context.context.pop()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Convert PyCUDA's errors to ours; they name the kernel."""
        name = self.request.specialisation.summary.name
        try:
            yield
        except self.driver.MemoryError:
            needed = sum(a.nbytes for a in self.request.arguments.values())
            raise OutOfMemory(f"{name}: its arrays, {needed} bytes, do not fit the device's free memory") from None
        except self.driver.Error as error:
            raise LaunchError(f"{name} failed on the GPU: {error}") from None

    def copy_in(self) -> None:
        for name, value in self.request.arguments.items():
            if not isinstance(value, np.ndarray) or not value.nbytes:
                continue
            everywhere = self.request.filled.get(name)
            if device_array := self.request.device_arrays.get(name):
                self.addresses[name] = self.resident(device_array)
                if self.addresses[name] is not None:
                    continue
                value, everywhere = device_array.host, device_array.fill
            self.addresses[name] = allocation = self.driver.mem_alloc(value.nbytes)
            if not device_array:
                self.own.append(allocation)
            if everywhere is not None:
                fill(self.driver, allocation, value.nbytes, everywhere)
            else:
                self.driver.memcpy_htod(allocation, value)
            if device_array:
                self.attach(device_array, allocation)

    def resident(self, array: DeviceArray) -> Any:
        """Return the memory of a DeviceArray on this GPU, or None. Contents on another GPU are moved to the host."""
        if isinstance(array.remote, _RemoteArray):
            if array.remote.context is self.context:
                return array.remote.allocation
            array.fetch()
        return None

    def attach(self, array: DeviceArray, allocation: Any) -> None:
        """Make memory with a copy of its contents the memory of a DeviceArray."""
        array.attach(_RemoteArray.create(self.context, allocation, array.host))

    @property
    def dynamic_shared(self) -> int:
        return self.request.dynamic_shared + self.loaded.interface.carved_bytes

    def allow_shared(self) -> None:
        """Opt in to more shared memory than the default."""
        if self.request.dynamic_shared + self.loaded.resources.shared_bytes > DEFAULT_SHARED:
            attribute = self.driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
            self.loaded.function.set_attribute(attribute, self.dynamic_shared)

    def arguments(self) -> list[np.generic]:
        """The kernel's arguments in order: addresses (0 for an array without elements), scalars, lengths."""
        if (packing := self.loaded.interface.packing) is not None:
            values = packed(packing, self.request.arguments, self.addresses)
            return values if self.loaded.interface.cooperative else joined(packing, values)
        arguments: list[np.generic] = []
        for name in self.loaded.interface.arguments:
            value = self.request.arguments[name]
            if isinstance(value, np.ndarray):
                arguments.append(np.uintp(int(self.addresses[name]) if name in self.addresses else 0))
            else:
                short: Any = value.view(f"u{value.itemsize}") if value.itemsize <= 2 else value
                arguments.append(short)  # PyCUDA knows neither bool nor bfloat16
        return arguments + [np.int32(self.length(name)) for name in self.loaded.interface.lengths]

    def length(self, array: str) -> int:
        """Return the elements of a global array or of an array in dynamic shared memory."""
        if array in self.request.arguments:
            return len(np.asarray(self.request.arguments[array]))
        return self.request.dynamic_arrays[array].length

    def start(self) -> None:
        """Launch asynchronously."""
        request = self.request
        self.loaded.function(*self.arguments(), grid=request.grid, block=request.block, shared=self.dynamic_shared)

    def run(self, times: int, before: DeviceLaunch | None = None) -> list[float]:
        """Launch `times` times; return the milliseconds of each. before: a launch before each, not timed."""
        measured = []
        with self.errors():
            start, end = self.driver.Event(), self.driver.Event()
            for _ in range(times):
                if before is not None:
                    before.start()
                start.record()
                self.start()
                end.record()
                end.synchronize()
                measured.append(float(start.time_till(end)))
        return measured

    def written(self) -> dict[str, Buffer]:
        """Return the contents of the arrays that the kernel may change, except device arrays."""
        buffers = {}
        with self.errors():
            for name in self.loaded.interface.arguments:
                if name in self.loaded.interface.written and name not in self.request.device_arrays:
                    buffers[name] = result_array(np.asarray(self.request.arguments[name]))
                    if name in self.addresses:
                        self.driver.memcpy_dtoh(buffers[name], self.addresses[name])
        return buffers
