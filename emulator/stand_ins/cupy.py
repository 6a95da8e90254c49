"""The module `cupy`: arrays in the emulated device memory, NumPy's functions of CuPy's names, `RawKernel` and `RawModule`."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from ..cuda_cpp.kernel import CudaKernel, CudaSource
from ..cuda_cpp.places import SourceText
from ..driver.function_attributes import MAX_DYNAMIC_SHARED, FunctionAttributes
from ..errors import LaunchError
from ..language.types import Scalar
from ..llvmir.debug import Record
from . import cupy_names
from .memory import MEMORY, DeviceElements, Variables, launch_by_address
from .names import Constants, Named, module
from .pycuda import DeviceAllocation, emulated_device

KINDS = "?bhilqBHILQefdFD"
"""NumPy's characters of the types of elements."""


class ndarray(DeviceElements, Named):
    """An array in device memory, with NumPy's arithmetic on its elements."""

    library = "cupy.ndarray"
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C"
    ) -> None:
        form = np.empty(shape, dtype, order)  # type: ignore[call-overload]
        if form.dtype.char not in KINDS:
            raise ValueError(f"cupy.ndarray: unsupported dtype {form.dtype}")
        owner = DeviceAllocation(form.nbytes) if memptr is None and form.size else memptr
        super().__init__(int(owner) if form.size else 0, form.shape, form.dtype, strides or form.strides, owner)

    def get(self, stream: Any = None, order: str = "C", out: Any = None) -> Any:
        """Return a copy as an array of NumPy, in `out` if it is given."""
        return self._on_host("get", order, out)

    def _on_host(self, function: str, order: str, out: Any) -> Any:
        if out is None:
            return self.copied(function).copy(order)  # type: ignore[arg-type]
        if not isinstance(out, np.ndarray) or out.dtype != self.dtype or out.shape != self.shape:
            raise ValueError(f"cupy.ndarray.get takes out of {self.dtype} and of the shape {self.shape}")
        out[...] = self.copied(function)
        return out

    def set(self, arr: Any, stream: Any = None) -> None:
        if not isinstance(arr, np.ndarray) or arr.dtype != self.dtype or arr.shape != self.shape:
            raise ValueError(f"cupy.ndarray.set takes an array of {self.dtype} and of the shape {self.shape}")
        self.elements[...] = arr

    @property
    def data(self) -> Constants:
        return Constants("cupy.ndarray.data", ptr=self.address)

    @property
    def flags(self) -> Any:
        return self.readable.flags

    def __getitem__(self, index: Any) -> Any:
        return _wrap(np.asarray(self.readable[_unwrap("ndarray.__getitem__", index, [])]), [self])

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, list | tuple):
            raise TypeError("cupy.ndarray.__setitem__ takes arrays of CuPy and numbers")
        self.elements[_unwrap("ndarray.__setitem__", index, [])] = _unwrap("ndarray.__setitem__", value, [])

    def __reduce__(self) -> tuple[Any, ...]:
        return array, (self.get(),)

    def __iter__(self) -> Iterator[Any]:
        return (self[number] for number in range(len(self)))

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise TypeError("cupy.ndarray.__array__: a conversion to NumPy is not implicit: call get()")

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return self.__array_function__(function if method == "__call__" else None, (), inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        name = getattr(function, "__name__", "ufunc")
        if name not in FUNCTIONS:
            raise TypeError(f"cupy.{name} is not emulated")
        return _function(name, function)(*args, **options)


def _wrap(value: Any, arrays: Sequence[ndarray]) -> Any:
    """Return a result of NumPy as CuPy does: arrays without dimensions for numbers, views of the memory of arrays as such."""
    if isinstance(value, tuple | list):
        return (
            type(value)(_wrap(one, arrays) for one in value)
            if type(value) in (tuple, list)
            else _wrap(tuple(value), arrays)
        )
    if not isinstance(value, np.ndarray | np.generic):
        return value
    for array in arrays:
        if isinstance(value, np.ndarray) and (address := array.place_of(value)) is not None:
            view = ndarray((), value.dtype)
            DeviceElements.__init__(view, address, value.shape, value.dtype, value.strides, array)
            return view
    result = _new(value)
    if result.size:
        result.elements[...] = value
    return result


def _new(form: Any) -> ndarray:
    """Return an array with shape, type and strides of an array of NumPy, in new memory."""
    return ndarray(form.shape, form.dtype, strides=np.empty_like(form).strides)


def _unwrap(name: str, value: Any, arrays: list[ndarray]) -> Any:
    """Return an argument as NumPy takes it, and add its arrays. Raises TypeError for an array of NumPy."""
    if isinstance(value, ndarray):
        arrays.append(value)
        return value.elements
    if isinstance(value, np.ndarray):
        raise TypeError(f"cupy.{name} takes arrays of CuPy, not numpy.ndarray: give cupy.asarray of it")
    if type(value) in (tuple, list):
        return type(value)(_unwrap(name, one, arrays) for one in value)
    return value


def _function(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy for arrays of CuPy."""

    def call(*args: Any, **options: Any) -> Any:
        arrays: list[ndarray] = []
        inputs = [_unwrap(name, one, arrays) for one in args]
        named = {key: _unwrap(name, one, arrays) for key, one in options.items()}
        with np.errstate(all="ignore"):  # a GPU gives no warning
            result = function(*inputs, **named)
        if name in ("empty", "empty_like"):
            return _new(result)
        return options["out"] if isinstance(options.get("out"), ndarray) else _wrap(result, arrays)

    return call


def _method(name: str) -> Callable[..., Any]:
    def call(self: ndarray, *args: Any, **options: Any) -> Any:
        return _function(f"ndarray.{name}", lambda own, *rest, **named: getattr(own, name)(*rest, **named))(
            self, *args, **options
        )

    return call


def _in_place(name: str) -> Callable[..., Any]:
    def apply(self: ndarray, other: Any) -> ndarray:
        value = _unwrap(f"ndarray.__{name}__", other, [])
        with np.errstate(all="ignore"):
            getattr(operator, name)(self.elements, value)
        return self

    return apply


def _operator(name: str) -> Callable[..., Any]:
    def apply(self: ndarray, *operands: Any) -> Any:
        if any(isinstance(other, list | tuple | str) for other in operands):
            return NotImplemented
        return _method(f"__{name}__")(self, *operands)

    return apply


for _name in ("T", "real", "imag"):
    setattr(ndarray, _name, property(lambda self, name=_name: _wrap(getattr(self.readable, name), [self])))  # type: ignore[misc]
for _name in cupy_names.METHODS.split():
    setattr(ndarray, _name, _method(_name))
for _name in cupy_names.OPERATORS.split():
    setattr(ndarray, f"__{_name}__", _operator(_name))
for _name in cupy_names.IN_PLACE.split():
    setattr(ndarray, f"__{_name}__", _in_place(_name))
for _name in cupy_names.CONVERSIONS.split():
    setattr(ndarray, f"__{_name}__", lambda self, kind=f"__{_name}__": getattr(self.readable, kind)())


# ------------------------------------------------------------------ kernels
class RawKernel(Named):
    """A kernel of a CUDA C++ text."""

    def __init__(self, code: str, name: str, options: Sequence[str] = (), backend: str = "nvrtc") -> None:
        text = SourceText.inside(code, sys._getframe(1).f_code.co_filename)
        source = CudaSource(text, tuple(options))
        self._become(name, _kernel("RawKernel", source, name, ()), Variables(source))

    def _become(self, name: str, kernel: CudaKernel, variables: Variables) -> RawKernel:
        """Set the fields. Return the kernel."""
        self.name, self.kernel, self.variables = name, kernel, variables
        self.attributes = FunctionAttributes(kernel.declared_bytes("shared"))
        return self

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        return self.attributes.dynamic_shared(emulated_device())

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        if not self.attributes.set(emulated_device(), MAX_DYNAMIC_SHARED, size):
            raise LaunchError(f"{self.name}: max_dynamic_shared_size_bytes = {size}: invalid argument")

    def compile(self, log_stream: Any = None) -> None:
        """Accept a request to compile; the constructor has read the text."""

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, stream: Any = None) -> None:
        for name, extents in (("grid", grid), ("block", block), ("args", args)):
            if not isinstance(extents, tuple | list):
                raise TypeError(f"RawKernel.__call__ takes {name} as a tuple, not {extents!r}")
        if len(args) != len(self.kernel.parameters):
            raise LaunchError(f"{self.name} takes {len(self.kernel.parameters)} arguments, {len(args)} are given")
        setting = f"set max_dynamic_shared_size_bytes = {shared_mem}"
        self.attributes.require_shared(emulated_device(), self.name, shared_mem, setting)
        inputs = [_argument(parameter, value) for parameter, value in zip(self.kernel.parameters, args, strict=True)]
        launch_by_address(self.kernel, tuple(grid), tuple(block), inputs, self.variables, shared_mem)


class RawModule(Named):
    """The kernels of a CUDA C++ text. name_expressions: instances of templates."""

    def __init__(
        self,
        *,
        code: str,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        name_expressions: Sequence[str] | None = None,
    ) -> None:
        text = SourceText.inside(code, sys._getframe(1).f_code.co_filename)
        self.expressions = tuple(name_expressions or ())
        self.source = CudaSource(text, tuple(options), tuple(name for name in self.expressions if "<" in name))
        self.variables = Variables(self.source)

    def compile(self, log_stream: Any = None) -> None:
        """As that of RawKernel."""

    def get_function(self, name: str) -> RawKernel:
        kernel = _kernel("RawModule", self.source, name, self.expressions)
        return RawKernel.__new__(RawKernel)._become(name, kernel, self.variables)


def _kernel(owner: str, source: CudaSource, name: str, expressions: Sequence[str]) -> CudaKernel:
    """Return a kernel. Raises LaunchError for a name that CuPy does not find in compiled code."""
    kernel = source[name]
    if name not in expressions and kernel.declaration.symbol != name:
        raise LaunchError(f'{owner}: {name} is not declared extern "C", nor one of the name_expressions of a RawModule')
    return kernel


def _argument(parameter: Any, value: Any) -> Any:
    """Return an argument as the driver takes it: an address, or a number. Raises LaunchError for bytes of another meaning."""
    name, type = parameter.name, parameter.type
    if isinstance(value, ndarray):
        return value.address
    if isinstance(value, np.ndarray) and not (isinstance(type, Record) and value.nbytes == type.size):
        raise TypeError(f"{name}: RawKernel takes arrays of CuPy, not numpy.ndarray: give cupy.asarray of it")
    if not isinstance(type, Scalar) or isinstance(value, np.ndarray):
        return value
    if not isinstance(value, np.generic):
        value = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}[value.__class__](value)
    integers = value.dtype.kind in "iu" and type.is_integer and type.size <= value.dtype.itemsize
    if value.dtype != type.dtype and not integers:
        advice = f"give np.{type.dtype}({name})"
        raise LaunchError(f"{name} is {type}, the launch gives {value.dtype}, whose bytes are another number: {advice}")
    return np.frombuffer(value.tobytes()[: type.size], type.dtype)[0]


# ------------------------------------------------------------------ modules
FUNCTIONS = frozenset(cupy_names.FUNCTIONS.split())


def array(obj: Any, dtype: Any = None, copy: bool = True, order: str = "K", ndmin: int = 0) -> ndarray:
    """Return a copy of an array of CuPy, NumPy or Python; with copy=False, an array of CuPy of this type itself."""
    if isinstance(obj, ndarray) and not copy and dtype in (None, obj.dtype) and order == "K":
        return obj
    plain = [one.get() if isinstance(one, ndarray) else one for one in obj] if isinstance(obj, list | tuple) else obj
    source = plain.readable if isinstance(plain, ndarray) else plain
    result: ndarray = _wrap(np.array(source, dtype, order=order, ndmin=ndmin), [])  # type: ignore[call-overload]
    return result


def _asarray(order: str) -> Callable[..., ndarray]:
    """Return a function that copies what is not in device memory, or not in this order."""

    def convert(a: Any, dtype: Any = None) -> ndarray:
        if isinstance(a, ndarray) and dtype in (None, a.dtype) and (order == "K" or a.flags[f"{order}_CONTIGUOUS"]):
            return a
        return array(a, dtype, order=order)

    return convert


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None) -> Any:
    """Return a copy as an array of NumPy, in `out` if it is given."""
    return a._on_host("asnumpy", order, out) if isinstance(a, ndarray) else np.asarray(a)


class _Completed(Named):
    """A stream or an event. Its work is complete."""

    done = True

    def synchronize(self) -> None: ...


class Stream(_Completed):
    """A stream."""

    library = "cupy.cuda.Stream"
    ptr = 0

    def __init__(self, null: bool = False, non_blocking: bool = False) -> None: ...

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None: ...

    def use(self) -> Stream:
        return self

    def wait_event(self, event: Event) -> None: ...

    def record(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event


class Event(_Completed):
    """A point in time of the host."""

    library = "cupy.cuda.Event"

    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        from .pycuda import Event as Recorded

        self.recorded = Recorded()

    def record(self, stream: Any = None) -> None:
        self.recorded.record()


class Device(Named):
    """The emulated device."""

    library = "cupy.cuda.Device"
    id = 0

    def __init__(self, device: int = 0) -> None:
        if device:
            raise LaunchError(f"Device({device}): there is one emulated device, 0")

    @property
    def compute_capability(self) -> str:
        return "".join(map(str, emulated_device().compute_capability))

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *error: object) -> None: ...

    def use(self) -> None: ...

    def synchronize(self) -> None: ...


class MemoryPool(Named):
    """A pool of device memory; freed blocks are not kept."""

    library = "cupy.cuda.MemoryPool"
    malloc = DeviceAllocation

    def __init__(self, allocator: Any = None) -> None: ...

    def free_all_blocks(self, stream: Any = None) -> None: ...

    def n_free_blocks(self) -> int:
        return 0

    def used_bytes(self) -> int:
        return MEMORY.used

    total_bytes = used_bytes


def _typed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy's random module with CuPy's option `dtype`."""

    def call(*args: Any, dtype: Any = None, **options: Any) -> Any:
        numbers = function(*args, **options)
        return numbers if dtype is None else np.asarray(numbers, dtype)

    return call


def _generator(generator: Any) -> dict[str, Callable[..., Any]]:
    """Return the functions of a generator of NumPy's random numbers."""
    names = [key for key in cupy_names.RANDOM.split() if hasattr(generator, key)]
    return {key: _function(f"random.{key}", _typed(getattr(generator, key))) for key in names}


def _assertion(name: str) -> Callable[..., None]:
    """Return an assertion of NumPy for arrays of CuPy and of NumPy."""

    def check(*args: Any, **options: Any) -> None:
        getattr(np.testing, name)(*(asnumpy(one) if isinstance(one, ndarray) else one for one in args), **options)

    return check


def modules() -> dict[str, ModuleType]:
    """Return the modules of CuPy by name, without kernels of expressions."""
    null = Stream()
    result: dict[str, ModuleType] = {}
    cuda = {
        "Stream": type("Stream", (Stream,), {"null": null}), "Event": Event, "Device": Device, "is_available": lambda: True,
        "runtime": Constants("cupy.cuda.runtime", deviceSynchronize=lambda: None, getDeviceCount=lambda: 1, getDevice=lambda: 0),
        "MemoryPool": MemoryPool, "PinnedMemoryPool": MemoryPool, "malloc_managed": MemoryPool.malloc,
        "set_allocator": lambda allocator=None: None,
        "set_pinned_memory_allocator": lambda allocator=None: None, "alloc_pinned_memory": lambda size: np.empty(size, np.uint8),
        "get_elapsed_time": lambda start, end: start.recorded.time_till(end.recorded), "get_current_stream": lambda: null,
    }  # fmt: skip
    own = {
        "fuse": lambda *function, **options: function[0] if function else lambda own: own,
        "memoize": lambda for_each_device=False: cache, "clear_memo": lambda: None,
        "ndarray": ndarray, "array": array, "asarray": _asarray("K"), "asanyarray": _asarray("K"), "copy": array,
        "ascontiguousarray": _asarray("C"), "asfortranarray": _asarray("F"), "asnumpy": asnumpy,
        "get_default_memory_pool": MemoryPool, "get_default_pinned_memory_pool": MemoryPool,
        "RawKernel": RawKernel, "RawModule": RawModule,
        "is_available": lambda: True, "__version__": "13.0", "__path__": [],
        "get_array_module": lambda *args: result["cupy"] if any(isinstance(one, ndarray) for one in args) else np,
    }  # fmt: skip
    for name, words in (("linalg", cupy_names.LINALG), ("fft", cupy_names.FFT)):
        functions = {key: _function(f"{name}.{key}", getattr(getattr(np, name), key)) for key in words.split()}
        result[f"cupy.{name}"] = module(f"cupy.{name}", functions)
    random: dict[str, Any] = {
        "RandomState": lambda seed=None: random["Generator"](np.random.RandomState(seed)),
        "default_rng": lambda seed=None: random["Generator"](np.random.default_rng(seed)),
        "Generator": lambda own: Constants(f"cupy.random.{type(own).__name__}", **_generator(own)),
        **dict.fromkeys(("XORWOW", "MRG32k3a", "Philox4x3210"), np.random.default_rng),
    }
    result["cupy.random"] = module("cupy.random", random | _generator(np.random))
    result["cupy.testing"] = module("cupy.testing", {name: _assertion(name) for name in cupy_names.TESTING.split()})
    result["cupy.cuda"] = module("cupy.cuda", cuda)
    result["cupy.cuda.stream"] = module(
        "cupy.cuda.stream", {name: cuda[name] for name in ("Stream", "Event", "get_current_stream")}
    )
    names = {name: _function(name, getattr(np, name)) for name in FUNCTIONS if hasattr(np, name)}
    result["cupy"] = module("cupy", names | {name: getattr(np, name) for name in cupy_names.CONSTANTS.split()} | own)
    for name, submodule in result.items():
        if "." in name:
            owner, _, own_name = name.rpartition(".")
            setattr(result[owner], own_name, submodule)
    return result
