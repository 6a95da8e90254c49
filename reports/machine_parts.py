"""The parts of a machine that simtbed works with: which are there, by trying them, and how the others are had."""

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
class Part:
    """One part. found: what there is, "" where it does not work; then `reason` says why, and `remedy` what to do."""

    name: str
    needed_for: str
    found: str
    reason: str = ""
    remedy: str = ""

    @property
    def works(self) -> bool:
        return bool(self.found)

    def content(self) -> dict[str, Any]:
        return {**asdict(self), "works": self.works}


def parts() -> list[Part]:
    """Every part, in the order of what most people need."""
    return [
        Part("Python", "everything", f"{platform.python_version()} ({platform.machine()})"),
        *_packages(),
        _tried("jit", "the engine that is the default", lambda: _engine("jit"), "python -m pip install --force-reinstall llvmlite"),
        _tried("cache", "compiled kernels from run to run", _cache, "SIMTBED_CACHE=FOLDER names a folder that you may write to"),
        _tried("nvcc", "simtbed cuda --compile", _nvcc, 'python -m pip install "simtbed[nvcc]"'),
        _tried("nvdisasm", "simtbed profile --compiled", _nvdisasm, 'python -m pip install "simtbed[sass]"'),
        _tried("PyCUDA", "engine=\"cuda\"", _pycuda, 'python -m pip install "simtbed[cuda]"'),
        _tried("GPU", "engine=\"cuda\"", _gpu, "a machine with an NVIDIA GPU and its driver"),
    ]  # fmt: skip


def _packages() -> Iterator[Part]:
    """What the package requires of others, without its extras."""
    for requirement in requires("simtbed") or ():
        if "extra ==" not in requirement:
            name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
            yield _tried(name, "everything", partial(version, name), f'python -m pip install "{requirement}"')


def _tried(name: str, needed_for: str, find: Callable[[], str], remedy: str) -> Part:
    try:
        return Part(name, needed_for, find())
    except (SimtbedError, PackageNotFoundError, ImportError, OSError) as error:
        return Part(name, needed_for, "", str(error).splitlines()[0], remedy)


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

    found = nvcc.find_nvcc()
    return f"{found}: {nvcc.version(found)}"


def _nvdisasm() -> str:
    from simtbed.engines.cuda import sass

    return str(sass.find_nvdisasm())


def _pycuda() -> str:
    return version("pycuda")


def _gpu() -> str:
    from simtbed.engines.cuda.engine import describe

    found = describe()
    return f"{found['device']}, {found['arch']}, driver of CUDA {found['driver']}"
