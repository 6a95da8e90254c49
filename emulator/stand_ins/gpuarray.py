"""`pycuda.gpuarray`: arrays in the emulated device memory, with NumPy's arithmetic on their elements."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .memory import DeviceElements
from .names import Constants, Named
from .pycuda import DeviceAllocation
from .pycuda_textures import dtype_to_array_format


class GPUArray(DeviceElements, Named):
    """An array in device memory. base: the array of which it is a view. gpudata: its memory, or the address of a view."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, shape: Any, dtype: Any, allocator: Any = DeviceAllocation, base: Any = None, gpudata: Any = None,
        strides: Any = None, order: str = "C",
    ) -> None:  # fmt: skip
        form = np.empty(shape, dtype, order)  # type: ignore[call-overload]
        self.gpudata = allocator(form.nbytes) if gpudata is None and form.size else gpudata
        address = int(self.gpudata) if form.size else 0
        super().__init__(address, form.shape, form.dtype, strides or form.strides, (base, self.gpudata))
        self.allocator, self.base, self.mem_size, self.ptr = allocator, base, form.size, address
        self._grid, self._block = (min(max(-(-form.size // 128), 1), 1024), 1), (128, 1, 1)

    def _view(self, view: Any) -> GPUArray:
        """Return elements of this array as an array in the same memory."""
        return GPUArray(view.shape, view.dtype, self.allocator, self, self.place_of(view), view.strides)

    @property
    def flags(self) -> Constants:
        flags = self.readable.flags
        return Constants(
            "GPUArray.flags", c_contiguous=flags.c_contiguous, f_contiguous=flags.f_contiguous, forc=flags.forc
        )

    def set(self, ary: Any, async_: bool = False, stream: Any = None) -> None:
        self._require_equal("set", ary)
        self.elements[...] = ary.reshape(self.shape)

    def get(self, ary: Any = None, pagelocked: bool = False, async_: bool = False, stream: Any = None) -> Any:
        """Return the elements in their order in memory, or in `ary`."""
        if ary is None:
            return self.copied("get").copy("K")
        self._require_equal("get", ary)
        ary[...] = self.copied("get").reshape(ary.shape)
        return ary

    def set_async(self, ary: Any, stream: Any = None) -> None:
        self.set(ary)

    def get_async(self, stream: Any = None, ary: Any = None) -> Any:
        return self.get(ary)

    def _require_equal(self, name: str, ary: Any) -> None:
        """Raise ValueError unless an array of the host has the size and the type."""
        if not isinstance(ary, np.ndarray) or ary.size != self.size or ary.dtype != self.dtype:
            raise ValueError(f"GPUArray.{name} takes a NumPy array of {self.size} elements of {self.dtype}")

    def _require_contiguous(self, name: str) -> None:
        if not self.flags.forc:
            raise RuntimeError(f"GPUArray.{name}: only contiguous arrays may be used")

    def fill(self, value: Any, stream: Any = None) -> GPUArray:
        self._require_contiguous("fill")
        self.elements[...] = value
        return self

    def copy(self) -> GPUArray:
        return to_gpu(self.readable)

    def astype(self, dtype: Any, stream: Any = None) -> GPUArray:
        self._require_contiguous("astype")
        return to_gpu(self.readable.astype(dtype))

    def view(self, dtype: Any = None) -> GPUArray:
        return self._view(self.readable.view(dtype or self.dtype))

    def reshape(self, *shape: Any, order: Any = "C") -> GPUArray:
        self._require_contiguous("reshape")
        return self._view(np.reshape(self.readable, shape[0] if len(shape) == 1 else shape, order=order, copy=False))

    def ravel(self) -> GPUArray:
        return self.reshape(-1)

    def squeeze(self) -> GPUArray:
        return self._view(self.readable.squeeze())

    def transpose(self, axes: Any = None) -> GPUArray:
        return self._view(self.readable.transpose(axes))

    @property
    def T(self) -> GPUArray:
        return self.transpose()

    def bind_to_texref_ext(self, texref: Any, channels: int = 1, **hacks: bool) -> int:
        """Bind the memory to a texture reference. Doubles and complex numbers are refused, whatever the hacks."""
        self._require_contiguous("bind_to_texref_ext")
        texref.set_format(dtype_to_array_format(self.dtype), channels)
        return texref.set_address(self.gpudata, self.nbytes)  # type: ignore[no-any-return]

    bind_to_texref = bind_to_texref_ext

    def __getitem__(self, index: Any) -> GPUArray:
        entries = index if isinstance(index, tuple) else (index,)
        if not all(isinstance(one, int | np.integer | slice) or one is Ellipsis or one is None for one in entries):
            raise TypeError("GPUArray.__getitem__ takes integers and slices")
        return self._view(self.readable[entries if Ellipsis in entries else (*entries, ...)])

    def __setitem__(self, index: Any, value: Any) -> None:
        target = self[index]
        if np.isscalar(value) or isinstance(value, np.void):
            target.fill(value)
            return
        source = value.readable if isinstance(value, GPUArray) else value
        if source.shape != target.shape or source.dtype != target.dtype:
            raise ValueError(f"GPUArray.__setitem__ takes {target.dtype} of the shape {target.shape}")
        target.elements[...] = source

    def __bool__(self) -> bool:
        return bool(self.readable)


def _operand(name: str, own: GPUArray, other: Any) -> Any:
    """Return an operand as NumPy takes it, NotImplemented for an array of the host. PyCUDA divides integers as C does."""
    if not isinstance(other, GPUArray) and not np.isscalar(other):
        return NotImplemented
    value = other.readable if isinstance(other, GPUArray) else other
    if "truediv" in name and np.result_type(own.readable, value).kind in "iub":
        raise NotImplementedError(f"GPUArray.{name} of integers is not emulated: use astype")
    return value


def _operator(name: str) -> Callable[..., Any]:
    def apply(self: GPUArray, *operands: Any) -> Any:
        values = [_operand(name, self, one) for one in operands]
        if any(value is NotImplemented for value in values):
            return NotImplemented
        return to_gpu(np.asarray(getattr(self.readable, name)(*values)))

    return apply


def _in_place(name: str) -> Callable[..., Any]:
    def apply(self: GPUArray, other: Any) -> Any:
        value = _operand(f"__{name}__", self, other)
        if value is NotImplemented:
            return NotImplemented
        getattr(operator, name)(self.elements, value)
        return self

    return apply


_OPERATORS = "add radd sub rsub mul rmul truediv rtruediv pow rpow neg pos abs eq ne lt le gt ge"
_IN_PLACE = "iadd isub imul itruediv ipow"
_CUMATH = "ceil cos cosh exp fabs floor log log10 sin sinh sqrt tan tanh arcsin arccos arctan"
for _name in ("real", "imag"):
    setattr(GPUArray, _name, property(lambda self, name=_name: to_gpu(getattr(self.readable, name))))  # type: ignore[misc]
for _name in ("conj", "any", "all"):
    setattr(GPUArray, _name, lambda self, name=_name, **options: to_gpu(np.asarray(getattr(self.readable, name)())))
for _name in _OPERATORS.split():
    setattr(GPUArray, f"__{_name}__", _operator(f"__{_name}__"))
for _name in _IN_PLACE.split():
    setattr(GPUArray, f"__{_name}__", _in_place(_name))


# ------------------------------------------------------------------ functions
def to_gpu(ary: Any, allocator: Any = DeviceAllocation) -> GPUArray:
    """Return a copy of an array, with its order of axes in memory."""
    ary = ary.readable if isinstance(ary, GPUArray) else ary
    compact = np.empty_like(ary, order="K", subok=False)
    result = GPUArray(ary.shape, ary.dtype, allocator, strides=compact.strides)
    result.elements[...] = ary
    return result


def _filled(make: Callable[..., Any]) -> Callable[..., GPUArray]:
    """Return a function that creates an array as NumPy's of the same name does."""

    def create(*args: Any, allocator: Any = DeviceAllocation, stream: Any = None, **named: Any) -> GPUArray:
        inputs = [one.readable if isinstance(one, GPUArray) else one for one in args]
        options = {name: value for name, value in named.items() if value is not None}
        return to_gpu(make(*inputs, **options), allocator)

    return create


def _reduced(make: Callable[..., Any]) -> Callable[..., GPUArray]:
    """Return a reduction to an array without dimensions, of the type of the elements."""

    def reduce(
        a: GPUArray, *operands: GPUArray, dtype: Any = None, stream: Any = None, allocator: Any = None
    ) -> GPUArray:
        values = (a.readable, *(other.readable for other in operands))
        return to_gpu(np.asarray(make(*values)).astype(dtype or a.dtype))

    return reduce


def _elementwise(make: Callable[..., Any]) -> Callable[..., GPUArray]:
    """Return a function of arrays and numbers, into `out` if it is given."""

    def compute(*args: Any, out: Any = None, stream: Any = None) -> GPUArray:
        result = make(*(one.readable if isinstance(one, GPUArray) else one for one in args))
        if out is None:
            return to_gpu(np.asarray(result))
        out.elements[...] = result
        return out  # type: ignore[no-any-return]

    return compute


def contents() -> dict[str, Any]:
    """Return the names of `pycuda.gpuarray`."""
    return {
        "GPUArray": GPUArray, "to_gpu": to_gpu, "to_gpu_async": lambda ary, allocator=DeviceAllocation, stream=None: to_gpu(ary, allocator),
        "empty": lambda shape, dtype, allocator=DeviceAllocation, order="C": GPUArray(shape, dtype, allocator, order=order),
        "empty_like": lambda other: GPUArray(other.shape, other.dtype, strides=np.empty_like(other.readable).strides),
        **{name: _filled(getattr(np, name)) for name in ("zeros", "ones", "arange", "zeros_like", "ones_like")},
        **{name: _reduced(getattr(np, name)) for name in ("sum", "max", "min")},
        "dot": _reduced(lambda a, b: np.vdot(a.conj(), b)),
        **{name: _elementwise(getattr(np, name)) for name in ("maximum", "minimum", "where")},
        "if_positive": _elementwise(lambda criterion, then, other: np.where(criterion > 0, then, other)),
    }  # fmt: skip


CUMATH = {name: _elementwise(getattr(np, name)) for name in _CUMATH.split()}
"""The functions of `pycuda.cumath`."""
CUMATH |= {name: CUMATH[f"arc{name[1:]}"] for name in ("asin", "acos", "atan")}
