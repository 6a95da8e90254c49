"""Entry point of the process of a function target: import the module and call the function."""

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from simtbed import Kernel

from ..printing import print_message
from .uncaught import show_without


def call(reference: str) -> None:
    """Call the host function "package.module:function" or "file.py:function"."""
    show_without(__file__)
    owner, _, name = reference.rpartition(":")
    module = _of_file(Path(owner)) if owner.endswith(".py") else _of_name(owner)
    function: Any = getattr(module, name, None)
    if isinstance(function, Kernel):
        _refuse(f"{reference} is a kernel: name a host function that launches it, with its grid, block and arguments")
    if not callable(function):
        _refuse(f"{owner} has no function {name}")
    if required := _required_parameters(function):
        _refuse(
            f"{reference} is called without arguments but requires {', '.join(required)}: name a function that passes them"
        )
    function()


def _required_parameters(function: Any) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have no signature
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in variadic]


def _of_file(path: Path) -> ModuleType:
    """Import a file under the name of its stem, with its folder first in sys.path.

    If the folder is a package, the file is imported as a module of the package, so that relative imports work.
    """
    if not path.is_file():
        _refuse(f"{path}: No such file")
    path = path.resolve()
    sys.path[0] = str(path.parent)
    root, names = path.parent, [path.stem]
    while (root / "__init__.py").is_file() and root.name.isidentifier():
        names.insert(0, root.name)
        root = root.parent
    if len(names) > 1:
        sys.path.insert(1, str(root))
        return importlib.import_module(".".join(names))
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
    print_message(f"simtbed: {message}")
    sys.exit(2)
