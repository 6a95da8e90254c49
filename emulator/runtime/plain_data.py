"""Records of launches as lines of JSON: encoder and decoder of this package's dataclasses. A line contains data, never code.

A line is an object with three members. `name`: of an object that later lines refer to, or null. `objects`: rows of a class name
and the fields of the object, after the rows of the objects in its fields. `value`: a field.
A field is null, a truth value, a number or a text, or a list that begins with a word: `["object", row]`, `["shared", name]`,
`["dict", key, value, ...]`, or another container and its items.
"""

import base64
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from importlib import import_module
from itertools import count
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from ..checked import shown
from ..errors import SimtbedError
from ..ir import nodes
from ..ir.nodes import HostFunction
from ..language.types import SCALARS, Scalar
from ..machine.device import Device
from ..own_code import CubinCode, CudaText
from ..profiler.profile import CountedKernel
from .common_memory import common_memory_of
from .specialisation import Specialisation

_PLAIN = (type(None), bool, int, float, str)
_CONTAINERS: dict[str, type] = {"tuple": tuple, "list": list, "frozenset": frozenset}
_SHARED = (CountedKernel, Specialisation, Device)
"""Classes of objects that many launches share. Each object has a line of its own."""
_ROOT = f"{__package__.partition('.')[0]}."
_PACKAGES = (
    "errors",
    "ir",
    "language",
    "machine",
    "model",
    "own_code",
    "profiler",
    "reports.whatif",
    "runtime",
    "span",
    "testing.comparing",
)
"""Packages with the dataclasses and named tuples that a line may contain."""
_NUMBERS = count()
"""Numbers of the shared objects of this process."""


@cache
def _class(name: str) -> Any:
    """Return the dataclass or named tuple of a name, such as "span.Span". Raises LookupError for others."""
    module, _, own = name.rpartition(".")
    if any(f"{module}.".startswith(f"{package}.") for package in _PACKAGES):
        cls = vars(import_module(_ROOT + module)).get(own)
        if (
            isinstance(cls, type)
            and cls.__module__ == _ROOT + module
            and (is_dataclass(cls) or hasattr(cls, "_fields"))
        ):
            return cls
    raise LookupError(f"{name} is not a class of records")


# ------------------------------------------------------------------ encoder
@dataclass
class Encoder:
    """Encoder of lines. It keeps shared objects, so their identities remain unique."""

    _names: dict[int, tuple[str, Any]] = field(default_factory=dict)

    def lines(self, value: Any) -> list[str]:
        """Return the line of a value, after the lines of shared objects that have none. Raises TypeError for other classes."""
        lines: list[str] = []
        self._add_line(None, value, lines)
        return lines

    def _add_line(self, name: str | None, value: Any, lines: list[str]) -> None:
        rows: list[list[Any]] = []
        numbers: dict[int, tuple[int, Any]] = {}

        def encode(value: Any) -> Any:
            if type(value) in _PLAIN:
                return value
            if type(value) in _CONTAINERS.values():
                return [type(value).__name__, *map(encode, value)]
            if isinstance(value, dict):
                return ["dict", *(encode(item) for pair in value.items() for item in pair)]
            if id(value) in numbers:
                return ["object", numbers[id(value)][0]]
            return ["shared", self._names[id(value)][0]]

        pending = [value] if name else list(_objects(value))
        while pending:  # a loop: expressions nest deeper than Python's stack
            top = pending[-1]
            if id(top) in numbers or (top is not value and self._has_line(top, lines)):
                pending.pop()
                continue
            kind, values = _fields_of(top)
            if missing := [one for one in _objects(values) if id(one) not in numbers and id(one) not in self._names]:
                pending += missing
                continue
            numbers[id(top)] = len(rows), top
            rows.append([kind, *map(encode, values)])
        encoded = ["object", numbers[id(value)][0]] if name else encode(value)
        lines.append(json.dumps({"name": name, "objects": rows, "value": encoded}, separators=(",", ":")))

    def _has_line(self, value: Any, lines: list[str]) -> bool:
        """Return whether a value has a line of its own; add the line of a new shared object."""
        if isinstance(value, _SHARED) and id(value) not in self._names:
            name = f"{os.getpid()}.{next(_NUMBERS)}"
            self._add_line(name, value, lines)
            self._names[id(value)] = name, value
        return id(value) in self._names


def _objects(value: Any) -> Iterator[Any]:
    """Yield the objects in a value, through containers."""
    if isinstance(value, dict):
        value = (item for pair in value.items() for item in pair)
    elif type(value) not in _CONTAINERS.values():
        if type(value) not in _PLAIN:
            yield value
        return
    for item in value:
        yield from _objects(item)


def _fields_of(value: Any) -> tuple[str, Sequence[Any]]:
    """Return the class name and the fields of an object."""
    if isinstance(value, np.ndarray):
        if (memory := common_memory_of(value)) is not None:
            offset = value.ctypes.data - memory.ctypes.data
            return "view", (_dtype_text(value.dtype), value.shape, value.strides, offset, memory)
        return "ndarray", (_dtype_text(value.dtype), value.shape, base64.b64encode(value.tobytes()).decode())
    if isinstance(value, np.generic):
        return "generic", (_dtype_text(value.dtype), base64.b64encode(value.tobytes()).decode())
    if isinstance(value, bytes):
        return "bytes", (base64.b64encode(value).decode(),)
    if isinstance(value, np.dtype):
        return "dtype", (_dtype_text(value),)
    if isinstance(value, Scalar):
        return "Scalar", (value.name,)
    if isinstance(value, Specialisation):
        own = value.own_code if isinstance(value.own_code, CubinCode | CudaText) else None  # others contain functions
        return "Specialisation", (value.program, value.tolerated, own)
    cls: Any = type(value)
    kind = f"{cls.__module__}.{cls.__qualname__}".removeprefix(_ROOT)
    try:
        is_listed = _class(kind) is cls
    except (ImportError, LookupError):
        is_listed = False
    if not is_listed:
        raise TypeError(f"{kind} cannot be recorded")
    values = tuple(value) if isinstance(value, tuple) else [getattr(value, name) for name in _checks(cls)]
    return kind, [None if isinstance(one, HostFunction) else one for one in values]  # a record holds no code


def _dtype_text(dtype: np.dtype[Any]) -> str:
    return "bfloat16" if dtype.name == "bfloat16" else json.dumps(np.lib.format.dtype_to_descr(dtype))


# ------------------------------------------------------------------ decoder
_INVALID = (
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    RecursionError,
    SimtbedError,
    TypeError,
    ValueError,
)
"""Exceptions of content that is not a record."""


@dataclass
class Decoder:
    """Decoder of lines, with the shared objects of earlier ones."""

    _shared: dict[str, Any] = field(default_factory=dict)
    _number: int = 0

    def values(self, lines: Iterable[bytes], kind: Any) -> Iterator[Any]:
        """Yield the values of lines. Raises ValueError, which names the line, for other content. kind: the type of a value."""
        for line in lines:
            self._number += 1
            try:
                content = json.loads(line)
                name, rows, encoded = content["name"], content["objects"], content["value"]
                objects: list[Any] = []
                for class_name, *values in rows:
                    objects.append(_new_object(class_name, [self._decode(item, objects) for item in values]))
                value = self._decode(encoded, objects)
                if name is None and not check(kind)(value):
                    raise ValueError(f"it contains {shown(value)}")
            except _INVALID as error:
                raise ValueError(f"line {self._number} is not a record of a launch: {error}") from None
            if name is None:
                yield value
            else:
                self._shared[name] = value

    def _decode(self, encoded: Any, objects: Sequence[Any]) -> Any:
        if not isinstance(encoded, list):
            return encoded
        word, *items = encoded
        if word == "object":
            return objects[items[0]]
        if word == "shared":
            return self._shared[items[0]]
        values = [self._decode(item, objects) for item in items]
        return dict(zip(values[::2], values[1::2], strict=True)) if word == "dict" else _CONTAINERS[word](values)


def _new_object(kind: str, values: list[Any]) -> Any:
    """Return the object of a row."""
    if kind == "ndarray":
        text, shape, content = values
        return np.frombuffer(bytearray(base64.b64decode(content)), _dtype(text)).reshape(shape)
    if kind == "view":
        text, shape, strides, offset, memory = values
        return np.ndarray(shape, _dtype(text), memory, offset, strides)
    if kind == "generic":
        text, content = values
        return np.frombuffer(base64.b64decode(content), _dtype(text))[0]
    if kind == "bytes":
        return base64.b64decode(values[0])
    if kind == "dtype":
        return _dtype(*values)
    if kind == "Scalar":
        return SCALARS[values[0]]
    if kind == "Specialisation":
        program, tolerated, own = values
        if not isinstance(program, nodes.Program) or not isinstance(own, CubinCode | CudaText | None):
            raise ValueError("a specialisation has no program")
        return Specialisation.of_program(program, frozenset(tolerated), own)
    cls = _class(kind)
    for (name, fits), value in zip(_checks(cls).items(), values, strict=True):
        if not fits(value):
            raise ValueError(f"{kind}.{name} has the wrong type, {type(value).__name__}")
    return cls(**dict(zip(_checks(cls), values, strict=True)))


def _dtype(text: str) -> np.dtype[Any]:
    """Return a dtype from its text. Raises ValueError for one with Python objects."""
    if text == "bfloat16":
        from ml_dtypes import bfloat16  # late: few programs use it

        dtype: np.dtype[Any] = np.dtype(bfloat16)
        return dtype
    dtype = np.lib.format.descr_to_dtype(_description(json.loads(text)))
    if dtype.hasobject:
        raise ValueError("an array contains Python objects")
    return dtype


def _description(content: Any) -> Any:
    """Return NumPy's description of a dtype, which contains tuples."""
    return content if isinstance(content, str) else [(n, _description(d), *map(tuple, rest)) for n, d, *rest in content]


# ------------------------------------------------------------------ types
Check = Callable[[Any], bool]


@cache
def _checks(cls: Any) -> Mapping[str, Check]:
    """Return a check of the type of each field of a dataclass or a named tuple."""
    hints = get_type_hints(cls, include_extras=True)
    names = cls._fields if issubclass(cls, tuple) else [one.name for one in fields(cls) if one.init]
    return {name: check(hints[name]) for name in names}


@cache
def check(hint: Any) -> Check:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value: True
    if origin in (Union, UnionType, Annotated):  # annotated with further types
        checks = [check(one) for one in arguments]
        return lambda value: any(fits(value) for fits in checks)
    if origin is Literal:
        return lambda value: value in arguments
    if hint is float:
        return lambda value: isinstance(value, float | int)
    if origin is tuple and arguments[-1] is not Ellipsis:
        items = [check(one) for one in arguments]
        return lambda value: (
            isinstance(value, tuple)
            and len(value) == len(arguments)
            and all(c(v) for c, v in zip(items, value, strict=True))
        )
    if origin in (tuple, list, frozenset, Sequence):
        item = check(arguments[0])
        kinds = (tuple, list) if origin is Sequence else origin
        return lambda value: isinstance(value, kinds) and all(map(item, value))
    if origin in (dict, Mapping):
        key, item = map(check, arguments)
        return lambda value: isinstance(value, dict) and all(key(k) and item(v) for k, v in value.items())
    kind = origin or hint
    if hasattr(kind, "__value__"):  # a type alias, such as NDArray from NumPy 2.5 on
        return check(kind.__value__)
    if getattr(kind, "_is_protocol", False):  # such objects are not recorded
        return lambda value: False
    return lambda value: isinstance(value, kind)
