"""The module `cupy`: NumPy under CuPy's name, with `RawKernel` and `RawModule`. Its other kernels and libraries are missing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from ..cuda_cpp.kernel import CudaKernel, CudaSource
from ..cuda_cpp.places import SourceText
from ..errors import LaunchError
from ..language.types import Scalar
from ..llvmir.debug import PointerTo
from ..runtime.launching import launch
from .pycuda import Event, Inert


class ndarray(np.ndarray):
    """An array of the host with the methods of CuPy's arrays."""

    def get(self, *args: Any, out: Any = None, **options: Any) -> Any:
        if out is None:
            return np.array(self, subok=False)
        out[...] = self
        return out

    def set(self, array: Any, *args: Any) -> None:
        self[...] = array

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.__array_interface__

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.ctypes.data)


def _as_cupy(value: Any) -> Any:
    return value.view(ndarray) if isinstance(value, np.ndarray) and not isinstance(value, ndarray) else value


class _Numpy(ModuleType):
    """A module of NumPy whose functions return CuPy's arrays."""

    def __init__(self, name: str, original: Any) -> None:
        super().__init__(name)
        self.__dict__["_original"] = original

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__dict__["_original"], name)
        if not callable(value) or isinstance(value, type):
            return value

        def call(*args: Any, **options: Any) -> Any:
            return _as_cupy(value(*args, **options))

        return call


class RawKernel:
    """A kernel of a CUDA C++ text."""

    def __init__(self, code: str, name: str, options: Sequence[str] = (), *args: Any, **unused: Any) -> None:
        instances = (name,) if "<" in name else ()
        text = SourceText.inside(code, sys._getframe(1).f_code.co_filename)
        self.kernel = CudaSource(text, tuple(options), instances)[name]

    def compile(self, *args: Any) -> None:
        """Accept a request to compile; the constructor has read the text."""

    def __call__(self, grid: Any, block: Any, args: Sequence[Any], *, shared_mem: int = 0, **options: Any) -> None:
        _launch(self.kernel, grid, block, args, shared_mem)


class RawModule:
    """The kernels of a CUDA C++ text. name_expressions: instances of templates."""

    def __init__(
        self, *, code: str, options: Sequence[str] = (), name_expressions: Sequence[str] | None = None, **unused: Any
    ) -> None:
        text = SourceText.inside(code, sys._getframe(1).f_code.co_filename)
        instances = tuple(name for name in name_expressions or () if "<" in name)
        self.source = CudaSource(text, tuple(options), instances)

    def get_function(self, name: str) -> RawKernel:
        function = RawKernel.__new__(RawKernel)
        function.kernel = self.source[name]
        return function

    def __getattr__(self, name: str) -> Any:
        raise LaunchError(f"RawModule.{name} is not emulated")


def _launch(kernel: CudaKernel, grid: Any, block: Any, args: Sequence[Any], shared: int) -> None:
    names = [parameter.name for parameter in kernel.parameters]
    if len(args) != len(names):
        raise LaunchError(f"{kernel.__name__} takes {', '.join(names) or 'nothing'}: {len(args)} arguments are given")
    inputs = {}
    for parameter, value in zip(kernel.parameters, args, strict=True):
        type = parameter.type
        if isinstance(value, np.ndarray) and isinstance(type, PointerTo):
            inputs[parameter.name] = np.asarray(value).view(np.ndarray)
            continue
        if isinstance(type, Scalar):
            _check_scalar(parameter.name, type, value)
            value = type.dtype.type(value)
        inputs[parameter.name] = value
    result = launch(kernel, grid=tuple(grid), block=tuple(block), args=inputs, shared=shared)
    for name, array in result.buffers.items():
        if isinstance(target := inputs.get(name), np.ndarray):
            target[...] = array


def _check_scalar(name: str, type: Scalar, value: Any) -> None:
    """Raise LaunchError for a number whose first bytes are not the parameter's value: CuPy passes an int as int64, a float as f64."""
    dtype = value.dtype if isinstance(value, np.generic) else np.dtype(float if isinstance(value, float) else np.int64)
    same = dtype == type.dtype
    integers = dtype.kind in "iu" and type.is_integer and type.size <= dtype.itemsize
    if not same and not integers:
        raise LaunchError(
            f"{name} is {type}, the launch gives {dtype}, whose bytes are another number: give np.{type.dtype}({name})"
        )


def _asarray(array: Any, dtype: Any = None, **options: Any) -> ndarray:
    """Return an array of CuPy itself, and a copy of an array of NumPy."""
    copies = not isinstance(array, ndarray)
    result: ndarray = _as_cupy(np.array(array, dtype) if copies else np.asarray(array, dtype))
    return result


def _asnumpy(array: Any, *args: Any, out: Any = None, **options: Any) -> Any:
    """Return a copy as an array of NumPy, in `out` if it is given."""
    return np.asarray(array).view(ndarray).get(out=out)


def _missing(name: str) -> Any:
    def create(*args: Any, **options: Any) -> Any:
        raise LaunchError(f"cupy.{name} is not emulated: RawKernel and RawModule are")

    return create


def modules() -> dict[str, ModuleType]:
    """Return the modules of CuPy by name."""
    cupy = _Numpy("cupy", np)
    cupy.__path__ = []
    runtime = SimpleNamespace(deviceSynchronize=lambda: None, getDeviceCount=lambda: 1)
    cuda = ModuleType("cupy.cuda")
    stream: Any = type(
        "Stream", (Inert,), {"null": Inert(), "__enter__": lambda self: self, "__exit__": lambda self, *args: None}
    )
    vars(cuda).update(
        Stream=stream, Event=Event, Device=Inert, runtime=runtime, get_elapsed_time=lambda a, b: a.time_till(b),
        is_available=lambda: True, get_current_stream=lambda: Inert(),
    )  # fmt: skip
    vars(cupy).update(
        ndarray=ndarray, RawKernel=RawKernel, RawModule=RawModule, cuda=cuda, random=_Numpy("cupy.random", np.random),
        linalg=_Numpy("cupy.linalg", np.linalg), asnumpy=_asnumpy,
        get_array_module=lambda *arrays: cupy if any(isinstance(one, ndarray) for one in arrays) else np,
        asarray=_asarray, __version__="13.0",
        **{name: _missing(name) for name in ("ElementwiseKernel", "ReductionKernel", "fuse")},
    )  # fmt: skip
    return {"cupy": cupy, "cupy.cuda": cuda, "cupy.random": cupy.random}
