"""Components that simtbed uses on a machine: packages, engines, compilers, GPU; detected by use."""

import os
import platform
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

from simtbed import SimtbedError, UnavailableError, disk_cache

from . import trial_kernels


@dataclass(frozen=True)
class Component:
    """A component. detail: its version or location, "" if it is missing or fails; then `reason` and `remedy` are set. fails: whether
    it is installed and does not work."""

    name: str
    needed_for: str
    detail: str
    reason: str = ""
    remedy: str = ""
    fails: bool = False

    @property
    def works(self) -> bool:
        return bool(self.detail)

    @property
    def state(self) -> str:
        return "works" if self.works else "fails" if self.fails else "missing"

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
        _tried("jit", "the default engine", trial_kernels.own_language, "python -m pip install --force-reinstall llvmlite"),
        _tried("CUDA C++", "kernels of .cu files", trial_kernels.cuda_source, 'python -m pip install "simtbed[cuda-source]"'),
        _tried("numba.cuda", "Numba programs", trial_kernels.numba_cuda, 'python -m pip install "simtbed[numba-cuda]"'),
        _tried("numba_cuda_mlir", "its programs", trial_kernels.numba_mlir, 'python -m pip install "simtbed[numba-cuda-mlir]"'),
        _detect("cache", "reuse of compiled kernels", _cache, "set SIMTBED_CACHE=FOLDER to a writable folder"),
        _detect("nvcc", "simtbed cuda --compile", _nvcc, 'python -m pip install "simtbed[nvcc]"'),
        _detect("nvdisasm", "simtbed profile --compiled", _nvdisasm, 'python -m pip install "simtbed[sass]"'),
        _detect("PyCUDA", "engine=\"cuda\"", partial(version, "pycuda"), 'python -m pip install "simtbed[cuda]"'),
        _tried("GPU", "engine=\"cuda\"", trial_kernels.gpu, "a machine with an NVIDIA GPU and its driver"),
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


def _tried(name: str, needed_for: str, run: Callable[[], str], remedy: str) -> Component:
    """Return a component that runs a kernel. It is missing if it raises UnavailableError, and fails with any other error."""
    try:
        return Component(name, needed_for, run())
    except Exception as error:
        text = str(error).strip() or type(error).__name__
        return Component(name, needed_for, "", text.splitlines()[0], remedy, not isinstance(error, UnavailableError))


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
