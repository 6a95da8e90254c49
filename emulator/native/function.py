"""Calling a native function: its code found or made when first needed, its arguments checked, no lock held."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

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
from ..llvm.compiler import LOOPS, NATIVE, Library, ModuleText, compiled

_Nothing: Any = ctypes.c_char * 0


class Fixed:
    """An array that is checked and whose address is looked up once, not at every call. It keeps the array."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array, self.dtype, self.writeable = array, array.dtype, array.flags.writeable
        if array.ndim != 1 or not array.flags.c_contiguous or not array.flags.aligned:
            raise LaunchError(f"a native function takes contiguous arrays of one dimension, not of shape {array.shape}")
        self.first = array.ctypes.data
        self.last = self.first + array.nbytes


def fixed(*arrays: npt.NDArray[Any]) -> tuple[Fixed, ...]:
    """Arrays for many calls of native functions. Raises LaunchError if two of them overlap."""
    found = tuple(Fixed(array) for array in arrays)
    for a, b in combinations(found, 2):
        if a.first < b.last and b.first < a.last:
            raise LaunchError("arrays that are fixed together do not overlap")
    return found


@dataclass(frozen=True)
class _Parameter:
    """A parameter that is not Const. written: whether the function stores to it, an array."""

    name: str
    type: str
    array: bool
    written: bool = False


@dataclass(frozen=True)
class _Code:
    """Machine code of a function, ready to be called."""

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
        """Of each parameter its name, dtype, whether it is written, and, of a number, what checks it."""
        return [
            (p.name, np.dtype(SCALARS[p.type].dtype), p.written, None if p.array else _number(p))
            for p in self.parameters
        ]


class Native(DeviceFunction):
    """What `@native` makes: a device function that the host may call too.

    Arrays are NumPy arrays of exactly the element's type, contiguous, of one dimension, and do not overlap where one is
    written; they are not checked for bounds. Numbers are checked for range. Const parameters specialise the function.
    A parameter may be a named tuple of arrays (annotated `Global[...]`) and numbers.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._codes: dict[tuple[Any, ...], _Code] = {}

    def __call__(self, *given: Any) -> Any:
        """Run it, without the interpreter's lock. Raises LaunchError for arguments that do not fit."""
        if self._const_places:
            consts = tuple(v for n, v in enumerate(given) if n in self._const_places)
            given = tuple(v for n, v in enumerate(given) if n not in self._const_places)
        else:
            consts = ()
        if len(given) + len(consts) != len(self.names):
            raise LaunchError(f"{self.__name__} takes {len(self.names)} arguments: {', '.join(self.names)}")
        code = self._code(consts)
        plan = code.plan
        if len(plan) != len(given):
            given = self._leaves(given, len(plan))
        values: list[Any] = []
        spans: list[tuple[int, int, bool]] = []
        for value, (name, dtype, stored, number) in zip(given, plan, strict=True):
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
                first = ctypes.addressof(_Nothing.from_buffer(value))
            elif flags.c_contiguous and flags.aligned and not stored:
                first = value.ctypes.data
            else:
                raise self._wrong(name, dtype, stored)
            values.append(first)
            spans.append((first, first + value.nbytes, stored))
        if len(spans) > 1:
            self._apart(spans)
        result = code.call(*values)
        return bool(result) if code.result == "bool" else result

    def _leaves(self, given: tuple[Any, ...], expected: int) -> tuple[Any, ...]:
        """Return the arguments with named tuples replaced by their fields. Raises LaunchError unless there are `expected`."""
        leaves = tuple(leaf for value in given for leaf in (value if isinstance(value, tuple) else (value,)))
        if len(leaves) != expected:
            raise LaunchError(f"{self.__name__} takes {expected} arrays and numbers, got {len(leaves)}")
        return leaves

    def address(self, *consts: Any) -> int:
        """Return the address of the machine code: arrays are pointers, a bool is a byte, a named tuple is its fields."""
        return self._code(consts).library.address

    def _wrong(self, name: str, dtype: np.dtype[Any], stored: bool) -> LaunchError:
        wanted = "contiguous, writeable" if stored else "contiguous"
        return LaunchError(f"{self.__name__}: {name} is a {wanted} array of {dtype}, of one dimension")

    def _apart(self, spans: Sequence[tuple[int, int, bool]]) -> None:
        for (a, a_end, a_stored), (b, b_end, b_stored) in combinations(spans, 2):
            if (a_stored or b_stored) and a < b_end and b < a_end:
                raise LaunchError(f"{self.__name__}: an array that is written overlaps another one")

    @cached_property
    def _const_places(self) -> frozenset[int]:
        """Which parameters are Const."""
        annotations = self.function.__annotations__
        found = [annotations.get(name) for name in self.names]
        return frozenset(n for n, a in enumerate(found) if a is Const or str(a).rpartition(".")[2] == "Const")

    @cached_property
    def names(self) -> Sequence[str]:
        """Of its parameters."""
        code = self.function.__code__
        return code.co_varnames[: code.co_argcount]

    def _code(self, consts: tuple[Any, ...]) -> _Code:
        if consts not in self._codes:
            # Of two threads one keeps its code: the address of the other's may be in use already.
            self._codes.setdefault(consts, self._compiled(consts))
        return self._codes[consts]

    def _compiled(self, consts: tuple[Any, ...]) -> _Code:
        named = dict(zip((self.names[n] for n in sorted(self._const_places)), consts, strict=True))

        def make() -> tuple[bytes, ModuleText]:
            from .specialised import prepared, written  # late: only where the disk has no code of it
            from .text import module

            function = prepared(self, named)
            stored = written(function)
            parameters = []
            for param in function.params:
                array = isinstance(param.type, Array)
                element = param.type.element if isinstance(param.type, Array) else param.type
                parameters.append((Name.of(param.name).user, element.name, array, param.name in stored))
            result = None if function.result is None else function.result.name
            if {"f16", "bf16"} & {result, *(element for _, element, array, _ in parameters if not array)}:
                raise LaunchError(f"{self.__name__}: halves go to a native function in arrays, not by value")
            return json.dumps([parameters, result]).encode(), module(function)

        found = digest(self)
        key = None if found is None else ("native", found.key, repr(consts), disk_cache.edition())
        (parameters, result), library = compiled(key, make, NATIVE, _described, passes=LOOPS)
        return _Code(library, parameters, result)


def _described(metadata: bytes) -> tuple[list[_Parameter], str | None]:
    """Parameters and result, as they are kept beside the code."""
    parameters, result = json.loads(metadata)
    return [_Parameter(*p) for p in parameters], result


def native(function: Callable[..., Any]) -> Native:
    """Mark a function as compiled for the host: one thread that loops over arrays. Parameters and result are annotated."""
    return Native(function)


def _number(parameter: _Parameter) -> Callable[[Any], Any]:
    """What checks a number and gives it to ctypes."""
    type: Scalar = SCALARS[parameter.type]
    name = parameter.name
    if type.is_float:
        return float
    low, high = type.range if type.is_integer else (0, 1)
    kinds: Any = (int, np.integer) if type.is_integer else (bool, np.bool_)

    def take(given: Any) -> Any:
        if not isinstance(given, kinds) or not low <= given <= high:
            raise LaunchError(f"{name} is {type}, not {given!r}")
        return int(given)

    return take
