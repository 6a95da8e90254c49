"""Components that simtbed uses on a machine: packages, engines, compilers, GPU; detected by use."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

from simtbed import SimtbedError, disk_cache

from .launchers import why_unavailable


@dataclass(frozen=True)
class Component:
    """A component. detail: its version or location, "" if it is missing; then `reason` and `remedy` are set."""

    name: str
    needed_for: str
    detail: str
    reason: str = ""
    remedy: str = ""

    @property
    def works(self) -> bool:
        return bool(self.detail)

    def content(self) -> dict[str, Any]:
        content = asdict(self)
        return {
            "name": content.pop("name"),
            "needed_for": content.pop("needed_for"),
            "found": content.pop("detail"),
            **content,
            "works": self.works,
        }


def components() -> list[Component]:
    """Return all components, the most commonly needed ones first."""
    return [
        Component("Python", "everything", f"{platform.python_version()} ({platform.machine()})"),
        *_packages(),
        _detect("jit", "the default engine", lambda: _engine("jit"), "python -m pip install --force-reinstall llvmlite"),
        _detect("cache", "reuse of compiled kernels", _cache, "set SIMTBED_CACHE=FOLDER to a writable folder"),
        _detect("nvcc", "simtbed cuda --compile", _nvcc, 'python -m pip install "simtbed[nvcc]"'),
        _detect("nvdisasm", "simtbed profile --compiled", _nvdisasm, 'python -m pip install "simtbed[sass]"'),
        _detect("PyCUDA", "engine=\"cuda\"", _pycuda, 'python -m pip install "simtbed[cuda]"'),
        _detect("GPU", "engine=\"cuda\"", _gpu, "a machine with an NVIDIA GPU and its driver"),
    ]  # fmt: skip


def _packages() -> Iterator[Component]:
    """Yield the required packages, without extras."""
    for requirement in requires("simtbed") or ():
        if "extra ==" not in requirement:
            name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
            yield _detect(name, "everything", partial(version, name), f'python -m pip install "{requirement}"')


def _detect(name: str, needed_for: str, find: Callable[[], str], remedy: str) -> Component:
    try:
        return Component(name, needed_for, find())
    except (SimtbedError, PackageNotFoundError, ImportError, OSError) as error:
        return Component(name, needed_for, "", str(error).splitlines()[0], remedy)


def _engine(name: Any) -> str:
    if reason := why_unavailable(name):
        raise SimtbedError(reason)
    return "a kernel runs"


def _cache() -> str:
    place = disk_cache.cache_folder()
    folder = place.folder
    if folder is None:
        raise SimtbedError("; ".join(place.refused))
    with os.scandir(folder) as files:
        sizes = [file.stat().st_size for file in files if file.is_file()]
    return f"{folder}: {len(sizes):,} files, {sum(sizes) / 1e6:,.1f} MB"


def _nvcc() -> str:
    from simtbed.engines.cuda import nvcc

    path = nvcc.find_nvcc()
    return f"{path}: {nvcc.version(path)}"


def _nvdisasm() -> str:
    from simtbed.engines.cuda import sass

    return str(sass.find_nvdisasm())


def _pycuda() -> str:
    return version("pycuda")


def _gpu() -> str:
    from simtbed.engines.cuda.engine import describe

    gpu = describe()
    return f"{gpu['device']}, {gpu['arch']}, driver of CUDA {gpu['driver']}"
