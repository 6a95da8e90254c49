"""Entry point of the process of a script whose PyCUDA, CuPy, Numba-CUDA or Triton is emulated."""

import ast
import os
import runpy
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from simtbed import SimtbedError, numba_hook
from simtbed.documents import text_of
from simtbed.escaping import printable
from simtbed.stand_ins.install import LIBRARIES, install

from ..launchers import why_unavailable
from ..printing import print_message
from .uncaught import show_without

VARIABLES = {"numba": numba_hook.VARIABLE, "triton": numba_hook.TRITON_VARIABLE}
"""Variables that request the emulator for libraries with an import hook."""
EMULATED = (*LIBRARIES, *VARIABLES)


def emulated_libraries(path: Path, names: str | None) -> tuple[str, ...]:
    """Return the libraries to emulate for a script.

    names: separated by commas, or none; None for those that the script imports, on a machine without a GPU.
    Raises SimtbedError for unknown names.
    """
    if names is not None:
        chosen = tuple(name for name in names.split(",") if name and name != "none")
        if unknown := [name for name in chosen if name not in EMULATED]:
            raise SimtbedError(f"--emulate {printable(unknown[0])}: there are {', '.join(EMULATED)} and none")
        return chosen
    with warnings.catch_warnings(action="ignore"):  # the script's own process shows them
        modules = {f"{name}." for name in _imported_by(path, set())}
    imported = tuple(library for library in LIBRARIES if any(name.startswith(f"{library}.") for name in modules))
    hooked = {"numba": ("numba.cuda.", "numba_cuda_mlir."), "triton": ("triton.",)}
    imported += tuple(
        library
        for library, starts in hooked.items()
        if not numba_hook.is_excluded(VARIABLES[library]) and any(name.startswith(starts) for name in modules)
    )
    return imported if imported and why_unavailable("cuda") else ()


def _imported_by(path: Path, read: set[Path]) -> Iterator[str]:
    """Yield the names that a script imports, and those that modules next to it import. read: the files that were read."""
    read.add(path)
    try:
        names = [*_imported(ast.parse(text_of(path).removeprefix("\ufeff")))]
    except (SimtbedError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for name in names:
        yield name
        module = path.parent / f"{name.partition('.')[0]}.py"
        if module not in read and module.is_file():
            yield from _imported_by(module, read)


def _imported(tree: ast.Module) -> Iterator[str]:
    """Yield the dotted names of the modules that a script imports, and of their attributes `cuda`."""
    aliases = {"numba": "numba"}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (one.name for one in names)
                aliases |= {one.asname: one.name for one in names if one.asname}
            case ast.ImportFrom(module=str(name), names=names, level=0):
                yield from (f"{name}.{one.name}" for one in names)
            case ast.Call(func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__")):
                yield from (
                    one.value for one in node.args[:1] if isinstance(one, ast.Constant) and isinstance(one.value, str)
                )
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "cuda" and isinstance(node.value, ast.Name):
            yield f"{aliases.get(node.value.id, '')}.cuda"


def run(names: Sequence[str], path: str, arguments: Sequence[str]) -> None:
    """Run a script as `python` would, with stand-ins for these libraries."""
    show_without(__file__)
    show_without(runpy.run_path.__code__.co_filename)
    print_message(
        f"simtbed: {' and '.join(names)} emulated: kernels run on an emulator (--emulate none: the installed library)"
    )
    install(name for name in names if name in LIBRARIES)
    for library in VARIABLES.keys() & names:
        numba_hook.request(os.environ, variable=VARIABLES[library])
        numba_hook.enable()
    sys.argv = [path, *arguments]
    sys.path[0] = str(Path(path).resolve().parent)
    runpy.run_path(path, run_name="__main__")
