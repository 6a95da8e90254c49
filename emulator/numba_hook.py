"""Import hook: with SIMTBED_NUMBA=1 in the environment, kernels of `numba.cuda` and `numba_cuda_mlir` run on an emulator, and with
SIMTBED_TRITON=1 those of Triton, with PyTorch's tensors. With the value auto they do so on a machine without NVIDIA's driver.

Each import of this module reads the environment; nothing else of simtbed is imported until a program imports one of them. Child
processes inherit the environment, and the hook by the folder `numba/startup` in PYTHONPATH or by a file in site-packages.
"""

from __future__ import annotations

import importlib
import os
import sys

TYPE_CHECKING = False  # that of `typing` costs more than all else here, at each start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

VARIABLE, TRITON_VARIABLE = "SIMTBED_NUMBA", "SIMTBED_TRITON"
ALWAYS, NEVER, WITHOUT_GPU = "1", "0", "auto"
"""Values of the variables. `auto`: on a machine without NVIDIA's driver, if the versions are supported."""
_WORDS = {"": NEVER, "no": NEVER, "off": NEVER, "false": NEVER, "yes": ALWAYS, "on": ALWAYS, "true": ALWAYS}
WATCHED = {
    "numba.cuda": "numba.install",
    "numba_cuda_mlir": "numba.mlir.install",
    "torch": "triton.tensors",
    "triton": "triton.install",
}
"""Modules by name, each with the module of this package whose `install` replaces its driver."""
_OF_TRITON = ("torch", "triton")
STARTUP = os.path.join(os.path.dirname(__file__), "numba", "startup")
"""A folder whose `sitecustomize` executes this file at the start of Python."""


class _Loader:
    """The loader of a watched module, with the replacement of its driver after its execution."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def exec_module(self, module: ModuleType) -> None:
        emulated = _is_emulated(module.__name__)
        if emulated and module.__name__ not in _OF_TRITON:
            _submodule("driver.toolkit").accept_missing_runtime()
        self.original.exec_module(module)
        if emulated:
            _install(module.__name__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


class _Finder:
    """A finder of the watched modules that uses the other finders."""

    searching = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in WATCHED or self.searching:
            return None
        from importlib.util import find_spec  # late: most processes import none of the modules

        self.searching = True
        try:
            spec = find_spec(fullname)
        finally:
            self.searching = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


def _submodule(name: str) -> Any:
    return importlib.import_module(f"simtbed.{name}")


def variable_of(name: str) -> str:
    """Return the variable that requests the emulator for a watched module."""
    return TRITON_VARIABLE if name in _OF_TRITON else VARIABLE


def setting(variable: str = VARIABLE) -> str:
    """Return the value of a variable: ALWAYS, NEVER, WITHOUT_GPU, or an unknown word."""
    text = os.environ.get(variable, NEVER).strip().lower()
    return _WORDS.get(text, text)


def _is_emulated(name: str) -> bool:
    """Return whether kernels of a watched module run on an emulator.

    Raises UnavailableError for unsupported versions and an unknown value of the variable.
    """
    variable = variable_of(name)
    value = setting(variable)
    if value not in (ALWAYS, NEVER, WITHOUT_GPU):
        raise _submodule("errors").UnavailableError(f"{variable}={value}: expected 1, auto or 0")
    if value == NEVER or (value == WITHOUT_GPU and _has_driver()):
        return False
    if name in _OF_TRITON:
        return True
    return _works(name, _submodule("numba.packages").PACKAGES[name].require_versions)


def _install(name: str) -> None:
    if _works(name, _submodule(WATCHED[name]).install) and setting(variable_of(name)) == WITHOUT_GPU:
        os.environ[variable_of(name)] = ALWAYS
        sys.stderr.write(
            f"simtbed: {name} emulated: kernels run on an emulator (--emulate none: the installed library)\n"
        )


def _works(name: str, step: Callable[[], object]) -> bool:
    """Call a function. Under `auto`, print its UnavailableError and return False."""
    try:
        step()
    except _submodule("errors").UnavailableError as error:
        if setting(variable_of(name)) != WITHOUT_GPU:
            raise
        sys.stderr.write(f"simtbed: {name} is not emulated: {error}\n")
        return False
    return True


def _has_driver() -> bool:
    """Return whether NVIDIA's driver is installed."""
    import ctypes

    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


def is_requested(variable: str = VARIABLE) -> bool:
    """Return whether the environment requests the emulator."""
    return setting(variable) != NEVER


def is_excluded(variable: str = VARIABLE) -> bool:
    """Return whether the environment excludes the emulator."""
    return variable in os.environ and not is_requested(variable)


def enable() -> None:
    """Have kernels of the watched modules run on an emulator in this process, from their import on."""
    for name in WATCHED:
        if name in sys.modules and _is_emulated(name):
            _install(name)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def request(environment: MutableMapping[str, str], value: str = ALWAYS, variable: str = VARIABLE) -> None:
    """Request the emulator for processes with this environment, and for their children."""
    environment[variable] = value
    folders = environment.get("PYTHONPATH", "").split(os.pathsep)
    if STARTUP not in folders:
        environment["PYTHONPATH"] = os.pathsep.join([STARTUP, *filter(None, folders)])


if is_requested() or is_requested(TRITON_VARIABLE):
    enable()
