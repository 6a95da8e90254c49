"""What a function's program depends on, found without reading the function: the key under which its code is kept."""

from __future__ import annotations

import builtins
import hashlib
import inspect
import linecache
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum, EnumMeta
from functools import cache, cached_property
from operator import is_, itemgetter
from types import CodeType, ModuleType
from typing import Any, get_args, get_origin

import numpy as np

from ..language import atomics, bits, hints, intrinsics, maths, warps
from ..language.functions import SourceFunction
from .constants import MAX_TUPLE, field_annotations, is_record, is_struct
from .source import MISSING, free_value

_WORDS = re.compile(
    r"""(?P<long>\"{3}.*?\"{3}|'{3}.*?'{3}) | (?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*') | \#[^\n]*
    | (?<![\w.])(?P<name>[^\W\d]\w*(?:\s*\.\s*[^\W\d]\w*)*)""",
    re.DOTALL | re.VERBOSE,
)
_DEFINITION = re.compile(r"^[ \t]*def\b", re.MULTILINE)


class _Unknown(Exception):
    """Something of which it is not known what it stands for in a program."""


@dataclass(frozen=True)
class Digest:
    """key: the digest. places: file and line of each function that was read, which are no part of it.

    values: (function, name by its parts, object) of each name that was looked up outside of its function, once: every
    launch looks them up again.
    """

    key: str
    places: str
    values: Sequence[tuple[SourceFunction, Sequence[str], Any]]

    @property
    def stale(self) -> bool:
        """Whether a name stands for another object by now."""
        spaces, indirect = self._spaces
        return any(space.stale for space in spaces) or any(
            _value(source, path) is not value for source, path, value in indirect
        )

    @cached_property
    def _spaces(self) -> tuple[list[_ModuleNames], list[_Named]]:
        """The modules in which names are looked up, and the names that are looked up elsewhere. Launches ask often, so the
        names of a module are looked up together."""
        spaces: dict[int, _ModuleNames] = {}
        indirect = []
        for source, path, value in self.values:
            steps = _steps(source, path)
            if steps is None or steps[-1][2] is not value:
                indirect.append((source, path, value))
                continue
            for names, name, value in steps:
                spaces.setdefault(id(names), _ModuleNames(names)).values[name] = value
        return list(spaces.values()), indirect


_Named = tuple[SourceFunction, Sequence[str], Any]


@dataclass(frozen=True)
class _ModuleNames:
    """What names of a module stand for: MISSING where it has none."""

    names: dict[str, Any]
    values: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def _lookup(self) -> tuple[Callable[[dict[str, Any]], tuple[Any, ...]], tuple[Any, ...], frozenset[str]]:
        """What looks up those that are there, what it finds, and those that are not there."""
        present = {name: value for name, value in self.values.items() if value is not MISSING}
        return _getter(list(present)), tuple(present.values()), frozenset(self.values.keys() - present.keys())

    @property
    def stale(self) -> bool:
        getter, values, absent = self._lookup
        try:
            return not (all(map(is_, getter(self.names), values)) and self.names.keys().isdisjoint(absent))
        except KeyError:
            return True


def _steps(source: SourceFunction, path: Sequence[str]) -> list[tuple[dict[str, Any], str, Any]] | None:
    """The modules in which `_value` looks, the names and what they stand for there; None where it looks elsewhere."""
    space = source.function.__globals__
    if path[0] in source.function.__code__.co_freevars:
        return None
    steps = []
    if path[0] not in space:
        steps.append((space, path[0], MISSING))
        space = vars(builtins)
    for attribute in path:
        value = space.get(attribute, MISSING)
        if value is MISSING and attribute != path[0]:
            return None  # a module may make it when it is asked
        steps.append((space, attribute, value))
        if not isinstance(value, ModuleType):
            break
        space = vars(value)
    return steps


def _getter(names: list[str]) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    """What takes the values of names out of a module. It raises KeyError where one is not there."""
    if len(names) < 2:  # itemgetter gives no tuple
        return lambda space: tuple(space[name] for name in names)
    return itemgetter(*names)


def digest(function: SourceFunction) -> Digest | None:
    """A digest that differs wherever the front end may make another program of the function, but for its spans.

    It is of the function's text and of what the names in it stand for, the functions it calls included; of Python's
    version, whose syntax this is. Const parameters and Real are no part of it, nor is the emulator's own edition. None where a name
    stands for something unknown, or where the text is not at hand.
    """
    try:
        reading = _Reading()
        pieces = list(reading.function(function))
    except _Unknown:
        return None
    key = hashlib.sha256("\0".join([sys.version, *pieces]).encode()).hexdigest()
    return Digest(key, repr(reading.places), list(reading.values.values()))


class _Reading:
    """What is read of a function and of those that it calls."""

    def __init__(self) -> None:
        self.visited: set[int] = set()
        self.places: list[tuple[str, int]] = []
        self.values: dict[tuple[int, str], tuple[SourceFunction, Sequence[str], Any]] = {}

    def function(self, source: SourceFunction) -> Iterator[str]:
        if id(source) in self.visited:
            return
        self.visited.add(id(source))
        code = source.function.__code__
        text = _text(code)
        self.places.append((code.co_filename, code.co_firstlineno))
        yield f"{type(source).__name__} {code.co_name} {text}"
        local = {*code.co_varnames, *code.co_cellvars}
        names = set(_names(text[_body(text) :]))
        for name in sorted(names):
            if name.partition(".")[0] not in local:
                yield name
                yield from self.named(source, name)
        for default in source.defaults.values():
            yield from self.object(default)
        for annotation in sorted(map(str, source.function.__annotations__.values())):  # outside of the function's scope
            for name in _names(annotation):
                yield name
                yield from self.named(source, name)

    def named(self, source: SourceFunction, name: str) -> Iterator[str]:
        path = name.split(".")
        value = _value(source, path)
        self.values[id(source), name] = (source, path, value)
        yield from self.object(value)

    def object(self, value: Any) -> Iterator[str]:
        """What tells an object from others, as the front end sees it."""
        if value is MISSING:
            yield "missing"
        elif isinstance(value, SourceFunction):
            yield from self.function(value)
        elif value is None or type(value) in (bool, int, str, bytes):
            yield f"{type(value).__name__} {value!r}"
        elif type(value) is float:
            yield f"float {value.hex()}"
        elif isinstance(value, np.generic):
            yield f"{value.dtype.str} {value.tobytes().hex()}"
        elif isinstance(value, Enum):
            yield from self.object(value.value)
        elif is_struct(value):
            yield f"struct {value.__name__} {inspect.signature(value)}"
            try:
                annotations = field_annotations(value, {})
            except NameError:
                raise _Unknown from None
            for name, annotation in annotations.items():
                yield name
                yield from self.object(annotation)
        elif is_record(value):
            yield from self.record(value)
        elif type(value) is tuple and len(value) <= MAX_TUPLE:
            yield f"tuple {len(value)}"
            for item in value:
                yield from self.object(item)
        elif get_origin(value) is hints.Global:  # a field of a struct
            yield "Global"
            for element in get_args(value):
                yield from self.object(element)
        elif id(value) in _language_names():
            yield _language_names()[id(value)]
        else:
            raise _Unknown

    def record(self, value: Any) -> Iterator[str]:
        """The constants that an enumeration, a named tuple or a frozen dataclass holds."""
        if isinstance(value, EnumMeta):
            names = list(value.__members__)
        else:
            names = list(getattr(value, "_fields", ())) or [field.name for field in fields(value)]
        items = {name: getattr(value, name) for name in names}
        yield f"record {len(items)}"
        for name, item in items.items():
            yield name
            yield from self.object(item)


def _value(source: SourceFunction, path: Sequence[str]) -> Any:
    """What a name, or an attribute as in `module.name`, stands for in a function."""
    value = free_value(source.function, path[0])
    for attribute in path[1:]:
        if not isinstance(value, ModuleType):
            break
        value = getattr(value, attribute, MISSING)
    return value


def _text(code: CodeType) -> str:
    """The lines of a function, decorators included."""
    lines = linecache.getlines(code.co_filename)
    last = max((line or 0 for _, _, line in code.co_lines()), default=0)
    if not lines or not code.co_firstlineno <= last <= len(lines):
        raise _Unknown
    begins = code.co_firstlineno - 1
    margin = _margin("".join(lines[begins:])[_body("".join(lines[begins:last])) :])
    # Python makes no code of some last lines: go on to the next line that stands where the function does.
    while last < len(lines) and (not lines[last].strip() or _margin(lines[last]) > margin):
        last += 1
    return "".join(lines[begins:last]).rstrip()


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _body(text: str) -> int:
    """Where the definition begins, after its decorators."""
    definition = _DEFINITION.search(text)
    if definition is None:
        raise _Unknown
    return definition.start()


def _names(text: str) -> Iterator[str]:
    """Names, and attributes as in `module.name`, outside comments and docstrings. A short text may be an annotation."""
    for match in _WORDS.finditer(text):
        if match["name"]:
            yield re.sub(r"\s", "", match["name"])
        elif match["text"]:
            yield from _names(match["text"][1:-1])


@cache
def _language_names() -> dict[int, str]:
    """Names of the words of the language and of Python's own functions, by identity."""
    modules = (
        ("python", builtins),
        ("math", math),
        *(("word", m) for m in (hints, intrinsics, atomics, bits, maths, warps)),
    )
    return {id(value): f"{space} {name}" for space, module in modules for name, value in vars(module).items()}
