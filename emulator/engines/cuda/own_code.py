"""Kernels compiled from the user's own source: options of nvcc, and the bytes of arguments."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ...cubin_sections import Sections
from ...errors import LaunchError
from ...own_code import CubinCode, CudaText, OwnArgument, OwnCode, PtxText
from ...runtime.engine import Request, Resources
from . import nvcc
from .interface import Interface

OPTIONS = ("-fmad=false", "-lineinfo", "--resource-usage")
"""Options in addition to the user's. -fmad=false: as on the emulators, x * y + z rounds twice."""
PTX_OPTIONS = ("--resource-usage",)
STANDARD = "-std=c++17"
"""The standard of the parser, where the user's options have none."""
_REPLACED = ("-arch", "--gpu-architecture", "-gencode", "--generate-code", "-code", "--gpu-code", "-fmad", "--fmad")
"""Options of the user that the engine sets itself."""
_INCLUDED = (("pycuda", "cuda"), ("cupy", "_core/include"))
"""Packages with headers for kernels, and the folders of those."""
_RESERVED = 1024
"""Bytes of the section of shared memory that the system reserves, from compute capability 9.0 on."""
UNUSED_ADDRESS = 256
"""Address of a pointer that is compared with null, but never dereferenced."""


def compiled(own: OwnCode, request: Request, arch: str) -> tuple[Interface, nvcc.Built]:
    """Return the kernel's own code for an architecture such as "sm_90". Raises the errors of `nvcc.build`."""
    summary = request.specialisation.summary
    interface = Interface(
        own.kernel, tuple(summary.parameters), (), frozenset(summary.changed), 0, summary.cooperative, own.arguments
    )
    if isinstance(own, PtxText):
        ptx = own.text(arch)
        compiler = nvcc.of_toolkit(ptx.toolkit)
        return interface, nvcc.build(ptx.text, own.kernel, arch, PTX_OPTIONS, suffix=".ptx", compiler=compiler)
    if isinstance(own, CubinCode):
        if arch != own.architecture:
            raise LaunchError(f"{own.kernel} is compiled for {own.architecture}, not for {arch}")
        static = nvcc.sections(own.cubin).get(f".nv.shared.{own.kernel}", 0)
        static -= _RESERVED if static and arch >= "sm_90" else 0
        resources = Resources(Sections.read(own.cubin).registers(own.kernel), static, 0, 0, 0, 0)
        return interface, nvcc.Built(own.cubin, resources, "")
    assert isinstance(own, CudaText)
    built = nvcc.build(own.text, own.kernel, arch, options(own))
    return replace(interface, kernel=nvcc.entry_of(built.cubin, own.kernel)), built


def options(own: CudaText) -> tuple[str, ...]:
    """Return all options of nvcc but the architecture."""
    users: list[str] = []
    words = iter(own.options)
    for word in words:
        if not word.startswith(_REPLACED):
            users.append(word)
        elif "=" not in word:
            next(words, None)  # its value
    standard = () if any("-std" in word for word in users) else (STANDARD,)
    return (*users, *standard, *OPTIONS, *_include_options(own.text))


def _include_options(text: str) -> list[str]:
    results = []
    for package, folder in _INCLUDED:
        if package in text and (spec := find_spec(package)) is not None and spec.origin is not None:
            results += ["-I", str(Path(spec.origin).parent / folder)]
    return results


def packed(
    arguments: tuple[OwnArgument, ...], values: Mapping[str, Any], addresses: Mapping[str, Any]
) -> list[np.generic]:
    """Return the parameters of the kernel as bytes. values: arguments of the program; addresses: of its arrays with elements."""
    return [np.void(_bytes(argument, values, addresses)) for argument in arguments]


def _bytes(argument: OwnArgument, values: Mapping[str, Any], addresses: Mapping[str, Any]) -> bytes:
    data = bytearray(argument.size)
    if not argument.contents and not argument.null:
        data[:] = np.uintp(UNUSED_ADDRESS).tobytes()
    for offset, name in argument.contents:
        value = values[name]
        if isinstance(value, np.ndarray):  # without elements, it has no address
            value = np.uintp(int(addresses[name]) + argument.shift if name in addresses else 0)
        field = np.asarray(value).tobytes()
        data[offset : offset + len(field)] = field
    added = argument.constant + sum(factor * int(values[name]) for name, factor in argument.terms)
    if not added:
        return bytes(data)
    number = int.from_bytes(data, "little") + added
    return (number % (1 << 8 * argument.size)).to_bytes(argument.size, "little")
