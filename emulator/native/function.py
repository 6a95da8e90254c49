"""Calls of native functions: code loaded or compiled at the first call, arguments checked, no interpreter lock."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from .. import disk_cache
from ..errors import LaunchError
from ..frontend.digest import digest
from ..ir.names import Name
from ..language.functions import DeviceFunction
from ..language.hints import Const
from ..language.types import SCALARS, Array, Scalar
from ..llvm.c_types import C_TYPES

if TYPE_CHECKING:  # LLVM takes 0.05 s to load: a launch on a GPU needs none
    from ..llvm.compiler import Library, ModuleText

T = TypeVar("T")
_EmptyBuffer: Any = ctypes.c_char * 0


class Fixed:
    """An array checked once, with its address, for repeated calls. It keeps a reference to the array."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array, self.dtype, self.writeable = array, array.dtype, array.flags.writeable
        if array.ndim != 1 or not array.flags.c_contiguous or not array.flags.aligned:
            raise LaunchError(f"a native function takes contiguous arrays of one dimension, not of shape {array.shape}")
        self.first = array.ctypes.data
        self.last = self.first + array.nbytes


def fixed(*arrays: npt.NDArray[Any]) -> tuple[Fixed, ...]:
    """Return arrays for many calls of native functions. Raises LaunchError if two of them overlap."""
    result = tuple(Fixed(array) for array in arrays)
    for a, b in combinations(result, 2):
        if a.first < b.last and b.first < a.last:
            raise LaunchError("arrays that are fixed together do not overlap")
    return result


@dataclass(frozen=True)
class _Parameter:
    """A parameter other than Const. written: whether the function stores to the array."""

    name: str
    type: str
    array: bool
    stored_arrays: bool = False


@dataclass(frozen=True)
class _Code:
    """Machine code of a function, ready to call."""

    library: Library
    parameters: Sequence[_Parameter]
    result: str | None

    @cached_property
    def call(self) -> Any:
        types = [ctypes.c_void_p if p.array else C_TYPES[p.type] for p in self.parameters]
        result = None if self.result is None else C_TYPES[self.result]
        return ctypes.CFUNCTYPE(result, *types)(self.library.address)

    @cached_property
    def plan(self) -> Sequence[tuple[str, Any, bool, Callable[[Any], Any] | None]]:
        """Name, dtype and write access of each parameter, and the checker of each number."""
        return [
            (p.name, np.dtype(SCALARS[p.type].dtype), p.stored_arrays, None if p.array else _number(p))
            for p in self.parameters
        ]


class Native(DeviceFunction):
    """A device function that the host may call, the result of `@native`.

    Arrays are contiguous one-dimensional NumPy arrays of exactly the element's type; a written array must not
    overlap another. Accesses are not checked for bounds. Numbers are checked for range. Const parameters specialise
    the function. A parameter may be a named tuple of arrays (annotated `Global[...]`), numbers and named tuples.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._codes: dict[tuple[Any, ...], _Code] = {}

    def __call__(self, *args: Any) -> Any:
        """Run the function without the interpreter lock. Raises LaunchError for wrong arguments."""
        if self._const_positions:
            consts = tuple(v for n, v in enumerate(args) if n in self._const_positions)
            args = tuple(v for n, v in enumerate(args) if n not in self._const_positions)
        else:
            consts = ()
        if len(args) + len(consts) != len(self.names):
            raise LaunchError(f"{self.__name__} takes {len(self.names)} arguments: {', '.join(self.names)}")
        code = self._code(consts)
        plan = code.plan
        if len(plan) != len(args):
            args = self._leaves(args, len(plan))
        values: list[Any] = []
        spans: list[tuple[int, int, bool]] = []
        for value, (name, dtype, stored, number) in zip(args, plan, strict=True):
            if number is not None:
                values.append(number(value))
                continue
            if type(value) is Fixed:
                if value.dtype != dtype or (stored and not value.writeable):
                    raise self._wrong(name, dtype, stored)
                values.append(value.first)
                continue
            if not isinstance(value, np.ndarray) or value.dtype != dtype or value.ndim != 1:
                raise self._wrong(name, dtype, stored)
            flags = value.flags
            if flags.carray:
                first = ctypes.addressof(_EmptyBuffer.from_buffer(value))
            elif flags.c_contiguous and flags.aligned and not stored:
                first = value.ctypes.data
            else:
                raise self._wrong(name, dtype, stored)
            values.append(first)
            spans.append((first, first + value.nbytes, stored))
        if len(spans) > 1:
            self._check_overlap(spans)
        result = code.call(*values)
        return bool(result) if code.result == "bool" else result

    def _leaves(self, args: tuple[Any, ...], expected: int) -> tuple[Any, ...]:
        """Return the arguments with named tuples replaced by their fields. Raises LaunchError unless there are `expected`."""
        leaves = tuple(flattened(args))
        if len(leaves) != expected:
            raise LaunchError(f"{self.__name__} takes {expected} arrays and numbers, got {len(leaves)}")
        return leaves

    def address(self, *consts: Any) -> int:
        """Return the address of the machine code: arrays are pointers, a bool is a byte, a named tuple is its fields."""
        return self._code(consts).library.address

    def _wrong(self, name: str, dtype: np.dtype[Any], stored: bool) -> LaunchError:
        requirement = "contiguous, writeable" if stored else "contiguous"
        return LaunchError(f"{self.__name__}: {name} is a {requirement} array of {dtype}, of one dimension")

    def _check_overlap(self, spans: Sequence[tuple[int, int, bool]]) -> None:
        for (a, a_end, a_stored), (b, b_end, b_stored) in combinations(spans, 2):
            if (a_stored or b_stored) and a < b_end and b < a_end:
                raise LaunchError(f"{self.__name__}: an array that is written overlaps another one")

    @cached_property
    def _const_positions(self) -> frozenset[int]:
        """Positions of the Const parameters."""
        annotations = self.function.__annotations__
        values = [annotations.get(name) for name in self.names]
        return frozenset(n for n, a in enumerate(values) if a is Const or str(a).rpartition(".")[2] == "Const")

    @cached_property
    def names(self) -> Sequence[str]:
        """Names of the parameters."""
        code = self.function.__code__
        return code.co_varnames[: code.co_argcount]

    def _code(self, consts: tuple[Any, ...]) -> _Code:
        if consts not in self._codes:
            # The first of two threads stores its code: its address may be in use already.
            self._codes.setdefault(consts, self._compiled(consts))
        return self._codes[consts]

    def _compiled(self, consts: tuple[Any, ...]) -> _Code:
        from ..llvm.compiler import LOOPS, NATIVE, compiled

        named = dict(zip((self.names[n] for n in sorted(self._const_positions)), consts, strict=True))

        def make() -> tuple[bytes, ModuleText]:
            from .lowering import lower_native, stored_arrays  # late: only for code missing from the disk cache
            from .text import module

            function = lower_native(self, named)
            stored = stored_arrays(function)
            parameters = []
            for param in function.params:
                array = isinstance(param.type, Array)
                element = param.type.element if isinstance(param.type, Array) else param.type
                parameters.append((Name.parse(param.name).user, element.name, array, param.name in stored))
            result = None if function.result is None else function.result.name
            if {"f16", "bf16"} & {result, *(element for _, element, array, _ in parameters if not array)}:
                raise LaunchError(f"{self.__name__}: pass halves to a native function in arrays, not by value")
            return json.dumps([parameters, result]).encode(), module(function)

        source = self._source()
        key = None if source is None else ("native", source, repr(consts), disk_cache.edition())
        (parameters, result), library = compiled(key, make, NATIVE, _described, passes=LOOPS)
        return _Code(library, parameters, result)

    def _source(self) -> str | None:
        """Return a digest of the function's dependencies, beside the edition of the emulator; None if unknown."""
        module, name = self.function.__module__, self.function.__qualname__
        if disk_cache.edition_covers(module) and "<" not in name:  # of a function of the emulator: its name
            return f"{module}.{name}"
        own = digest(self)
        return None if own is None else own.key


def _described(metadata: bytes) -> tuple[list[_Parameter], str | None]:
    """Return parameters and result from the metadata stored with the code."""
    parameters, result = json.loads(metadata)
    return [_Parameter(*p) for p in parameters], result


def record(kind: Callable[..., T], *fields: Any) -> T:
    """Return a named tuple of arrays and numbers for a native function."""
    return kind(*fields)


def flattened(values: Iterable[Any]) -> Iterator[Any]:
    """Yield values, the fields of tuples in their place."""
    for value in values:
        if isinstance(value, tuple):
            yield from flattened(value)
        else:
            yield value


def native(function: Callable[..., Any]) -> Native:
    """Mark a function as compiled for the host: one thread, loops over arrays, annotated parameters and result."""
    return Native(function)


def _number(parameter: _Parameter) -> Callable[[Any], Any]:
    """Return the function that checks a number and converts it for ctypes."""
    type: Scalar = SCALARS[parameter.type]
    name = parameter.name
    if type.is_float:
        return float
    low, high = type.range if type.is_integer else (0, 1)
    kinds: Any = (int, np.integer) if type.is_integer else (bool, np.bool_)

    def take(value: Any) -> Any:
        if not isinstance(value, kinds) or not low <= value <= high:
            raise LaunchError(f"{name} is {type}, not {value!r}")
        return int(value)

    return take
