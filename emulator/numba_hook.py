"""Import hook: with SIMTBED_NUMBA=1 in the environment, kernels of `numba.cuda` and `numba_cuda_mlir` run on an emulator.
With SIMTBED_NUMBA=auto they do so on a machine without NVIDIA's driver.

Each import of this module reads the environment; nothing else of simtbed is imported until a program imports one of them. Child
processes inherit the environment, and the hook by the folder `numba/startup` in PYTHONPATH or by a file in site-packages.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.abc
import importlib.util
import os
import sys
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

VARIABLE = "SIMTBED_NUMBA"
ALWAYS, WITHOUT_GPU = "1", "auto"
"""Values of the variable. `auto`: on a machine without NVIDIA's driver, if the versions are supported."""
WATCHED = {"numba.cuda": "numba.install", "numba_cuda_mlir": "numba.mlir.install"}
"""Modules by name, each with the module of this package whose `install` replaces its driver."""
STARTUP = os.path.join(os.path.dirname(__file__), "numba", "startup")
"""A folder whose `sitecustomize` imports this module at the start of Python."""


class _Loader(importlib.abc.Loader):
    """The loader of a watched module, with the replacement of its driver after its execution."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self.original.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if not _is_unchanged():
            with suppress(ImportError):  # a missing package; the module reports it
                importlib.import_module(f"{__package__}.driver.toolkit").accept_missing_runtime()
        self.original.exec_module(module)
        _install(module.__name__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


class _Finder(importlib.abc.MetaPathFinder):
    """A finder of the watched modules that uses the other finders."""

    searching = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in WATCHED or self.searching:
            return None
        self.searching = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self.searching = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def _install(name: str) -> None:
    if _is_unchanged():
        return
    automatic = os.environ.get(VARIABLE) == WITHOUT_GPU
    unavailable = importlib.import_module(f"{__package__}.errors").UnavailableError
    try:
        importlib.import_module(f"{__package__}.{WATCHED[name]}").install()
    except (ImportError, unavailable):
        if not automatic:
            raise
        return
    if automatic:
        os.environ[VARIABLE] = ALWAYS
        sys.stderr.write(
            f"simtbed: {name} emulated: kernels run on an emulator (--emulate none: the installed library)\n"
        )


def _is_unchanged() -> bool:
    """Return whether the watched modules use the GPU of this machine."""
    return os.environ.get(VARIABLE) == WITHOUT_GPU and _has_driver()


def _has_driver() -> bool:
    """Return whether NVIDIA's driver is installed."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


def is_requested() -> bool:
    """Return whether the environment requests the emulator."""
    return os.environ.get(VARIABLE, "0") not in ("", "0")


def enable() -> None:
    """Have kernels of `numba.cuda` and `numba_cuda_mlir` run on an emulator in this process, from their import on."""
    for name in WATCHED:
        if name in sys.modules:
            _install(name)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def request(environment: MutableMapping[str, str], value: str = ALWAYS) -> None:
    """Request the emulator for processes with this environment, and for their children."""
    environment[VARIABLE] = value
    folders = environment.get("PYTHONPATH", "").split(os.pathsep)
    if STARTUP not in folders:
        environment["PYTHONPATH"] = os.pathsep.join([STARTUP, *filter(None, folders)])


if is_requested():
    enable()
