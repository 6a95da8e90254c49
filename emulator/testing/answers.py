"""What launches answered, as digests that an emulator and a GPU share, and how the answers of two runs differ."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import SimtbedError
from ..ir import nodes as ir
from ..ir.ops import TABLE
from ..ir.walk import expressions, statements
from ..language.types import Scalar, holds_floats
from ..runtime.prepared import prepare
from ..runtime.result import Result

FORMAT, VERSION = "simtbed launches", 1
MOST = 10
"""Tests that a comparison names."""
Answers = Mapping[str, Mapping[str, list[str]]]
"""By test, without its engine, and by engine: a line for each launch."""


def digest(arrays: Iterable[npt.NDArray[Any]]) -> str:
    """sha256 of arrays, in order. Every NaN is the same NaN: that is the equality engines owe each other."""
    whole = hashlib.sha256()
    for array in chain.from_iterable(map(_plain, arrays)):
        values = np.ascontiguousarray(array)
        if values.dtype.kind == "c":
            values = values.view(values.real.dtype)
        if holds_floats(values.dtype):
            with np.errstate(invalid="ignore"):  # a signalling NaN
                values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
        whole.update(f"{values.dtype}{values.shape}".encode() + values.tobytes())
    return whole.hexdigest()


def _plain(array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """The fields of structs, for what lies between them is nobody's."""
    if array.dtype.names is None:
        yield array
    for name in array.dtype.names or ():
        yield from _plain(array[name])


def rounds(program: ir.Program) -> bool:
    """Whether a program uses operations that engines may round differently."""
    body = prepare(program).program.kernel.body
    used = (e for s in statements(body) for e in expressions(s) if isinstance(e, ir.Op))
    return any(TABLE[e.name].policy_for(_type(e)).name == "ulp" for e in used)


def _type(op: ir.Op) -> Scalar:
    """The one that an operation has."""
    found = TABLE[op.name].deciding(op.args).type
    assert isinstance(found, Scalar)
    return found


def answer(result: Result) -> str:
    """A launch in a line: its kernel and its shape, and the digest of what it wrote where engines owe each other the bits:
    not where operations may round differently, not where the order of threads matters, and not what stays with the
    engine, which no GPU has sent back yet."""
    request = result.request
    prepared, kernel = prepare(request.program), request.program.kernel.name
    if rounds(request.program):
        bits = "rounds"
    elif prepared.ordered:
        bits = "depends on the order of threads"
    else:
        bits = digest(result.buffers[name] for name in sorted(result.buffers) if name not in request.device_arrays)
    return f"{kernel} {request.grid} {request.block}: {bits}"


def compared_bits(answers: Answers) -> tuple[int, int]:
    """Launches whose bits are compared, and all."""
    lines = [line for by_engine in answers.values() for several in by_engine.values() for line in several]
    return sum(len(line.rpartition(" ")[2]) == 64 for line in lines), len(lines)


def as_text(answers: Answers) -> str:
    """The record of a run, as `read` takes it."""
    tests = {test: dict(sorted(answers[test].items())) for test in sorted(answers)}
    return json.dumps({"format": FORMAT, "version": VERSION, "tests": tests}, indent=1) + "\n"


def read(path: Path) -> Answers:
    """The record of a run. Raises SimtbedError, one line."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if (content["format"], content["version"]) != (FORMAT, VERSION):
            raise ValueError(f"its format is {content['format']!r} {content['version']!r}")
        return {
            str(test): {str(engine): [str(line) for line in lines] for engine, lines in by_engine.items()}
            for test, by_engine in content["tests"].items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise SimtbedError(f"{path}: expected what --simtbed-write-launches wrote: {error}") from None


def differences(made: Answers, recorded: Answers, name: str) -> list[str]:
    """How a run differs from a recorded one: in tests, in the number of launches, in what they answered. Each engine of the
    run is held to the first one of the record. name: of the record."""
    if not any(lines for by_engine in recorded.values() for lines in by_engine.values()):
        return [f"{name} has no launches"]
    found = [f"{test}: made no launch; {name} has some" for test in recorded if test not in made]
    for test, by_engine in made.items():
        if test not in recorded:
            found.append(f"{test}: {name} knows no launch of it")
            continue
        expected = next(iter(recorded[test].values()))
        for engine, lines in by_engine.items():
            if len(lines) != len(expected):
                found.append(f"{test}: {_many(len(lines))} on {engine}; {name} has {len(expected)}")
                continue
            apart = list((Counter(lines) - Counter(expected)).elements())
            found += [f"{test}: not as in {name}, on {engine}: {line}" for line in sorted(apart)]
    more = [f"and {len(found) - MOST} more differences"] if len(found) > MOST else []
    return found[:MOST] + more


def _many(count: int) -> str:
    return f"{count} launch{'' if count == 1 else 'es'}"
