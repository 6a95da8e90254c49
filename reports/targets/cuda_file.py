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

import math
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
from simtbed import CompileError, FaultError, SimtbedError, UnavailableError, cuda_file, empty, launch
from simtbed.checked import shown
from simtbed.documents import joined, require, text_of, toml_of
from simtbed.escaping import printable
from simtbed.language.types import SCALARS, Scalar
from simtbed.runtime.scalars import checked_scalar

from ..printing import print_message
from .uncaught import UNAVAILABLE, show_without

_SEED = 1


def run(path: str, description: str) -> None:
    """Launch the kernels of a CUDA C++ file in the order of its description.

    Exit with 1 after a fault, with 2 for wrong files, with 3 if a component is missing.
    """
    show_without(__file__)
    try:
        content = _described(description)
        launches = {f"{printable(description)}: launch[{n}]": entry for n, entry in enumerate(content["launch"])}
        names = list(dict.fromkeys(entry["kernel"] for entry in launches.values()))
        templates = [name for name in names if "<" in name]
        source = cuda_file(path, content.get("options", ()), templates)
        kernels = {name: source[name] for name in names}
        arguments = [_arguments(entry, place) for place, entry in launches.items()]
        faults = 0
        for (place, entry), args in zip(launches.items(), arguments, strict=True):
            how = {key: value for key, value in entry.items() if key not in ("args", "kernel")}
            how |= {key: tuple(value) for key, value in how.items() if isinstance(value, list)}
            try:
                launch(kernels[entry["kernel"]], args=args, **how)
            except FaultError:
                faults += 1
            except SimtbedError as error:
                raise SimtbedError(f"{place}: {error}") from None
        if faults:
            sys.exit(1)
    except (SimtbedError, CompileError) as error:
        _refuse(str(error), UNAVAILABLE if isinstance(error, UnavailableError) else 2)


def _described(description: str) -> dict[str, Any]:
    """Return the content of a description. Raises SimtbedError."""
    from .launch_schema import Argument, ArrayTable, Description

    try:
        content: dict[str, Any] = toml_of(text_of(description))
        require(content, Description)
        for number, entry in enumerate(content["launch"]):
            for name, value in entry.get("args", {}).items():
                schema = ArrayTable if isinstance(value, dict) else Argument
                require(value, schema, joined(f"launch[{number}].args", name))
    except ValueError as error:
        raise SimtbedError(f"{printable(description)}: {error}") from None
    return content


def _arguments(entry: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return the arguments of a launch by name. Raises SimtbedError."""
    args = {}
    for name, value in entry.get("args", {}).items():
        if isinstance(value, dict):
            try:
                value = _array(value)
            except SimtbedError as error:
                raise SimtbedError(f"{place}.args.{printable(name)}: {error}") from None
        args[name] = tuple(value) if isinstance(value, list) else value
    return args


def _array(table: Mapping[str, Any]) -> Any:
    """Return the array that a table describes. Raises SimtbedError."""
    type, shape, values = SCALARS.get(table["type"]), table["shape"], table.get("values", "empty")
    if type is None:
        raise SimtbedError(f"type: expected {', '.join(SCALARS)}, got {shown(table['type'])}")
    shape = tuple(shape) if isinstance(shape, list) else (shape,)
    new = empty(shape, type)
    if values == "empty":
        return new
    array, count = new.template(), math.prod(shape)
    if values == "random":
        generator = np.random.default_rng(_SEED)
        array[...] = generator.random(shape) if type.is_float else generator.integers(0, 100, shape)
    elif values == "range":
        if type.kind != "bool":
            checked_scalar("the last of its values", type, count - 1)
        array[...] = np.arange(count).reshape(shape)
    elif isinstance(values, str):
        raise SimtbedError(f'values: expected "empty", "random", "range", a number or a list, got {shown(values)}')
    elif isinstance(values, list):
        numbers = list(_numbers(values, type, "values"))
        if len(numbers) != count:
            raise SimtbedError(f"values: expected {count:,} numbers, got {len(numbers):,}")
        array[...] = np.array(numbers, type.dtype).reshape(shape)
    else:
        array[...] = checked_scalar("values", type, values)
    return array


def _numbers(values: list[Any], type: Scalar, place: str) -> Iterator[Any]:
    """Yield the numbers of nested lists in order. Raises LaunchError for a value that the type does not hold."""
    for number, value in enumerate(values):
        if isinstance(value, list):
            yield from _numbers(value, type, f"{place}[{number}]")
        else:
            yield checked_scalar(f"{place}[{number}]", type, value)


def _refuse(message: str, code: int = 2) -> NoReturn:
    print_message(f"simtbed: {message}")
    sys.exit(code)
