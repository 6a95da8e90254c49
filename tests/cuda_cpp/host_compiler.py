"""A second opinion on CUDA C++ texts: compiled by the host's g++ with a small runtime (`host_runtime.h`)."""

from __future__ import annotations

import atexit
import ctypes
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from simtbed.engines.cuda import own_text
from simtbed.runtime.engine import Request

COMPILER = shutil.which("g++")
RUNTIME = Path(__file__).with_name("host_runtime.h")
OPTIONS = ("-std=c++20", "-O1", "-ffp-contract=off", "-fno-strict-aliasing", "-shared", "-fPIC", "-pthread", "-w")
_DYNAMIC = re.compile(r"extern\s+__shared__\s+((?:__align__\(\d+\)\s+)?[\w\s]+?)\s*(\w+)\s*\[\s*\]")


class Unsupported(Exception):
    """The text needs more than the runtime has: warps, textures, or functions of CUDA."""


@cache
def _runtime() -> Path:
    """Return a copy of the runtime, compiled once for this process."""
    assert COMPILER is not None
    folder = tempfile.TemporaryDirectory(prefix="host-runtime-")
    atexit.register(folder.cleanup)
    header = Path(folder.name) / RUNTIME.name
    shutil.copy(RUNTIME, header)
    subprocess.run([COMPILER, *OPTIONS, "-x", "c++-header", str(header), "-o", f"{header}.gch"], check=True)
    return header


def host_result(request: Request, folder: Path) -> dict[str, Any]:
    """Return the final contents of each global array, flat, by parameter of the program. folder: an empty one. Raises Unsupported."""
    own = request.specialisation.cuda_text
    assert own is not None and COMPILER is not None
    if own.constants:
        raise Unsupported("contents of constant memory are set by a launch")
    text = _DYNAMIC.sub(rf"alignas(16) static \1 \2[{max(request.dynamic_shared, 1)}]", own.text)
    text = re.sub(r"^[ \t]*#[ \t]*include[^\n]*$", "", text, flags=re.MULTILINE)
    call = 'extern "C" void run(void **arguments, const unsigned int *grid, const unsigned int *block)'
    source, library = folder / "kernel.cpp", folder / "kernel.so"
    name = request.program.kernel.name
    source.write_text(f"{text}\n{call} {{ launch({name}, arguments, grid, block); }}\n")
    options = [option for option in own.options if option.startswith(("-D", "-U", "-I"))]
    command = [COMPILER, *OPTIONS, *options, "-include", str(_runtime()), str(source), "-o", str(library)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        raise Unsupported(process.stderr)
    return _run(library, request)


def _run(library: Path, request: Request) -> dict[str, Any]:
    own = request.specialisation.cuda_text
    assert own is not None
    memory = {name: _aligned(array) for name, array in request.memory(()).items()}
    addresses = {name: array.ctypes.data for name, array in memory.items()}
    values = [value.tobytes() for value in own_text.packed(own.arguments, request.arguments, addresses)]
    buffers = [ctypes.create_string_buffer(value, len(value)) for value in values]
    pointers = (ctypes.c_void_p * len(buffers))(*(ctypes.addressof(buffer) for buffer in buffers))
    shape = ctypes.c_uint * 3
    ctypes.CDLL(str(library)).run(pointers, shape(*request.grid), shape(*request.block))
    return memory


def _aligned(array: Any) -> Any:
    """Return a copy at an address that is a multiple of 256."""
    data = np.empty(array.nbytes + 256, np.uint8)
    start = -data.ctypes.data % 256
    copy = data[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
