"""CuPy's kernels of expressions: `ElementwiseKernel` and `ReductionKernel`, generated for the types of their arguments.

Arrays that are broadcast, or whose elements are not contiguous, are copied first: counters are those of contiguous arrays. A
reduction adds in an order of its own, one block for each output element.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..cuda_cpp.kernel import CudaKernel, CudaSource
from ..cuda_cpp.places import SourceText
from .cupy import ndarray
from .memory import Variables, launch_by_address
from .names import Named
from .pycuda_kernels import C_NAMES, MAX_BLOCKS, THREADS

_HEAD = """{include}
template <typename T> struct CArray {{
  T *data; long long count;
  __device__ T &operator[](long long i) const {{ return data[i]; }}
  __device__ long long size() const {{ return count; }}
}};
struct Indexer {{ long long count; __device__ long long size() const {{ return count; }} }};
{types}
{preamble}
"""
_ELEMENTWISE = """extern "C" __global__ void {name}({parameters}, long long _count) {{
  Indexer _ind{{_count}};
  {raw} {prepare};
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < _count; i += gridDim.x * (long long)blockDim.x) {{
    {elements}
    {operation};
  }}
  {finish};
}}
"""
_REDUCTION = """extern "C" __global__ void {name}({parameters}, long long _count) {{
  typedef {type} type_reduce_;
  __shared__ type_reduce_ _sums[{threads}];
  {raw} type_reduce_ _sum = type_reduce_({identity});
  for (long long _j = threadIdx.x; _j < _count; _j += {threads}) {{
    long long i = blockIdx.x * _count + _j;
    {elements}
    type_reduce_ a = _sum, b = type_reduce_({map});
    _sum = type_reduce_({reduce});
  }}
  _sums[threadIdx.x] = _sum;
  for (int _half = {threads} / 2; _half > 0; _half /= 2) {{
    __syncthreads();
    if (threadIdx.x < _half) {{
      type_reduce_ a = _sums[threadIdx.x], b = _sums[threadIdx.x + _half];
      _sums[threadIdx.x] = type_reduce_({reduce});
    }}
  }}
  if (threadIdx.x == 0) {{
    long long i = blockIdx.x;
    {results}
    type_reduce_ a = _sums[0];
    {finish};
  }}
}}
"""


@dataclass(frozen=True)
class _Parameter:
    """type: a name of NumPy, or the letter of a type that follows from the arguments. raw: whether the kernel indexes it."""

    type: str
    name: str
    raw: bool


def _parameters(text: str) -> tuple[_Parameter, ...]:
    """Return the parameters of a declaration such as "T x, raw int32 y". Raises ValueError."""
    result = []
    for word in filter(None, (word.strip() for word in text.split(","))):
        match = re.fullmatch(r"(raw\s+)?(\w+)\s+(\w+)", word)
        if not match or (len(match[2]) > 1 and match[2] not in C_NAMES):
            raise ValueError(
                f"cupy: {word!r} is not a parameter: expected [raw] TYPE NAME, the type of NumPy or one letter"
            )
        result.append(_Parameter(match[2], match[3], bool(match[1])))
    return tuple(result)


class _Generated(Named):
    """A kernel whose text depends on the types of its arguments."""

    def __init__(self, inputs: str, outputs: str, name: str, preamble: str, options: Sequence[str]) -> None:
        self.inputs, self.outputs = _parameters(inputs), _parameters(outputs)
        self.name, self.preamble, self.options = name, preamble, tuple(options)
        self.kernels: dict[str, tuple[CudaKernel, Variables]] = {}

    def _split(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the inputs, and the outputs that are given. Raises TypeError."""
        count, results = len(self.inputs), len(self.outputs)
        if len(args) not in (count, count + results):
            raise TypeError(f"{self.name} takes {count} or {count + results} arguments, {len(args)} are given")
        for parameter, value in zip((*self.inputs, *self.outputs), args, strict=False):
            if isinstance(value, np.ndarray):
                raise TypeError(f"{self.name}: {parameter.name} is an array of NumPy: give cupy.asarray of it")
        return list(args[:count]), list(args[count:])

    def _types(self, args: Sequence[Any]) -> dict[str, np.dtype[Any]]:
        """Return the types by name. Raises TypeError for arrays of other types than their parameters', and for a type that does not
        follow."""
        parameters = (*self.inputs, *self.outputs)
        types = {p.type: np.dtype(p.type) for p in parameters if len(p.type) > 1}
        for parameter, value in sorted(
            zip(parameters, args, strict=False), key=lambda own: not isinstance(own[1], ndarray)
        ):
            own = value.dtype if isinstance(value, ndarray) else np.asarray(value).dtype
            type = types.setdefault(parameter.type, own)
            if isinstance(value, ndarray) and own != type:
                raise TypeError(f"{self.name}: {parameter.name} is {type}, the array has elements of {own}")
        missing = [p.type for p in parameters if p.type not in types]
        if missing:
            raise TypeError(f"{self.name}: the type {missing[0]} does not follow from the arguments")
        return types

    def _text(self, body: str, types: dict[str, np.dtype[Any]], **pieces: str) -> str:
        names = {name: C_NAMES.get(type.name, "") for name, type in types.items()}
        if unknown := [str(types[name]) for name, own in names.items() if not own]:
            raise TypeError(f"{self.name}: elements of {unknown[0]} are not emulated")
        head = _HEAD.format(
            include="#include <pycuda-complex.hpp>" if any("complex" in own for own in names.values()) else "",
            types="\n".join(f"typedef {own} {name};" for name, own in names.items() if len(name) == 1),
            preamble=self.preamble,
        )
        return head + body.format(name=self.name, **pieces)

    def _run(self, text: str, blocks: int, args: Sequence[Any]) -> None:
        if text not in self.kernels:
            source = CudaSource(SourceText.inside(text, ""), self.options)
            self.kernels[text] = source[self.name], Variables(source)
        kernel, variables = self.kernels[text]
        launch_by_address(kernel, (blocks,), (THREADS, 1, 1), args, variables)


def _declared(
    parameters: Sequence[_Parameter], values: Sequence[Any], types: dict[str, np.dtype[Any]], constant: bool
) -> tuple[list[str], str, str, list[Any]]:
    """Return the declarations of parameters, the statements of raw and of other arrays, and the arguments of a launch."""
    declarations, raw, elements, args = [], "", "", []
    for parameter, value in zip(parameters, values, strict=True):
        own, name = C_NAMES.get(types[parameter.type].name, ""), parameter.name
        if not isinstance(value, ndarray):
            declarations.append(f"{own} {name}")
            args.append(types[parameter.type].type(value))
            continue
        declarations.append(f"{own} *_{name}")
        args.append(value.address)
        if parameter.raw:
            raw += f"CArray<{own}> {name}{{_{name}, {value.size}}}; "
        else:
            elements += f"{'const ' * constant}{own} &{name} = _{name}[i]; "
    return declarations, raw, elements, args


def _contiguous(value: ndarray, shape: tuple[int, ...]) -> ndarray:
    """Return an array, or a copy of it, with elements of this shape in the order of C."""
    if value.shape == shape and value.readable.flags.c_contiguous:
        return value
    copy = ndarray(shape, value.dtype)
    if copy.size:
        copy.elements[...] = np.broadcast_to(value.readable, shape)
    return copy


class ElementwiseKernel(_Generated):
    """A statement for each element of arrays that are broadcast."""

    library = "cupy.ElementwiseKernel"

    def __init__(
        self, in_params: str, out_params: str, operation: str, name: str = "kernel", reduce_dims: bool = True,
        preamble: str = "", **other: Any,
    ) -> None:  # fmt: skip
        """other: no_return, return_tuple, options, loop_prep, after_loop."""
        super().__init__(in_params, out_params, name, preamble, other.pop("options", ()))
        self.operation, self.prepare, self.finish = operation, other.pop("loop_prep", ""), other.pop("after_loop", "")
        self.no_return, self.return_tuple = other.pop("no_return", False), other.pop("return_tuple", False)
        _refuse(other)

    def __call__(self, *args: Any, size: int | None = None, stream: Any = None, block_size: int = THREADS) -> Any:
        inputs, outputs = self._split(args)
        shapes = [v.shape for p, v in zip((*self.inputs, *self.outputs), args, strict=False) if _is_element(p, v)]
        if size is None and not shapes:
            raise ValueError(f"{self.name}: the size does not follow from the arguments: give size=")
        shape = np.broadcast_shapes(*shapes) if size is None else (size,)
        types = self._types(args)
        ready = [_contiguous(v, v.shape if p.raw else shape) if isinstance(v, ndarray) else v
                 for p, v in zip(self.inputs, inputs, strict=True)]  # fmt: skip
        results = outputs or [ndarray(shape, types[p.type]) for p in self.outputs]
        for parameter, value in zip(self.outputs, results, strict=True):
            if not parameter.raw and value.shape != shape:
                raise ValueError(
                    f"{self.name}: {parameter.name} has the shape {value.shape}, the arguments give {shape}"
                )
        written = [_contiguous(value, value.shape) for value in results]
        first, raw, elements, own = _declared(self.inputs, ready, types, True)
        last, raw_out, elements_out, own_out = _declared(self.outputs, written, types, False)
        count = math.prod(shape)
        text = self._text(
            _ELEMENTWISE, types, parameters=", ".join(first + last), raw=raw + raw_out, elements=elements + elements_out,
            operation=self.operation, prepare=self.prepare, finish=self.finish,
        )  # fmt: skip
        if count:
            self._run(text, min(-(-count // THREADS), MAX_BLOCKS), [*own, *own_out, np.int64(count)])
        for value, copy in zip(results, written, strict=True):
            if value is not copy:
                value.elements[...] = copy.elements
        if self.no_return:
            return None
        return results[0] if len(results) == 1 and not self.return_tuple else tuple(results)


def _refuse(other: dict[str, Any]) -> None:
    if other:
        raise TypeError(f"cupy: {next(iter(other))} is no argument of a kernel")


def _is_element(parameter: _Parameter, value: Any) -> bool:
    return isinstance(value, ndarray) and not parameter.raw


class ReductionKernel(_Generated):
    """A reduction of the elements of arrays over axes."""

    library = "cupy.ReductionKernel"

    def __init__(
        self, in_params: str, out_params: str, map_expr: str, reduce_expr: str, post_map_expr: str, identity: Any,
        name: str = "reduce_kernel", **other: Any,
    ) -> None:  # fmt: skip
        """other: reduce_type, reduce_dims, preamble, options."""
        super().__init__(in_params, out_params, name, other.pop("preamble", ""), other.pop("options", ()))
        self.map, self.reduce, self.finish = map_expr, reduce_expr, post_map_expr
        self.identity, self.type = identity, other.pop("reduce_type", None) or self.outputs[0].type
        other.pop("reduce_dims", None)
        _refuse(other)

    def __call__(
        self, *args: Any, out: Any = None, axis: Any = None, keepdims: bool = False, stream: Any = None
    ) -> ndarray:
        inputs, outputs = self._split(args if out is None else (*args, out))
        shape = np.broadcast_shapes(*(v.shape for p, v in zip(self.inputs, inputs, strict=True) if _is_element(p, v)))
        chosen = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
        axes = tuple(sorted(one % len(shape) for one in chosen))
        remaining = tuple(one for one in range(len(shape)) if one not in axes)
        types = self._types((*inputs, *outputs))
        ready = [self._arranged(v, shape, remaining + axes) if _is_element(p, v) else v
                 for p, v in zip(self.inputs, inputs, strict=True)]  # fmt: skip
        expected = tuple(1 if one in axes else shape[one] for one in range(len(shape)) if keepdims or one in remaining)
        result = outputs[0] if outputs else ndarray(expected, types[self.outputs[0].type])
        if result.shape != expected:
            raise ValueError(f"{self.name}: out has the shape {result.shape}, the arguments give {expected}")
        written = _contiguous(result, expected)
        first, raw, elements, own = _declared(self.inputs, ready, types, True)
        last, _, results, own_out = _declared(self.outputs, [written], types, False)
        text = self._text(
            _REDUCTION, types, parameters=", ".join(first + last), raw=raw, elements=elements, results=results,
            type=C_NAMES.get(self.type, self.type), threads=str(THREADS), identity=str(self.identity), map=self.map,
            reduce=self.reduce, finish=self.finish,
        )  # fmt: skip
        if result.size:
            self._run(text, result.size, [*own, *own_out, np.int64(math.prod(shape[one] for one in axes))])
        if result is not written:
            result.elements[...] = written.elements
        return result

    @staticmethod
    def _arranged(value: ndarray, shape: tuple[int, ...], order: tuple[int, ...]) -> ndarray:
        """Return a copy with the reduced axes last; the array itself where they are."""
        if value.shape == shape and order == tuple(range(len(shape))):
            return _contiguous(value, shape)
        elements = np.broadcast_to(value.readable, shape).transpose(order)
        copy = ndarray(elements.shape, value.dtype)
        copy.elements[...] = elements
        return copy
