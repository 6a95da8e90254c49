"""Included files: the user's, and those of `headers/`, declarations of CUDA C++ for the compiler."""

import linecache
import os
import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from .. import disk_cache
from ..documents import text_of
from ..errors import SimtbedError
from ..escaping import printable
from .curand_skips import curand_skips

FOLDER = Path(__file__).with_name("headers")
INCLUDED = {
    f"cooperative_groups{name}.h": "cooperative_groups.h"
    for name in ("", "/reduce", "/scan", "/memcpy_async", "/details/partitioning")
}
"""Files of `headers/` by the name in an `#include`. Other files are empty, except the user's."""
INCLUDED |= dict.fromkeys(("mma.h", "crt/mma.h"), "mma.h") | {"cuda/pipeline": "pipeline.h", "cuda_fp8.h": "fp8.h"}
INCLUDED |= dict.fromkeys(
    ("cuComplex.h", "cufft.h", "cufftXt.h", "complex", "thrust/complex.h", "cupy/complex.cuh", "pycuda-complex.hpp"),
    "complex.h",
)
INCLUDED |= {f"curand_{name}.h": "curand.h" for name in ("kernel", "uniform", "normal", "philox4x32_x")}
MAX_BYTES = 1 << 24
"""Bytes of all the files included by a text."""
MAX_CLIMB = 3
"""Levels above its own folder from which a file may include others."""
_INCLUDE = re.compile(r"""^[ \t]*\#[ \t]*include[ \t]*([<"])([^>"]+)[>"]""", re.MULTILINE)
_TOOLKIT = "cuda_runtime.h"
"""A file of the folder with the toolkit's headers, which `headers/` replace."""


def missing(text: str, names: set[str]) -> list[str]:
    """Return the names in quotes of missing included files."""
    return [name for mark, name in _INCLUDE.findall(text) if mark == '"' and name in names - set(INCLUDED)]


def include_folders(options: Sequence[str]) -> list[str]:
    """Return the folders of the options `-I` but the toolkit's."""
    pairs = zip(options, (*options[1:], ""), strict=False)
    named = [option[2:] or following for option, following in pairs if option.startswith("-I")]
    return [folder for folder in map(os.path.abspath, named) if not os.path.exists(os.path.join(folder, _TOOLKIT))]


def included_files(text: str, folder: str, options: Sequence[str]) -> tuple[dict[str, str], set[str]]:
    """Return the user's files that a text includes, directly or not, by path, and the names of other included files.

    A name in quotes is searched in the folder of the including file, then as others in the folders of `-I`. Files are regular ones
    below the folder of the text and those of `-I`, or below the folder that the leading `../` of a quoted name reach, MAX_CLIMB at most.
    folder: of the text, empty for none. Raises SimtbedError.
    """
    files, shipped, pending, size = dict[str, str](), set[str](), [(text, folder)], 0
    folders = include_folders(options)
    allowed = [os.path.realpath(own) for own in (*[folder] * bool(folder), *folders)]
    while pending:
        content, own = pending.pop()
        for mark, name in _INCLUDE.findall(content):
            quoted = [own] * bool(mark == '"' and own)
            tried = (os.path.normpath(os.path.join(f, name)) for f in quoted + folders)
            if quoted and name.startswith("../"):
                allowed.append(_climbed(own, name))
            path = next((path for path in tried if _is_readable(path, allowed)), None)
            if path is None:
                shipped.add(name)
            elif path not in files:
                files[path] = _content(path)
                size += len(files[path])
                if size > MAX_BYTES:
                    raise SimtbedError(f"{printable(path)}: the included files have more than {MAX_BYTES} bytes")
                pending.append((files[path], os.path.dirname(path)))
    return files, shipped


def _climbed(folder: str, name: str) -> str:
    """Return the folder that the leading `../` of a name reach from another one."""
    steps = next(n for n, word in enumerate((*name.split("/"), "")) if word != "..")
    return os.path.realpath(os.path.join(folder, *[".."] * min(steps, MAX_CLIMB)))


def _is_readable(path: str, allowed: Sequence[str]) -> bool:
    """Whether a file may be included: a regular one below these folders."""
    if "\0" in path:
        return False
    real = os.path.realpath(path)
    return os.path.isfile(real) and any(os.path.commonpath((real, folder)) == folder for folder in allowed)


def _content(path: str) -> str:
    if os.path.getsize(path) > MAX_BYTES:
        raise SimtbedError(f"{printable(path)}: an included file has at most {MAX_BYTES} bytes")
    return source_of(path)


def source_of(path: str) -> str:
    """Return the text of a file in UTF-8, else in Latin-1: C++ permits any bytes in comments. Raises SimtbedError."""
    try:
        return text_of(path)
    except ValueError:
        text = text_of(path, "latin-1")
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)  # messages show its lines
        return text


@cache
def headers_digest() -> str:
    """Return a digest of the files in `headers/`."""
    files = sorted(FOLDER.glob("*.h"))
    return sha256("\0".join(file.read_text(encoding="utf-8") for file in files).encode()).hexdigest()


@cache
def skips() -> str:
    """Return the matrices of cuRAND."""
    return disk_cache.cached_object(f"curand {disk_cache.edition()}", curand_skips)


def included(name: str) -> str:
    """Return the text of an included file, empty for files without declarations for kernels."""
    file = INCLUDED.get(name)
    if file is None:
        return ""
    text = (FOLDER / file).read_text(encoding="utf-8")
    return skips() + text if file == "curand.h" else text
