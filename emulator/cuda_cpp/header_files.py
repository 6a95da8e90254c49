"""Included files: the user's, and those of `headers/`, declarations of CUDA C++ for the parser."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from ..documents import text_of
from ..errors import SimtbedError
from ..escaping import printable

FOLDER = Path(__file__).with_name("headers")
INCLUDED = {"cooperative_groups.h": "cooperative_groups.h", "cooperative_groups/reduce.h": "cooperative_groups.h"}
"""Files of `headers/` by the name in an `#include`. Other files that are not the user's are empty."""
INCLUDED |= dict.fromkeys(
    ("cuComplex.h", "complex", "thrust/complex.h", "cupy/complex.cuh", "pycuda-complex.hpp"), "complex.h"
)
_INCLUDE = re.compile(r"""^[ \t]*\#[ \t]*include[ \t]*([<"])([^>"]+)[>"]""", re.MULTILINE)
_TOOLKIT = "cuda_runtime.h"
"""A file of the folder with the toolkit's headers, which `headers/` replace."""


def missing(text: str, names: set[str]) -> list[str]:
    """Return the names in quotes that a text includes, and that are not found."""
    return [name for mark, name in _INCLUDE.findall(text) if mark == '"' and name in names - set(INCLUDED)]


def include_folders(options: Sequence[str]) -> list[str]:
    """Return the folders of the options `-I` but the toolkit's."""
    pairs = zip(options, (*options[1:], ""), strict=False)
    named = [option[2:] or following for option, following in pairs if option.startswith("-I")]
    return [folder for folder in map(os.path.abspath, named) if not os.path.exists(os.path.join(folder, _TOOLKIT))]


def included_files(text: str, folder: str, options: Sequence[str]) -> tuple[dict[str, str], set[str]]:
    """Return the user's files that a text includes, directly or not, by path, and the names of other included files.

    A name in quotes is searched in the folder of the including file, then as others in the folders of `-I`. folder: of the text, empty
    for none.
    """
    files, shipped, pending = dict[str, str](), set[str](), [(text, folder)]
    while pending:
        content, own = pending.pop()
        for mark, name in _INCLUDE.findall(content):
            folders = [own] * bool(mark == '"' and own) + include_folders(options)
            path = next((p for p in (os.path.join(f, name) for f in folders) if os.path.isfile(p)), None)
            path = None if path is None else os.path.normpath(path)
            if path is None:
                shipped.add(name)
            elif path not in files:
                try:
                    files[path] = text_of(path)
                except ValueError:
                    raise SimtbedError(f"{printable(path)}: expected UTF-8") from None
                pending.append((files[path], os.path.dirname(path)))
    return files, shipped


@cache
def headers_digest() -> str:
    """Return a digest of the files in `headers/`."""
    files = sorted(FOLDER.glob("*.h"))
    return sha256("\0".join(file.read_text(encoding="utf-8") for file in files).encode()).hexdigest()


def included(name: str) -> str:
    """Return the text of an included file, empty for files without declarations for kernels."""
    file = INCLUDED.get(name)
    return "" if file is None else (FOLDER / file).read_text(encoding="utf-8")
