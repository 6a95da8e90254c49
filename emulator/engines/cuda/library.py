"""The CUDA driver's own library: calls that PyCUDA does not have, and those of a launch, which must be short.

Streams and events are handles, integers; 0 is the default stream. A start imports no more than this.
"""

import ctypes
from functools import cache
from typing import Any

from ...errors import UnavailableError

OUT_OF_MEMORY, NOT_READY = 2, 600
"""The driver's numbers of two statuses."""
_DEVICE_ORDINAL = 9
"""The driver's number of the attribute of a pointer."""
_DISABLE_TIMING = 2
"""The driver's flag of an event without a time."""


class DriverError(Exception):
    """A status of the driver other than success."""

    def __init__(self, status: int) -> None:
        text = ctypes.c_char_p()
        cuda_driver().cuGetErrorString(status, ctypes.byref(text))
        super().__init__((text.value or b"?").decode())
        self.status = status


_P, _N, _U = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuMemcpyHtoDAsync_v2": (_P, _P, _N, _P),
    "cuMemcpyDtoHAsync_v2": (_P, _P, _N, _P),
    "cuMemcpyDtoDAsync_v2": (_P, _P, _N, _P),
    "cuMemsetD8Async": (_P, ctypes.c_ubyte, _N, _P),
    "cuMemsetD16Async": (_P, ctypes.c_ushort, _N, _P),
    "cuMemsetD32Async": (_P, _U, _N, _P),
    "cuPointerGetAttribute": (_P, ctypes.c_int, _P),
    "cuStreamCreate": (_P, _U),
    "cuStreamDestroy_v2": (_P,),
    "cuStreamSynchronize": (_P,),
    "cuStreamWaitEvent": (_P, _P, _U),
    "cuEventCreate": (_P, _U),
    "cuEventDestroy_v2": (_P,),
    "cuEventRecord": (_P, _P),
    "cuEventSynchronize": (_P,),
    "cuEventQuery": (_P,),
    "cuEventElapsedTime": (_P, _P, _P),
    "cuModuleLoadData": (_P, ctypes.c_char_p),
    "cuModuleGetFunction": (_P, _P, ctypes.c_char_p),
    "cuModuleGetGlobal_v2": (_P, _P, _P, ctypes.c_char_p),
    "cuModuleUnload": (_P,),
    "cuFuncSetAttribute": (_P, ctypes.c_int, ctypes.c_int),
    "cuLaunchKernel": (_P, *(_U,) * 7, _P, _P, _P),
    "cuLaunchCooperativeKernel": (_P, *(_U,) * 7, _P, _P),
    "cuTensorMapEncodeTiled": (_P, ctypes.c_int, _U, *(_P,) * 5, *(ctypes.c_int,) * 4),
    "cuGraphCreate": (_P, _U),
    "cuGraphDestroy": (_P,),
    "cuGraphAddKernelNode": (_P, _P, _P, _N, _P),
    "cuGraphInstantiateWithFlags": (_P, _P, ctypes.c_ulonglong),
    "cuGraphLaunch": (_P, _P),
    "cuGraphExecDestroy": (_P,),
}
"""C types of the arguments of the calls. Each call returns a status."""


@cache
def cuda_driver() -> Any:
    """The library. Raises UnavailableError."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise UnavailableError(f"the CUDA driver does not load: {error}") from None
    for name, types in _SIGNATURES.items():
        if hasattr(library, name):  # a driver without graphs runs launches
            getattr(library, name).argtypes = types
    return library


def check(status: int) -> None:
    """Raise DriverError for a status other than success."""
    if status:
        raise DriverError(status)


# ------------------------------------------------------------------ memory
def copy_to_device(address: int, source: int, size: int, stream: int) -> None:
    """Copy `size` bytes from host memory, in the order of a stream. The source is read later if it is page-locked."""
    check(cuda_driver().cuMemcpyHtoDAsync_v2(address, source, size, stream))


def copy_to_host(target: int, address: int, size: int, stream: int) -> None:
    """Copy `size` bytes to host memory, in the order of a stream. The target is written later if it is page-locked."""
    check(cuda_driver().cuMemcpyDtoHAsync_v2(target, address, size, stream))


class MemoryCalls:
    """The calls of `filling.fill`, with the names of PyCUDA and handles of streams."""

    def memset_d8_async(self, address: int, word: int, count: int, stream: int) -> None:
        check(cuda_driver().cuMemsetD8Async(address, word, count, stream))

    def memset_d16_async(self, address: int, word: int, count: int, stream: int) -> None:
        check(cuda_driver().cuMemsetD16Async(address, word, count, stream))

    def memset_d32_async(self, address: int, word: int, count: int, stream: int) -> None:
        check(cuda_driver().cuMemsetD32Async(address, word, count, stream))

    def memcpy_dtod_async(self, target: int, source: int, size: int, stream: int) -> None:
        check(cuda_driver().cuMemcpyDtoDAsync_v2(target, source, size, stream))


def device_of_address(address: int) -> int:
    """Return the number of the device whose memory contains an address."""
    number = ctypes.c_int()
    check(cuda_driver().cuPointerGetAttribute(ctypes.byref(number), _DEVICE_ORDINAL, address))
    return number.value


# ------------------------------------------------------------------ streams and events
def new_stream() -> int:
    """Return a new stream of the current context, which waits for the default stream and it for this one."""
    return _new("cuStreamCreate", 0)


def destroy_stream(stream: int) -> None:
    check(cuda_driver().cuStreamDestroy_v2(stream))


def synchronize_stream(stream: int) -> None:
    check(cuda_driver().cuStreamSynchronize(stream))


def new_event(timed: bool) -> int:
    """Return a new event of the current context."""
    return _new("cuEventCreate", 0 if timed else _DISABLE_TIMING)


def _new(call: str, flags: int) -> int:
    handle = ctypes.c_void_p()
    check(getattr(cuda_driver(), call)(ctypes.byref(handle), flags))
    return int(handle.value or 0)


def destroy_event(event: int) -> None:
    check(cuda_driver().cuEventDestroy_v2(event))


def record_event(event: int, stream: int) -> None:
    check(cuda_driver().cuEventRecord(event, stream))


def wait_for_event(stream: int, event: int) -> None:
    """Have later operations of a stream wait for an event."""
    check(cuda_driver().cuStreamWaitEvent(stream, event, 0))


def synchronize_event(event: int) -> None:
    check(cuda_driver().cuEventSynchronize(event))


def has_ended(event: int) -> bool:
    """Return whether all operations before an event have ended."""
    status: int = cuda_driver().cuEventQuery(event)
    if status not in (0, NOT_READY):
        raise DriverError(status)
    return status == 0


def elapsed(start: int, end: int) -> float:
    """Return the milliseconds between two events."""
    result = ctypes.c_float()
    check(cuda_driver().cuEventElapsedTime(ctypes.byref(result), start, end))
    return float(result.value)


# ------------------------------------------------------------------ graphs
class _KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v1."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("arguments", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
    )


def new_graph() -> int:
    return _new("cuGraphCreate", 0)


def destroy_graph(graph: int) -> None:
    check(cuda_driver().cuGraphDestroy(graph))


def add_kernel_node(graph: int, before: list[int], kernel: dict[str, Any]) -> int:
    """Add a launch after others; return its node. kernel: the fields of `_KernelNode` but the last."""
    node, nodes = ctypes.c_void_p(), (ctypes.c_void_p * len(before))(*before)
    parameters = _KernelNode(**kernel)
    check(cuda_driver().cuGraphAddKernelNode(ctypes.byref(node), graph, nodes, len(before), ctypes.byref(parameters)))
    return int(node.value or 0)


def instantiate(graph: int) -> int:
    """Return a graph that can be launched."""
    handle = ctypes.c_void_p()
    check(cuda_driver().cuGraphInstantiateWithFlags(ctypes.byref(handle), graph, 0))
    return int(handle.value or 0)


def launch_graph(executable: int, stream: int) -> None:
    check(cuda_driver().cuGraphLaunch(executable, stream))


def destroy_executable(executable: int) -> None:
    check(cuda_driver().cuGraphExecDestroy(executable))
