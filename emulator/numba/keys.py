"""Keys of kernels in the cache on disk: bytecode, closure values, globals, argument types, options and versions.

A kernel with a value that the key cannot describe, such as an array on the device, has no key. Neither has one in a process with
functions of the user that Numba found by other means than names, such as overloads (`UnnamedFunctions`).
"""

import marshal
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from hashlib import blake2b
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .. import disk_cache
from .marks import POSITIONS
from .packages import Package

_TESTS = os.path.join("cuda", "tests", "")
"""The folder of Numba's own tests: their functions are programs, not a library."""
_OTHER_PACKAGES = tuple(f"{name}{os.sep}" for name in ("site-packages", "dist-packages"))
"""Folders in that of the standard library."""
_PRINTING = ("DUMP_", "ALWAYS_WARN_")
"""Beginnings of Numba's settings that print during a compilation."""
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))


class UnknownValueError(Exception):
    """Raised for a value without a description in a key."""


def kernel_key(
    package: Package, function: Any, argument_types: Sequence[Any], options: Mapping[str, Any]
) -> str | None:
    """Return the key of a kernel, 64 hexadecimal digits; None for no key, or if Numba shall print intermediate results or warnings."""
    writer, config = _KeyWriter(package), package.submodule("core.config")
    if any(getattr(config, name) for name in dir(config) if name.startswith(_PRINTING)):
        return None
    try:
        writer.add([disk_cache.edition(), *package.installed_versions().values()])
        writer.add_options(options)
        for type in argument_types:
            writer.add(type)
        writer.add(function)
    except UnknownValueError:
        return None
    return writer.digest.hexdigest()


class UnnamedFunctions:
    """Records whether the compiler of a package compiled a function of the user that no name in a kernel or device function refers to."""

    def __init__(self, package: Package) -> None:
        self.package, self.exist = package, False

    @contextmanager
    def recorded(self, function: Any) -> Iterator[None]:
        """Compare the functions that are compiled with those that a kernel or device function names."""
        before, POSITIONS.codes = POSITIONS.codes, set()
        try:
            yield
            self._record(function, POSITIONS.codes)
        finally:
            POSITIONS.codes |= before  # a function that is being compiled calls these

    def _record(self, function: Any, compiled: set[CodeType]) -> None:
        writer = _KeyWriter(self.package)
        with suppress(UnknownValueError):
            writer.add(function)
        own = {code for code in compiled if not writer.is_library(code.co_filename)}
        self.exist = self.exist or not own <= writer.codes


class _KeyWriter:
    """A digest of values. codes: the code of all functions in it."""

    def __init__(self, package: Package) -> None:
        self.package, self._types = package, package.submodule("types")
        self.digest = blake2b(digest_size=32)
        self.codes: set[CodeType] = set()
        self._functions: set[int] = set()

    def _text(self, *texts: object) -> None:
        for text in texts:
            content = text if isinstance(text, bytes) else str(text).encode()
            self.digest.update(b"%d:" % len(content) + content)

    def is_library(self, file: str) -> bool:
        """Return whether a file belongs to a package whose version is in the key."""
        folder = next((one for one in self.package.folders if file.startswith(one)), None)
        if folder is None:
            return not file
        return _TESTS not in file and not file.removeprefix(folder).startswith(_OTHER_PACKAGES)

    def add_options(self, options: Mapping[str, Any]) -> None:
        """Add options of a compiler. Raises UnknownValueError."""
        for name, value in sorted(options.items()):
            self._text(name)
            self.add(value)

    def add(self, value: Any) -> None:
        """Add a value. Raises UnknownValueError."""
        self._text(type(value).__qualname__)
        if isinstance(value, _PLAIN):
            self._text(repr(value))
        elif isinstance(value, Enum):
            self._text(type(value).__module__, value.name)
            self.add(value.value)
        elif isinstance(value, tuple | list):
            self._text(len(value))
            for item in value:
                self.add(item)
        elif isinstance(value, self.package.dispatcher_class):
            self.add_options(value.targetoptions)
            self.add(value.py_func)
        elif isinstance(value, FunctionType):
            self._add_function(value)
        elif isinstance(value, np.ndarray | np.generic) and not np.asarray(value).dtype.hasobject:
            array = np.asarray(value)
            self._text(array.dtype.descr, array.shape, array.strides, array.tobytes())
        else:
            self._add_named(value)

    def _add_named(self, value: Any) -> None:
        """Add an object that its name or its text describes."""
        module = type(value).__module__
        if isinstance(value, self._types.Type):
            if not module.startswith(self.package.libraries[0] + ".") or isinstance(value, self._types.Dispatcher):
                raise UnknownValueError
            self._text(module, value)
        elif isinstance(value, type | BuiltinFunctionType | np.ufunc):
            self._text(getattr(value, "__module__", ""), getattr(value, "__qualname__", value.__name__))
        elif isinstance(value, np.dtype):
            self._text(value.descr, value.itemsize)
        elif isinstance(value, ModuleType):
            self._text(value.__name__)
        elif module.startswith(f"{self.package.module}.stubs"):
            self._text(module)
        else:
            raise UnknownValueError

    def _add_function(self, function: FunctionType) -> None:
        if id(function) in self._functions:
            return
        self._functions.add(id(function))
        self._text(function.__module__, function.__qualname__)
        self.codes.update(_codes(function.__code__))
        self._text(marshal.dumps(function.__code__, 2))
        self.add(function.__defaults__)
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:  # a variable without a value yet, as of a kernel that calls itself
                raise UnknownValueError from None
            self.add(content)
        if self.is_library(function.__code__.co_filename):
            return
        for code in _codes(function.__code__):
            for name in code.co_names:
                if name in function.__globals__:
                    self._text(name)
                    self._add_global(function.__globals__[name], code.co_names)

    def _add_global(self, value: Any, attributes: Sequence[str]) -> None:
        """Add a global value; of a module also the attributes with names of the code."""
        self.add(value)
        if isinstance(value, ModuleType) and not self.is_library(getattr(value, "__file__", None) or ""):
            for name in attributes:
                if name in vars(value):
                    self._text(name)
                    self.add(vars(value)[name])


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
