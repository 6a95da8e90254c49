"""Targets of commands: a script, a module, a host function or a shipped variant, identified by the form of its name."""

import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simtbed import SimtbedError
from simtbed.documents import require_file
from simtbed.escaping import printable
from simtbed.host_apis.cuda.declarations import SOURCE_SUFFIXES
from simtbed.kernels import Family

from ..selection import find_variant, variants_called

_FUNCTION = re.compile(r"(?:.*\.py|[A-Za-z_][\w.]*):[A-Za-z_]\w*")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
CUDA_SUFFIXES = (".cu", ".cuh")
_BUILT_SUFFIXES = (*CUDA_SUFFIXES, *SOURCE_SUFFIXES)
"""Suffixes of the first source of a program."""
RUN_SUFFIX = ".json"
"""Suffix of the file of a saved run."""


@dataclass(frozen=True)
class Script:
    """A Python script, run as `python` would with these arguments. emulate: libraries to emulate, separated by commas; None for
    those that it imports, on a machine without a GPU."""

    path: Path
    arguments: tuple[str, ...] = ()
    emulate: str | None = None

    def __str__(self) -> str:
        return printable(" ".join([str(self.path), *self.arguments]))

    @property
    def files(self) -> list[Path]:
        """The input files of the target."""
        return [self.path]


@dataclass(frozen=True)
class Module:
    """A module of a package, run as `python -m` would with these arguments."""

    name: str
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return printable(" ".join([self.name, *self.arguments]))

    @property
    def files(self) -> list[Path]:
        return []


@dataclass(frozen=True)
class Function:
    """A host function without parameters, as "package.module:function" or "file.py:function"."""

    reference: str

    def __str__(self) -> str:
        return printable(self.reference)

    @property
    def files(self) -> list[Path]:
        place = self.reference.rpartition(":")[0]
        return [Path(place)] if place.endswith(".py") else []


@dataclass(frozen=True)
class CudaFile:
    """A CUDA C++ file. description: the TOML file of its launches."""

    path: Path
    description: Path

    def __str__(self) -> str:
        return printable(self.path)

    @property
    def files(self) -> list[Path]:
        return [self.path, self.description]


@dataclass(frozen=True)
class CudaProgram:
    """A whole CUDA C++ program. build: its sources and compiler options. arguments: of its `main`."""

    build: tuple[str, ...]
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return printable(" ".join([*self.build, *["--"] * bool(self.arguments), *self.arguments]))

    @property
    def files(self) -> list[Path]:
        return [Path(word) for word in self.build if Path(word).is_file()]


@dataclass(frozen=True)
class Shipped:
    """A shipped variant of a family. source: the file with its problem; None for the shipped example."""

    family: Family[Any]
    variant: str
    source: Path | None = None

    def __str__(self) -> str:
        return self.variant

    @property
    def files(self) -> list[Path]:
        return [] if self.source is None else [self.source]

    @property
    def name(self) -> str:
        """The unique name FAMILY/VARIANT."""
        return f"{self.family.name}/{self.variant}"

    @property
    def input(self) -> str:
        """The name of the problem in reports."""
        return "the example" if self.source is None else printable(self.source)


Target = Script | Module | Function | CudaFile | CudaProgram | Shipped


def target_name(target: Target) -> str:
    """Return the unique name of a target; FAMILY/VARIANT of a shipped variant."""
    return target.name if isinstance(target, Shipped) else str(target)


def is_program(name: str) -> bool:
    """Whether a name denotes a program, and arguments may follow it, not a shipped variant or a saved run."""
    if variants_called(name) or name.endswith(RUN_SUFFIX):
        return False
    return (
        name.endswith((".py", *_BUILT_SUFFIXES))
        or bool(_FUNCTION.fullmatch(name))
        or Path(name).is_file()
        or _is_module(name)
    )


def is_built(name: str) -> bool:
    """Whether a name denotes a program whose arguments follow a --, after its sources and compiler options."""
    return name.endswith(_BUILT_SUFFIXES)


def _is_module(name: str) -> bool:
    """Whether the first component of a dotted name is an importable package. Nothing is imported."""
    if not _MODULE.fullmatch(name):
        return False
    top = name.partition(".")[0]
    return Path(top).is_dir() or importlib.util.find_spec(top) is not None


def find_target(
    name: str, arguments: Sequence[str] = (), source: Path | None = None, emulate: str | None = None
) -> Target:
    """Return the target with a name and arguments. source: the input of a shipped variant. emulate: as in `Script`.

    Raises SimtbedError if there is no such target.
    """
    if name.endswith(RUN_SUFFIX):
        raise SimtbedError(f"{printable(name)} is a saved run: only simtbed check and simtbed diff read one")
    if not is_program(name):
        if arguments:
            raise SimtbedError(printable(f"{name} takes no arguments, got {' '.join(arguments)}"))
        return Shipped(*find_variant(name), source)
    if source is not None:
        raise SimtbedError(f"--input needs a shipped variant; write the arguments of {printable(name)} after its name")
    if name.endswith(".ipynb"):
        script = f"jupyter nbconvert --to script {printable(name)}"
        raise SimtbedError(
            f"{printable(name)} is a notebook: write it as a script by {script}, or use st.profiling in it"
        )
    if _FUNCTION.fullmatch(name):
        if arguments:
            raise SimtbedError(printable(f"{name} is called without arguments, got {' '.join(arguments)}"))
        return Function(name)
    if name.endswith(_BUILT_SUFFIXES):
        return _cuda_file(name, arguments)
    if not name.endswith(".py") and not Path(name).is_file():
        return Module(name, tuple(arguments))
    require_file(name, "; expected a script, package.module, module:function, file.py:function or a shipped variant")
    return Script(Path(name), tuple(arguments), emulate)


def _cuda_file(name: str, arguments: Sequence[str]) -> CudaFile | CudaProgram:
    """Return a CUDA C++ file with the description of its launches, the argument or the file's name with .toml; else a program.

    The arguments of a program's `main` are after `--`, its other sources and compiler options before.
    """
    path = Path(name)
    require_file(path)
    if "--" in arguments:
        end = list(arguments).index("--")
        return CudaProgram((name, *arguments[:end]), tuple(arguments[end + 1 :]))
    description = Path(arguments[0]) if arguments else path.with_suffix(".toml")
    if len(arguments) > 1 or not (description.suffix == ".toml" and (arguments or description.is_file())):
        return CudaProgram((name, *arguments))
    require_file(description, f"; expected the launches of the kernels of {printable(name)}")
    return CudaFile(path, description)
