"""Binding of libclang: a text is parsed in memory, and the functions that `clang.cindex` does not declare."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..checked import shown
from ..errors import LaunchError, UnavailableError
from .header_files import include_folders, included, included_files

ROOT = "/simtbed"
"""Folder of the files in memory."""
SOURCE = f"{ROOT}/source/simtbed_text.cu"
HEADER = f"{ROOT}/include/simtbed_device.h"
ARGUMENTS = (
    "-xcuda", "--cuda-device-only", "--cuda-gpu-arch=sm_90", "-nocudainc", "-nocudalib", "-nostdinc", "-nostdinc++", "-std=c++17",
    "-fgpu-rdc", "-Wno-everything", "-Wuninitialized", "-ferror-limit=0", f"-isystem{ROOT}/include", "-include", HEADER,
)  # fmt: skip
USED_OPTIONS = ("-D", "-U", "-std=", "--std=")
"""Options of nvcc that change the meaning of a text. Others, such as `-O3` and `--use_fast_math`, have no effect here."""
_KEEP_GOING = 0x200
MIN_VERSION = 22
"""libclang 18 does not report reads of unassigned variables and parses arguments of 16-bit floats otherwise."""
BINARY = (
    "", ".*", "->*", "*", "/", "%", "+", "-", "<<", ">>", "<=>", "<", ">", "<=", ">=", "==", "!=", "&", "^", "|", "&&", "||",
    "=", "*=", "/=", "%=", "+=", "-=", "<<=", ">>=", "&=", "^=", "|=", ",",
)  # fmt: skip
"""Signs of binary operators in the order of libclang's enumeration."""
UNARY = ("", "x++", "x--", "++x", "--x", "&", "*", "+", "-", "~", "!")


@cache
def cindex() -> Any:
    """Return the module `clang.cindex`. Raises UnavailableError without a libclang of version 22 or newer."""
    try:
        import clang.cindex as module
    except ImportError:
        raise UnavailableError(
            "CUDA C++ is parsed by libclang, which is not installed: python -m pip install 'simtbed[cuda-source]'"
        ) from None
    version = _version(module)
    if version < MIN_VERSION:
        raise UnavailableError(
            f"libclang {MIN_VERSION} or newer is required, this is {version}: python -m pip uninstall libclang; "
            "python -m pip install 'simtbed[cuda-source]'"
        )
    return module


def identity() -> str:
    """Return a digest of the installed libclang, by the size and time of its file, without importing it; empty without one."""
    spec = find_spec("clang")
    if spec is None or spec.origin is None:
        return ""
    files = [entry for entry in os.scandir(Path(spec.origin).parent) if entry.is_dir()]
    libraries = [file for folder in files for file in os.scandir(folder) if file.name.startswith("libclang")]
    return repr(sorted((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in libraries))


def _version(module: Any) -> int:
    """Return the number of the release of libclang, 0 if it is unknown."""
    get = module.conf.lib.clang_getClangVersion
    get.restype = module._CXString
    owner = get()  # frees the text at its end
    text = module.conf.lib.clang_getCString(owner)
    number = re.search(r"version (\d+)", str(getattr(text, "value", text)))
    return 0 if number is None else int(number[1])


@cache
def _library() -> Any:
    """Return the shared library, with the types of the functions that `clang.cindex` does not declare."""
    module = cindex()
    lib, pointer = module.conf.lib, ctypes.c_void_p
    place = [
        module.SourceLocation,
        ctypes.POINTER(module._CXString),
        ctypes.POINTER(ctypes.c_uint),
        ctypes.POINTER(ctypes.c_uint),
    ]
    signatures: dict[str, tuple[list[Any], Any]] = {
        "clang_Cursor_Evaluate": ([module.Cursor], pointer),
        "clang_EvalResult_getKind": ([pointer], ctypes.c_int),
        "clang_EvalResult_isUnsignedInt": ([pointer], ctypes.c_uint),
        "clang_EvalResult_getAsUnsigned": ([pointer], ctypes.c_ulonglong),
        "clang_EvalResult_getAsLongLong": ([pointer], ctypes.c_longlong),
        "clang_EvalResult_getAsDouble": ([pointer], ctypes.c_double),
        "clang_EvalResult_dispose": ([pointer], None),
        "clang_getCursorUnaryOperatorKind": ([module.Cursor], ctypes.c_int),
        "clang_getCursorBinaryOperatorKind": ([module.Cursor], ctypes.c_int),
        "clang_Cursor_getVarDeclInitializer": ([module.Cursor], module.Cursor),
        "clang_getPresumedLocation": (place, None),
    }
    for name, (argument_types, result_type) in signatures.items():
        try:
            function = getattr(lib, name)
        except AttributeError:
            raise UnavailableError(f"libclang has no {name}: install version 22 or newer") from None
        function.argtypes, function.restype = argument_types, result_type
    return lib


def parse(text: str, options: Sequence[str], instances: Sequence[str], folder: str = "") -> Any:
    """Return the translation unit of a text. instances: template instances, such as `scale<float>`, that it need not name itself.
    folder: of the text, for the files that it includes."""
    from .header import device_header  # late: it reads the table of operations

    _library()
    requests = "".join(f"\nauto *simtbed_instance_{n} = &{name};" for n, name in enumerate(instances))
    users, shipped = included_files(text, folder, options)
    files = {HEADER: device_header(), SOURCE: text + requests, **users}
    files |= {f"{ROOT}/include/{name}": included(name) for name in shipped}
    arguments = [*ARGUMENTS, *(option for option in options if option.startswith(USED_OPTIONS))]
    arguments += ["-iquote", folder] * bool(folder) + [f"-I{entry}" for entry in include_folders(options)]
    module = cindex()
    try:
        return module.Index.create().parse(SOURCE, arguments, list(files.items()), _KEEP_GOING)
    except module.TranslationUnitLoadError:
        raise LaunchError(f"libclang does not accept the options {shown(list(options))}") from None


def presumed(location: Any) -> tuple[str, int]:
    """Return file and line of a place, as `#line` has them."""
    module = cindex()
    name, line, column = module._CXString(), ctypes.c_uint(), ctypes.c_uint()
    _library().clang_getPresumedLocation(location, name, line, column)
    text = module.conf.lib.clang_getCString(name)
    return str(getattr(text, "value", text)), line.value


def binary_operator(cursor: Any) -> str:
    """Return the sign of a binary operator or an assignment."""
    return BINARY[_library().clang_getCursorBinaryOperatorKind(cursor)]


def unary_operator(cursor: Any) -> str:
    """Return the sign of a unary operator: one of UNARY; empty for others."""
    kind = _library().clang_getCursorUnaryOperatorKind(cursor)
    return UNARY[kind] if 0 < kind < len(UNARY) else ""


def initialiser(variable: Any) -> Any | None:
    """Return the expression that initialises a variable."""
    lib, module = _library(), cindex()
    results = lib.clang_Cursor_getVarDeclInitializer(variable)
    if lib.clang_equalCursors(results, module.conf.lib.clang_getNullCursor()):
        return None
    results._tu = variable._tu
    return results


def constant(cursor: Any) -> int | float | None:
    """Return the value of an expression that the compiler can compute."""
    lib = _library()
    result = lib.clang_Cursor_Evaluate(cursor)
    if not result:
        return None
    try:
        kind = lib.clang_EvalResult_getKind(result)
        if kind == 1:
            unsigned = lib.clang_EvalResult_isUnsignedInt(result)
            read = lib.clang_EvalResult_getAsUnsigned if unsigned else lib.clang_EvalResult_getAsLongLong
            return int(read(result))
        return float(lib.clang_EvalResult_getAsDouble(result)) if kind == 2 else None
    finally:
        lib.clang_EvalResult_dispose(result)


def template_of(function: Any) -> Any | None:
    """Return the template of which a function is an instance."""
    lib = _library()
    template = lib.clang_getSpecializedCursorTemplate(function)
    if lib.clang_equalCursors(template, lib.clang_getNullCursor()):
        return None
    template._tu = function._tu
    return template.get_definition() or template
