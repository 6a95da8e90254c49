"""Calls the function that a target names, in a process of its own."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from simtbed import Kernel

from .uncaught import show_without


def call(reference: str) -> None:
    """Call the host function "package.module:function" or "file.py:function"."""
    show_without(__file__)
    place, _, name = reference.rpartition(":")
    module = _of_file(Path(place)) if place.endswith(".py") else _of_name(place)
    function: Any = getattr(module, name, None)
    if isinstance(function, Kernel):
        _refuse(f"{reference} is a kernel: name a host function that launches it, with its grid, block and arguments")
    if not callable(function):
        _refuse(f"{place} has no function {name}")
    if needed := _needed(function):
        _refuse(
            f"{reference} is called without arguments, and needs {', '.join(needed)}: name a function that gives them"
        )
    function()


def _needed(function: Any) -> list[str]:
    """The parameters of a function that have no default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of some built-in ones nobody knows
        return []
    more = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one.name for one in parameters if one.default is one.empty and one.kind not in more]


def _of_file(path: Path) -> ModuleType:
    """The file as a module of its stem's name, with its folder first among those that are searched; where that folder is a
    package, as the package's module, so that it may import from it by relative names."""
    if not path.is_file():
        _refuse(f"{path}: No such file")
    path = path.resolve()
    sys.path[0] = str(path.parent)
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").is_file() and root.name.isidentifier():
        parts.insert(0, root.name)
        root = root.parent
    if len(parts) > 1:
        sys.path.insert(1, str(root))
        return importlib.import_module(".".join(parts))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _of_name(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        _refuse(f"no module is called {error.name}")


def _refuse(message: str) -> NoReturn:
    print(f"simtbed: {message}", file=sys.stderr)
    sys.exit(2)
