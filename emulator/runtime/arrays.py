"""Global arrays of a launch other than NumPy arrays: new arrays, and arrays in device memory."""

from __future__ import annotations

import math
import threading
import weakref
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..checked import shown, whole
from ..errors import LaunchError, OutOfMemory
from ..forking import call_in_child, hold_at_fork
from ..frontend.constants import is_struct
from ..language.tensor_maps import TensorMapForm
from ..language.types import COMPLEX, SCALARS, VECTORS, Scalar, Vector, from_dtype, from_numpy
from ..tracebacks import without_own_frames
from .foreign_arrays import as_array
from .memory import memory_of_machine
from .poison import poison
from .scalars import checked_scalar
from .streams import synchronize_host

MAX_DIMENSIONS = 5

Buffer = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class MappedArray:
    """The argument of a parameter `TensorMap`: an array, and its form."""

    array: Any
    form: TensorMapForm


@dataclass(frozen=True)
class NewArray:
    """A global array created by the launch; the result of `empty`, `zeros` and `full`.

    shape: elements by dimension. type: a type of the language, or its name. readable: whether a kernel may read
    elements it did not write; if not, they hold poison. value: of each element: a number, or the numbers of a vector's
    or a complex number's components.
    """

    shape: tuple[int, ...]
    type: str | Any
    readable: bool
    value: Any = 0

    @property
    def fill(self) -> Buffer:
        """The value of each element, () or (components,) of the scalar type."""
        scalar, lanes = split(named(self.type))
        value = self.value if self.readable else poison(scalar)
        return np.full((lanes,) if lanes else (), value, scalar.dtype)

    @property
    def call(self) -> str:
        """The text of its creation up to the type, for messages."""
        if self.value != 0:
            return f"full(shape, {shown(self.value)}"
        return f"{'zeros' if self.readable else 'empty'}(shape"

    def initial(self) -> Buffer:
        """Return the initial contents; the last axis of vectors holds the lanes."""
        return filled_as(self.template(), self.fill)

    def template(self) -> Buffer:
        """Return a zeroed array of the same shape and type. Its memory is allocated at the first write."""
        type = named(self.type)
        scalar, lanes = split(type)
        needed = math.prod(self.shape) * named(self.type).size
        if needed > memory_of_machine():
            raise OutOfMemory(f"an array of {shown(self.shape)} {named(self.type)} does not fit this machine's memory")
        if type in COMPLEX:
            return np.zeros(self.shape, COMPLEX[type])
        return np.zeros((*self.shape, lanes) if lanes else self.shape, scalar.dtype)


@without_own_frames
def empty(shape: int | tuple[int, ...], type: str | Any) -> NewArray:
    """Return an uninitialised global array of this shape, for the kernel to fill.

    An element that no thread writes holds poison: NaN, or an integer of bytes 0xCD. `check="uninitialised"` finds reads
    of such elements and counts them in a remark. A kernel that adds to the elements, or fills only some, needs `zeros`.
    """
    return _new(shape, type, readable=False)


@without_own_frames
def zeros(shape: int | tuple[int, ...], type: str | Any) -> NewArray:
    """Return a global array of this shape, initialised with 0."""
    return _new(shape, type, readable=True)


@without_own_frames
def full(shape: int | tuple[int, ...], value: Any, type: str | Any) -> NewArray:
    """Return a global array of this shape, initialised with `value`.

    value: a number of the type; for a vector, one for all components or a tuple of one for each. On a GPU the device
    fills it: nothing is copied.
    """
    if is_struct(type):
        raise LaunchError("full makes arrays of numbers: fill an array of structs with NumPy")
    chosen = named(type)
    scalar, lanes = split(chosen)
    if chosen in COMPLEX:
        value = (value.real, value.imag) if isinstance(value, complex | np.complexfloating) else (value, 0)
    if not (lanes and isinstance(value, tuple)):
        fill_value: Any = checked_scalar("value", scalar, value)
    elif len(value) == lanes:
        fill_value = tuple(checked_scalar(f"value[{n}]", scalar, component) for n, component in enumerate(value))
    else:
        raise LaunchError(f"value is {chosen}: {lanes} numbers are expected, not {len(value)}")
    return replace(_new(shape, type, readable=True), value=fill_value)


def is_zero(element: Buffer) -> bool:
    """Return whether all bits are zero; those of -0.0 are not."""
    return not any(element.tobytes())


def filled_as(template: Buffer, element: Buffer) -> Buffer:
    """Return a new array of the template's shape and type with every element set to `element`, () or (components,).
    Zeros take no memory yet."""
    if is_zero(element):
        return np.zeros(template.shape, template.dtype)
    result = np.empty(template.shape, template.dtype)
    result[...] = element.view(template.dtype)
    return result


def flags_of_elements(flags: Buffer, count: int) -> Buffer:
    """Return flags of elements as those of `count` elements of another size in the same memory, flat: an element has one if all its
    parts have it."""
    parts = max(flags.size, count)
    by_element = flags.reshape(-1).repeat(parts // max(flags.size, 1)).reshape(count, parts // max(count, 1))
    return np.asarray(by_element.all(axis=1))


def _new(shape: Any, type: Any, readable: bool) -> NewArray:
    extents = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    if not 1 <= len(extents) <= MAX_DIMENSIONS:
        raise LaunchError(f"shape has {len(extents)} dimensions, a kernel takes 1 to {MAX_DIMENSIONS}")
    single = len(extents) == 1
    sizes = (whole("shape" if single else f"shape[{d}]", n, 0, (1 << 63) - 1) for d, n in enumerate(extents))
    return NewArray(tuple(sizes), type if is_struct(type) else named(type).name, readable)


def checked_array(name: str, value: Any) -> Buffer:
    """Return a caller's argument as a NumPy array. Raises LaunchError for other objects and for dtypes without a type of the language."""
    value = as_array(name, value)
    if not isinstance(value, np.ndarray):
        advice = (
            f"np.array({name}, np.float32) makes one"
            if isinstance(value, list | tuple)
            else "or st.empty, st.zeros, st.full"
        )
        raise LaunchError(f"{name} is a NumPy array, {advice}; not {shown(value)}")
    if from_dtype(value.dtype) is None:
        native = value.dtype.newbyteorder("=") if value.dtype.kind in "iufc" else value.dtype
        swapped = from_dtype(native)
        reason = f"byte-swapped {swapped}; convert it: .astype(np.{native})" if swapped else str(value.dtype)
        raise LaunchError(f"{name} is an array of numbers, the array given is {reason}")
    if value.ndim == 0:
        raise LaunchError(f"{name} has 0 dimensions, a kernel takes 1 to {MAX_DIMENSIONS}; reshape it")
    return value


class RemoteArray(Protocol):
    """An array in the memory of a device."""

    def read(self) -> Buffer:
        """Return its contents, copied to the host."""
        ...


class DeviceArray:
    """A global array that persists between launches on the device.

    Parameters
    ----------
    contents : array as for `launch`, or `empty(...)`, `zeros(...)`, `full(...)`; copied or created once.

    Pass it as a launch argument in place of an array. The kernel's changes remain in it and are not in the
    result. Launches with a common DeviceArray run one at a time, also from different threads.

    written: bool by element, the written elements of an `empty` array; None for all, or without tracking. A launch
    tracks them under `check="uninitialised"`. changing: whether a launch modifies it in place. In the child of a fork at
    that moment, by another thread, it has no contents, and its use raises LaunchError. remains: whether its contents may
    remain in the memory of a device after a launch. rewritten: whether a launch may have changed the contents. layout: as
    `read_layout` returned it; None after a change.
    """

    remains = True
    remote: RemoteArray | None = None
    fill: Buffer | None = None
    written: Buffer | None = None
    layout: tuple[Any, ...] | None = None
    changing = rewritten = _lost = False
    _interval: tuple[int, int] | None = None
    _exports: tuple[RemoteArray, ...] = ()

    def __init__(self, contents: Buffer | NewArray) -> None:
        if not isinstance(contents, NewArray):
            self._begin(checked_array("contents", contents).copy("C"))
            return
        self._begin(contents.template(), contents.fill)
        if not contents.readable:
            self.written = np.broadcast_to(np.False_, contents.shape)  # it takes no memory

    def _begin(self, host: Buffer, fill: Buffer | None = None) -> None:
        """Begin with contents on the host. fill: the value of each element, until the first write."""
        self._host, self.fill, self.lock = host, fill, threading.RLock()
        self.continue_in_child()

    def continue_in_child(self) -> None:
        """Call `after_fork` in each child of a fork."""
        _ARRAYS.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with the contents, on the host of the other process."""
        return DeviceArray, (self.numpy(),)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of an element; of a component for vectors."""
        return self._host.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements by dimension; for vectors, then lanes."""
        return self._host.shape

    @property
    def form(self) -> Buffer:
        """An array of the same shape, type and strides, with any contents."""
        return self._host

    @property
    def host(self) -> Buffer:
        """An array of the same shape and type, with the contents of `numpy` after `fetch`."""
        self._require_contents()
        return self._host

    def numpy(self) -> Buffer:
        """Return a copy of the current contents, after all launches so far."""
        self._require_contents()
        synchronize_host()
        if self.remote:
            return self.remote.read().view(self.dtype).reshape(-1)[: self._host.size].reshape(self.shape)
        return self._host.copy() if self.fill is None else filled_as(self._host, self.fill)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Buffer:
        """Return `numpy()` for `np.asarray` and NumPy's functions. copy=False raises ValueError: the contents may be on a GPU."""
        if copy is False:
            raise ValueError("a DeviceArray is copied to NumPy: leave copy=None")
        return self.numpy().astype(dtype or self.dtype, copy=False)

    def __repr__(self) -> str:
        """Return shape, type and device. A launch in progress continues."""
        number = getattr(self.remote, "device_number", 0)
        return f"<DeviceArray: {self.dtype}{list(self.shape)}, {f'GPU {number}' if self.remote else 'host'}>"

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array for other libraries, while it is in the memory of a GPU; AttributeError otherwise."""
        address = self._address()
        if address is None or self.dtype.name == "bfloat16":
            raise AttributeError("__cuda_array_interface__")
        form = self._host
        strides = None if form.flags.c_contiguous else form.strides
        return {
            "shape": form.shape, "typestr": form.dtype.str, "data": (address, False), "strides": strides, "version": 3,
            "stream": 1,
        }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device: (1, 0) on the host, (2, number) on a GPU."""
        return (1, 0) if self._address() is None else (2, getattr(self.remote, "device_number", 0))

    def __dlpack__(self, **options: Any) -> Any:
        """Return a DLPack capsule of the current contents, without a copy: of the host, or of a GPU."""
        address = self._address()
        if address is None:
            self.fetch()
            return self.host.__dlpack__(**options)
        from .gpu_memory import new_capsule  # late: few programs use it

        return new_capsule(address, self._host, self.__dlpack_device__()[1], self.remote)

    def _address(self) -> int | None:
        """Return the address on a GPU, in memory that now lives as long as this object; None on the host."""
        self._require_contents()
        remote = self.remote
        address: int | None = getattr(remote, "address", None)
        if remote is not None and address is not None and remote not in self._exports:
            self._exports += (remote,)
        return address

    def read_layout(self) -> tuple[Any, ...] | None:
        """Return and store the properties that a launch plan depends on; None for new contents, until its first launches."""
        if self.fill is None and self.written is None:
            self.layout = type(self), self._host.dtype, self._host.shape, self._host.strides
        return self.layout

    def keep(self, count: int) -> None:
        """Truncate the first dimension to `count` elements. Nothing is copied."""
        self._host, self.layout = self._host[: whole("count", count, 0, len(self._host))], None
        self.written = None if self.written is None else self.written[:count]

    def record_written(self, elements: Buffer | None) -> None:
        """Record the written elements after a launch: bool by accessed element, flat, or None without tracking."""
        if self.written is not None:
            if elements is None or elements.all():
                self.written = None
            else:
                self.written = flags_of_elements(elements, self.written.size).reshape(self.written.shape)

    def interval(self) -> tuple[int, int] | None:
        """Return the smallest and the largest integer in the first contents; None after a launch that may change them, so
        that the result does not depend on the engine."""
        if self.rewritten:
            return None
        values = self._host if self.fill is None else self.fill
        if self._interval is None and self.remote is None and values.size and values.dtype.kind in "iu":
            self._interval = int(values.min()), int(values.max())
        return self._interval

    def attach(self, remote: RemoteArray) -> None:
        """Move the contents to a device's memory."""
        self.interval()  # while they are on the host
        self.remote, self.fill = remote, None

    def replace(self, contents: Buffer) -> None:
        """Adopt an array as the contents, on the host."""
        self._host, self.remote, self.fill, self.layout = contents, None, None, None

    def after_fork(self) -> None:
        """Continue in the child of a fork, where no other thread has the lock."""
        if self.lock.acquire(blocking=False):
            self.lock.release()
        else:
            self.lock, self._lost = threading.RLock(), self.changing

    def _require_contents(self) -> None:
        if self._lost:
            raise LaunchError(
                "a DeviceArray has no contents in this process: a launch of another thread changed it while the process "
                "was forked: create it after the fork"
            )

    def fetch(self) -> None:
        """Move the contents to the host."""
        with MOVES:
            if self.remote or (self.fill is not None and not is_zero(self.fill)):
                self.replace(self.numpy())


MOVES = threading.RLock()
"""Held while contents move to the host, and while launches are added to the queues of a GPU: these do not lock single arrays."""
hold_at_fork(MOVES)
_ARRAYS: weakref.WeakSet[DeviceArray] = weakref.WeakSet()


@call_in_child
def _continue_arrays() -> None:
    for array in [*_ARRAYS]:
        array.after_fork()


def named(type: Any) -> Scalar | Vector:
    """Return the type named by a string, a word of the language or a type of NumPy."""
    kind = from_numpy(type)
    if isinstance(kind, Scalar | Vector):
        return kind
    text = type if isinstance(type, str) else getattr(type, "name", "") or getattr(type, "__name__", "")
    name = text if isinstance(text, str) else ""
    result = SCALARS.get(name) or VECTORS.get(name)
    if result is None:
        from ..frontend.advice import type_advice  # late: only errors need it

        text = shown(name or type)
        names = f"there are {', '.join((*SCALARS, *VECTORS))}"
        advice = type_advice(getattr(np, name, None) if isinstance(type, str) else type, names)
        raise LaunchError(f"{text} is not a type; {advice}")
    return result


def split(type: Scalar | Vector) -> tuple[Scalar, int]:
    """Return an element's scalar type and its lanes, 0 for scalars."""
    return (type.element, type.lanes) if isinstance(type, Vector) else (type, 0)
