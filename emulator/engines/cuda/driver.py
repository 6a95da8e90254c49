"""One launch on a GPU through PyCUDA: contexts, loaded kernels, arrays copied in and out, times by the GPU's events."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...errors import LaunchError, OutOfMemory, UnavailableError
from ...forking import call_in_child
from ...runtime.arrays import Buffer, DeviceArray
from ...runtime.common_memory import ranges_of
from ...runtime.engine import CodePlace, Dim3, Maths, Request, Resources
from ...runtime.gpu_memory import ExternalMemory
from ...runtime.gpus import current_gpu
from ...runtime.specialisation import Specialisation
from . import library
from .binary import binary
from .filling import fill
from .functions import DeviceFunction
from .interface import Interface
from .library import OUT_OF_MEMORY, DriverError
from .nvcc import Built
from .own_code import packed

NO_PYCUDA = 'PyCUDA is not installed: pip install "simtbed[cuda]"'
DEFAULT_SHARED = 48 * 1024
"""Bytes of shared memory of a kernel without opt-in."""


# ------------------------------------------------------------------ the device
@dataclass(eq=False)
class Context:
    """A device's primary context, shared with other libraries of the process.

    number: of the device. loaded: kernels in its memory. before_the_end: functions to call before the context is destroyed. queue: its
    `launches.Queue`, after the first launch. failure: the message of the error that ended the use of the GPU by this process.
    """

    device: Any
    context: Any
    number: int = 0
    loaded: weakref.WeakKeyDictionary[Specialisation, dict[tuple[Dim3, Maths], Loaded]] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    before_the_end: list[Callable[[], None]] = field(default_factory=list)
    queue: Any = None
    failure: str = ""

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


CREATION = threading.RLock()
"""Held while an object of a context is created that all threads share."""
_CONTEXTS: dict[int, Context] = {}


def context_of(number: int) -> Context:
    """The primary context of a device, by its number."""
    context = _CONTEXTS.get(number)
    if context is None:
        with CREATION, _usable():
            if (context := _CONTEXTS.get(number)) is None:
                device = device_of(number)
                context = _CONTEXTS[number] = Context(device, device.retain_primary_context(), number)
                atexit.register(_forget, context)
    return context


FORKED = (
    "the GPU was used before this process was forked, and CUDA does not work in such a process: start it by the method "
    '"spawn" of multiprocessing'
)


class _ContextOfParent:
    """The context in the child of a fork. context: of the parent, which is not released here."""

    def __init__(self, context: Any) -> None:
        self.context = context

    def push(self) -> None:
        raise LaunchError(FORKED)

    pop = push


@call_in_child
def _lose_contexts() -> None:
    for context in _CONTEXTS.values():
        context.context = _ContextOfParent(context.context)


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
        cause = FORKED if "initialization error" in str(error) else error
        raise UnavailableError(f"no CUDA device can be used: {cause}") from None


# ------------------------------------------------------------------ loaded kernels
@dataclass(frozen=True)
class Loaded:
    """A built kernel in the device's memory."""

    interface: Interface
    resources: Resources
    function: DeviceFunction

    @staticmethod
    def create(context: Context, interface: Interface, resources: Resources, function: DeviceFunction) -> Loaded:
        instance = Loaded(interface, resources, function)
        weakref.finalize(instance, _unload, context, function)
        return instance


def _unload(context: Context, function: DeviceFunction) -> None:
    """Release a module in its context."""
    with suppress(Exception), context.current():  # at the end of a process there may be no driver any more
        function.unload()


def _forget(context: Context) -> None:
    """Unload before the context is destroyed."""
    if isinstance(context.context, _ContextOfParent):
        return
    with context.current():
        context.loaded.clear()
        for clear in context.before_the_end:
            clear()


def is_loaded(request: Request) -> bool:
    return _form(request) in primary_context().loaded.get(request.specialisation, {})


def _form(request: Request) -> tuple[Any, ...]:
    """Return the options of a launch on which the loaded function depends."""
    return request.block, request.maths, request.cluster


def load(request: Request) -> Loaded:
    """A request's program in the device's memory."""
    context = primary_context()
    cache = context.loaded.setdefault(request.specialisation, {})
    if _form(request) not in cache:
        compiled = binary(request, context.arch)
        interface, built = compiled.interface, compiled.built
        resources = replace(built.resources, shared_bytes=built.resources.shared_bytes + interface.carved_bytes)
        function = _function(interface, built)
        own = request.specialisation.own_code
        function.set_cluster(request.cluster, printed=own is None)
        for symbol, contents in () if own is None else own.constants:
            pycuda_driver().memcpy_htod(function.address_of(symbol), contents)
        cache[_form(request)] = Loaded.create(context, interface, resources, function)
    return cache[_form(request)]


def _function(interface: Interface, built: Built) -> DeviceFunction:
    """Load a compiled kernel into the device's memory. Raises UnavailableError if the driver rejects it."""
    try:
        return DeviceFunction(built.cubin, interface.kernel, interface.cooperative)
    except DriverError as error:
        if error.status == OUT_OF_MEMORY:
            raise
        version = pycuda_driver().get_driver_version()
        raise UnavailableError(
            f"the GPU does not load the kernel: {error}; its driver is for CUDA {version // 1000}.{version % 1000 // 10}, "
            f"and the kernel was made by {built.compiler}"
        ) from None


# ------------------------------------------------------------------ one launch
@dataclass(frozen=True)
class GpuArray:
    """An array in the device's memory, freed with its last reference."""

    context: Context
    allocation: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    address: int

    @property
    def device_number(self) -> int:
        return self.context.number

    def read(self) -> Buffer:
        contents, driver = np.empty(self.shape, self.dtype), pycuda_driver()
        with self.context.current():
            try:
                driver.memcpy_dtoh(contents, self.allocation)
            except driver.Error as error:
                raise failed(error, self.context, "the copy of an array to the host") from None
        return contents

    @staticmethod
    def create(context: Context, allocation: Any, form: Buffer) -> GpuArray:
        """An array of that shape and type."""
        instance = GpuArray(context, allocation, form.shape, form.dtype, int(allocation))
        weakref.finalize(instance, _free, context, allocation)
        return instance


def _free(context: Context, allocation: Any) -> None:
    """Free in the allocation's context: PyCUDA makes it current only in the thread that allocated."""
    with suppress(Exception), context.current():  # a failed kernel destroys the context
        allocation.free()


@contextmanager
def launch_errors(request: Request, context: Context) -> Iterator[None]:
    """Convert the errors of PyCUDA and of the driver to ours."""
    try:
        yield
    except Exception as error:
        raise launch_error(error, request, context) from None


def launch_error(error: Exception, request: Request, context: Context, place: CodePlace | None = None) -> Exception:
    """Return our error for one of PyCUDA or of the driver; other errors unchanged.

    It names the launch, and those before it that may have failed. place: of the launch.
    """
    driver = pycuda_driver()
    if not isinstance(error, driver.Error | DriverError):
        return error
    name = f"{request.specialisation.summary.name}{place or ''}"
    if context.failure:
        return failed(error, context, name)
    if isinstance(error, driver.MemoryError) or getattr(error, "status", 0) == OUT_OF_MEMORY:
        needed = sum(a.nbytes for a in request.arguments.values())
        return OutOfMemory(f"{name}: its arrays, {needed} bytes, do not fit the device's free memory")
    return failed(error, context, name)


_LASTING = (
    "illegal memory access", "illegal instruction", "misaligned address", "invalid program counter", "unspecified launch failure",
    "address space", "hardware stack error", "launch timed out", "device-side assert",
)  # fmt: skip
"""Parts of the driver's texts of errors after which every call of the process fails."""


def failed(error: Exception, context: Context, name: str = "") -> LaunchError:
    """Return the error of an operation, with the launches that may have failed. name: of the operation, if it may have.

    After an error that lasts, the error names that one as the cause.
    """
    if context.failure:
        what = name or "the operation"
        return LaunchError(f"{what} does not run on the GPU: before it, {context.failure}; start a new process")
    names = list(dict.fromkeys([*(context.queue.unfinished() if context.queue else ()), *[name] * bool(name)]))
    rest = f", or one of {len(names) - 3} launches after it," if len(names) > 3 else ""
    text = f"{', or '.join(names[:3]) or 'an earlier launch'}{rest} failed on the GPU: {error}"
    if any(lasting in str(error) for lasting in _LASTING):
        context.failure = text
    return LaunchError(text)


def resident(context: Context, array: DeviceArray) -> Any:
    """Return the memory of a DeviceArray on this GPU, or None. Contents on another GPU are moved to the host.

    Raises LaunchError for memory of another library on another GPU.
    """
    if isinstance(array.remote, ExternalMemory):
        if (number := library.device_of_address(array.remote.address)) != context.number:
            raise LaunchError(
                f"an argument is in the memory of CUDA device {number}: launch inside st.on_gpu({number})"
            )
        return array.remote.address
    if isinstance(array.remote, GpuArray):
        if array.remote.context is context:
            return array.remote.allocation
        array.fetch()
    return None


def attach(context: Context, array: DeviceArray) -> None:
    """Move the contents of a DeviceArray to the memory of the current context."""
    driver = pycuda_driver()
    allocation = driver.mem_alloc(array.host.nbytes)
    if array.fill is not None:
        fill(driver, allocation, array.host.nbytes, array.fill)
    else:
        driver.memcpy_htod(allocation, array.host)
    array.attach(GpuArray.create(context, allocation, array.host))


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

    def errors(self) -> AbstractContextManager[None]:
        """Convert the driver's errors to ours; they name the kernel."""
        return launch_errors(self.request, self.context)

    def copy_in(self) -> None:
        for common in ranges_of(self.request.arrays) if self.request.overlapping else ():
            allocation = self.driver.mem_alloc(common.memory.nbytes + common.lead)
            self.own.append(allocation)
            start = int(allocation) + common.lead
            self.driver.memcpy_htod(start, common.memory)
            self.addresses |= {name: start + offset for name, offset in common.offsets.items()}
        for name, value in self.request.arguments.items():
            if not isinstance(value, np.ndarray) or not value.nbytes or name in self.addresses:
                continue
            if array := self.request.device_arrays.get(name):
                if resident(self.context, array) is None:
                    attach(self.context, array)
                self.addresses[name] = resident(self.context, array)
                continue
            self.addresses[name] = allocation = self.driver.mem_alloc(value.nbytes)
            self.own.append(allocation)
            element = self.request.filled.get(name)
            if element is not None:
                fill(self.driver, allocation, value.nbytes, element)
            else:
                self.driver.memcpy_htod(allocation, value)

    @property
    def dynamic_shared(self) -> int:
        return self.request.dynamic_shared + self.loaded.interface.carved_bytes

    def allow_shared(self) -> None:
        """Opt in to more shared memory than the default."""
        if self.request.dynamic_shared + self.loaded.resources.shared_bytes > DEFAULT_SHARED:
            self.loaded.function.allow_shared(self.dynamic_shared)

    def arguments(self) -> list[np.generic]:
        """The kernel's arguments in order: addresses (0 for an array without elements), scalars, lengths."""
        if (packing := self.loaded.interface.packing) is not None:
            return packed(packing, self.request.arguments, self.addresses)
        arguments: list[np.generic] = []
        for name in self.loaded.interface.arguments:
            value = self.request.arguments[name]
            if isinstance(value, np.ndarray):
                arguments.append(np.uintp(int(self.addresses[name]) if name in self.addresses else 0))
            else:
                arguments.append(value)
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
