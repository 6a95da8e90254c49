"""Digest of a function's dependencies, computed without parsing it: the cache key of its compiled code."""

from __future__ import annotations

import builtins
import hashlib
import inspect
import keyword
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from enum import Enum, EnumMeta
from functools import cache, cached_property
from operator import is_, itemgetter
from types import ModuleType
from typing import Any, get_args, get_origin

import numpy as np

from ..errors import CompileError
from ..language import atomics, bits, hints, intrinsics, maths, warps
from ..language.functions import SourceFunction
from .constants import MAX_TUPLE, field_annotations, is_record, is_struct
from .source import MISSING, definition, free_value, meaning

_WORDS = re.compile(
    r"""(?P<long>\"{3}.*?\"{3}|'{3}.*?'{3}) | (?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*') | \#[^\n]*
    | (?<![\w.])(?P<name>[^\W\d]\w*(?:\s*\.\s*[^\W\d]\w*)*)""",
    re.DOTALL | re.VERBOSE,
)
_DEFINITION = re.compile(r"^[ \t]*def\b", re.MULTILINE)


class _Unknown(Exception):
    """Raised for an object without a known meaning in a program."""


@dataclass(frozen=True)
class Digest:
    """A digest and its inputs.

    key: the digest. places: file and line of each function read; not hashed. values: (function, dotted name as a
    tuple, object) of each global name, resolved again at every launch.
    """

    key: str
    places: str
    values: Sequence[tuple[SourceFunction, Sequence[str], Any]]

    @property
    def stale(self) -> bool:
        """Whether a name now refers to another object."""
        present, absent, indirect = self._lookups
        try:
            for space, getter, values in present:
                if not all(map(is_, getter(space), values)):
                    return True
        except KeyError:
            return True
        for space, names in absent:
            if any(map(space.__contains__, names)):
                return True
        return bool(indirect) and any(_value(source, path) is not value for source, path, value in indirect)

    @cached_property
    def _lookups(self) -> tuple[list[_PresentNames], list[_AbsentNames], list[_Named]]:
        """The present and the absent names by module, and the names resolved elsewhere. Launches compare them often, so each
        module's names are read in one call."""
        spaces: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
        indirect = []
        for source, path, value in self.values:
            steps = _steps(source, path)
            if steps is None or steps[-1][2] is not value:
                indirect.append((source, path, value))
                continue
            for space, name, value in steps:
                spaces.setdefault(id(space), (space, {}))[1][name] = value
        present: list[_PresentNames] = []
        absent: list[_AbsentNames] = []
        for space, values in spaces.values():
            if str(space.get("__name__")).partition(".")[0] in _UNCHANGED:
                continue
            expected = {name: value for name, value in values.items() if value is not MISSING}
            if expected:
                names = [*expected, next(iter(expected))]  # itemgetter of a single name returns no tuple
                present.append((space, itemgetter(*names), tuple(expected[name] for name in names)))
            if missing := values.keys() - expected.keys() - {*keyword.kwlist}:
                absent.append((space, frozenset(missing)))
        return present, absent, indirect


_UNCHANGED = ("builtins", __name__.partition(".")[0])
"""Packages whose names keep their objects."""
_PresentNames = tuple[dict[str, Any], Callable[[dict[str, Any]], tuple[Any, ...]], tuple[Any, ...]]
"""Names of a module, a function that reads them, and their expected values."""
_AbsentNames = tuple[dict[str, Any], frozenset[str]]
_Named = tuple[SourceFunction, Sequence[str], Any]


def _steps(source: SourceFunction, path: Sequence[str]) -> list[tuple[dict[str, Any], str, Any]] | None:
    """Return (module dictionary, name, value) for each step of `_value`; None if it leaves module dictionaries."""
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
            return None  # a module's `__getattr__` may create it
        steps.append((space, attribute, value))
        if not isinstance(value, ModuleType):
            break
        space = vars(value)
    return steps


def digest(function: SourceFunction) -> Digest | None:
    """Return a digest of everything the front end's program of a function depends on, except spans.

    Inputs: the function's text, the objects its names refer to, the functions it calls, and the Python version.
    Const arguments, Real and the emulator's edition are not included. Return None if a name refers to an unknown
    object or the source text is unavailable.
    """
    try:
        reading = _Reading()
        pieces = list(reading.function(function))
    except _Unknown:
        return None
    key = hashlib.sha256("\0".join([sys.version, *pieces]).encode()).hexdigest()
    return Digest(key, repr(reading.places), list(reading.values.values()))


class _Reading:
    """Traversal of a function and the functions it calls."""

    def __init__(self) -> None:
        self.visited: set[int] = set()
        self.places: list[tuple[str, int]] = []
        self.values: dict[tuple[int, str], tuple[SourceFunction, Sequence[str], Any]] = {}

    def function(self, source: SourceFunction) -> Iterator[str]:
        if id(source) in self.visited:
            return
        self.visited.add(id(source))
        code = source.function.__code__
        text = _text(source)
        self.places.append((os.path.abspath(code.co_filename), code.co_firstlineno))  # as in line tables
        yield f"{type(source).__name__} {code.co_name} {text}"
        yield repr(meaning(code))  # an entry of the cache exists only for a text that compiles to this code
        local = {*code.co_varnames, *code.co_cellvars}
        names = set(_names(text[_body(text) :]))
        for name in sorted(names):
            if name.partition(".")[0] not in local:
                yield name
                yield from self.named(source, name)
        for default in source.defaults.values():
            yield from self.object(default)
        for annotation in sorted(
            map(str, source.function.__annotations__.values())
        ):  # evaluated outside of the function's scope
            for name in _names(annotation):
                yield name
                yield from self.named(source, name)

    def named(self, source: SourceFunction, name: str) -> Iterator[str]:
        path = name.split(".")
        value = _value(source, path)
        self.values[id(source), name] = (source, path, value)
        yield from self.object(value)

    def object(self, value: Any) -> Iterator[str]:
        """Yield a canonical text of an object's meaning to the front end."""
        text = _plain_text(value)
        if text is not None:
            yield text
        elif isinstance(value, SourceFunction):
            yield from self.function(value)
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
        else:
            raise _Unknown

    def record(self, value: Any) -> Iterator[str]:
        """Yield the constants of an enumeration, a named tuple or a frozen dataclass."""
        if isinstance(value, EnumMeta):
            names = list(value.__members__)
        else:
            names = list(getattr(value, "_fields", ())) or [field.name for field in fields(value)]
        items = {name: getattr(value, name) for name in names}
        yield f"record {len(items)}"
        for name, item in items.items():
            yield name
            yield from self.object(item)


def _plain_text(value: Any) -> str | None:
    """Return the text of a number, a string, or a word of the language; None for other objects."""
    if value is MISSING:
        return "missing"
    if value is None or type(value) in (bool, int, str, bytes):
        return f"{type(value).__name__} {value!r}"
    if type(value) is float:
        return f"float {value.hex()}"
    if isinstance(value, np.generic):
        return f"{value.dtype.str} {value.tobytes().hex()}"
    return _language_names().get(id(value))


def _value(source: SourceFunction, path: Sequence[str]) -> Any:
    """Return the object of a name or of `module.name` in a function."""
    value = free_value(source.function, path[0])
    for attribute in path[1:]:
        if not isinstance(value, ModuleType):
            break
        value = getattr(value, attribute, MISSING)
    return value


def _text(source: SourceFunction) -> str:
    """The lines of a function, decorators included."""
    code = source.function.__code__
    try:
        several = len(source.versions) > 1
        lines = (definition(source)[1] if several else source.versions[0]).lines if source.versions else []
    except (CompileError, SyntaxError):  # reported when the function is read
        raise _Unknown from None
    last = max((line or 0 for _, _, line in code.co_lines()), default=0)
    if not lines or not code.co_firstlineno <= last <= len(lines):
        raise _Unknown
    begins = code.co_firstlineno - 1
    margin = _margin("".join(lines[begins:])[_body("".join(lines[begins:last])) :])
    # Python emits no code for some last lines: extend to the next line with the function's indentation.
    while last < len(lines) and (not lines[last].strip() or _margin(lines[last]) > margin):
        last += 1
    return "".join(lines[begins:last]).rstrip()


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _body(text: str) -> int:
    """Return the offset of the definition, after its decorators."""
    definition = _DEFINITION.search(text)
    if definition is None:
        raise _Unknown
    return definition.start()


def _names(text: str) -> Iterator[str]:
    """Yield names, and dotted names such as `module.name`, outside comments and docstrings. A short text may be an annotation."""
    for match in _WORDS.finditer(text):
        if match["name"]:
            yield re.sub(r"\s", "", match["name"])
        elif match["text"]:
            yield from _names(match["text"][1:-1])


@cache
def _language_names() -> dict[int, str]:
    """Return the names of the language's words and of Python's builtins, by identity."""
    modules = (
        ("python", builtins),
        ("math", math),
        *(("word", m) for m in (hints, intrinsics, atomics, bits, maths, warps)),
    )
    return {id(value): f"{space} {name}" for space, module in modules for name, value in vars(module).items()}
