"""Entry point of the process of a CUDA C++ file: launch its kernels as a TOML file describes.

options = ["-DTILE=16"]

[[launch]]
kernel = "scale<float>"
grid = 4
block = 256
[launch.args]
n = 1000
a = 2.0
x = {type = "f32", shape = 1000, values = "random"}
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from simtbed import CompileError, FaultError, SimtbedError, UnavailableError, cuda_file, empty, launch
from simtbed.documents import text_of, toml_of
from simtbed.language.types import SCALARS

from ..printing import print_message
from .uncaught import UNAVAILABLE, show_without

OPTIONS = ("grid", "block", "shared", "cooperative", "args", "kernel")
_SEED = 1


def run(path: str, description: str) -> None:
    """Launch the kernels of a CUDA C++ file in the order of its description.

    Exit with 1 after a fault, with 2 for wrong files, with 3 if a component is missing.
    """
    show_without(__file__)
    try:
        content = _described(description)
        launches = content["launch"]
        names = list(dict.fromkeys(entry["kernel"] for entry in launches))
        templates = [name for name in names if "<" in name]
        source = cuda_file(path, content.get("options", ()), templates)
        kernels = {name: source[name] for name in names}
        arguments = [_arguments(entry.get("args", {}), f"{description}: {entry['kernel']}") for entry in launches]
        faults = 0
        for entry, args in zip(launches, arguments, strict=True):
            how = {key: value for key, value in entry.items() if key not in ("args", "kernel")}
            how |= {key: tuple(value) for key, value in how.items() if isinstance(value, list)}
            try:
                launch(kernels[entry["kernel"]], args=args, **how)
            except FaultError:
                faults += 1
        if faults:
            sys.exit(1)
    except (SimtbedError, CompileError) as error:
        _refuse(str(error), UNAVAILABLE if isinstance(error, UnavailableError) else 2)


def _described(description: str) -> dict[str, Any]:
    try:
        content = toml_of(text_of(description))
    except ValueError as error:
        raise SimtbedError(f"{description}: {error}") from None
    launches = content.get("launch")
    if set(content) - {"options", "launch"} or not isinstance(launches, list) or not launches:
        raise SimtbedError(f"{description}: expected tables [[launch]], and options = [...] before them")
    for entry in launches:
        missing = [key for key in ("kernel", "grid", "block") if key not in entry]
        unknown = [key for key in entry if key not in OPTIONS]
        if missing or unknown:
            wrong = f"has no {missing[0]}" if missing else f"has an unknown key {unknown[0]}"
            raise SimtbedError(f"{description}: a [[launch]] {wrong}; its keys are {', '.join(OPTIONS)}")
        if not isinstance(entry["kernel"], str) or not isinstance(entry.get("args", {}), dict):
            raise SimtbedError(f"{description}: kernel is a text and args a table")
    return content


def _arguments(args: Mapping[str, Any], place: str) -> dict[str, Any]:
    return {name: _argument(value, f"{place}: {name}") for name, value in args.items()}


def _argument(value: Any, place: str) -> Any:
    """Return a number, or the array that a table describes."""
    if not isinstance(value, Mapping):
        return tuple(value) if isinstance(value, list) else value
    type = SCALARS.get(str(value.get("type")))
    shape = value.get("shape")
    shape = tuple(shape) if isinstance(shape, list) else (shape,)
    only_known = set(value) <= {"type", "shape", "values"}
    if type is None or not only_known or not all(isinstance(n, int) and n > 0 for n in shape):
        raise SimtbedError(f'{place}: an array is {{type = "f32", shape = 1000, values = "random"}}')
    values, dtype = value.get("values", "empty"), type.dtype
    generator = np.random.default_rng(_SEED)
    if values == "empty":
        return empty(shape, type)
    if values == "random":
        numbers = generator.random(shape) if type.is_float else generator.integers(0, 100, shape)
        return numbers.astype(dtype)
    if values == "range":
        return np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    if isinstance(values, Sequence) and not isinstance(values, str):
        array = np.array(values, dtype)
        if array.size == np.prod(shape):
            return array.reshape(shape)
    elif isinstance(values, int | float):
        return np.full(shape, values, dtype)
    raise SimtbedError(
        f'{place}: values are "empty", "random", "range", a number, or a list of {np.prod(shape)} numbers'
    )


def _refuse(message: str, code: int = 2) -> NoReturn:
    print_message(f"simtbed: {message}")
    sys.exit(code)
