"""Digests of the results of launches, comparable between an emulator and a GPU, and the differences between two runs."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..documents import json_of, require, text_of
from ..errors import SimtbedError
from ..escaping import printable
from ..ir import nodes as ir
from ..ir.ops import TABLE
from ..ir.walk import expressions, statements
from ..language.types import Scalar, holds_floats
from ..runtime.prepared import prepare
from ..runtime.result import LaunchDetails

FORMAT, VERSION = "simtbed launches", 1
MOST = 10
"""Tests listed by a comparison."""
Answers = Mapping[str, Mapping[str, list[str]]]
"""By test, without its engine, and by engine: a line for each launch."""


def digest(arrays: Iterable[npt.NDArray[Any]]) -> str:
    """Return the sha256 of arrays, in order. All NaNs are equal, as in comparisons of engines."""
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
    """Yield the fields of structs, without the padding between them."""
    if array.dtype.names is None:
        yield array
    for name in array.dtype.names or ():
        yield from _plain(array[name])


def rounds(program: ir.Program) -> bool:
    """Return whether a program uses operations that CUDA's own functions may round differently."""
    body = prepare(program).program.kernel.body
    used = (e for s in statements(body) for e in expressions(s) if isinstance(e, ir.Op))
    return any(TABLE[e.name].policy_for(_type(e)).name == "ulp" for e in used)


def _type(op: ir.Op) -> Scalar:
    """Return the type of an operation."""
    result = TABLE[op.name].deciding(op.args).type
    assert isinstance(result, Scalar)
    return result


def answer(result: LaunchDetails) -> str:
    """Return a launch as one line: its kernel and shape, and the digest of its results if all engines must agree on their bits.

    There is no digest if CUDA's own functions round, for arrays that depend on the order of threads, or for device arrays not
    copied back.
    """
    request = result.request
    prepared, kernel = prepare(request.program), request.program.kernel.name
    is_portable = request.maths == "portable" and request.specialisation.own_code is None
    if not is_portable and rounds(request.program):
        bits = "rounds"
    else:
        own = sorted(result.buffers.keys() - request.device_arrays.keys())
        dependent = prepared.order_dependent
        exact = [name for name in own if name not in dependent]
        bits = digest(result.buffers[name] for name in exact) if exact or not own else "depends on the order of threads"
        if exact and len(exact) < len(own):
            bits = f"without {', '.join(name for name in own if name in dependent)}: {bits}"
    return f"{kernel} {request.grid} {request.block}: {bits}"


def compared_bits(answers: Answers) -> tuple[int, int]:
    """Return the number of launches whose bits are compared, and of all launches."""
    lines = [line for by_engine in answers.values() for several in by_engine.values() for line in several]
    return sum(len(line.rpartition(" ")[2]) == 64 for line in lines), len(lines)


def as_text(answers: Answers) -> str:
    """Return the record of a run, which `read` reads."""
    tests = {test: dict(sorted(answers[test].items())) for test in sorted(answers)}
    return json.dumps({"format": FORMAT, "version": VERSION, "tests": tests}, indent=1) + "\n"


def read(path: Path) -> Answers:
    """Read the record of a run. Raises SimtbedError, one line."""
    from .schemas import Launches  # late: most runs compare no launches

    try:
        content = json_of(text_of(path))
        require(content, Launches)
    except ValueError as error:
        raise SimtbedError(f"{printable(path)}: expected what --simtbed-write-launches wrote: {error}") from None
    tests: Answers = content["tests"]
    return tests


def differences(answers: Answers, recorded: Answers, name: str) -> list[str]:
    """Return the differences between a run and a recorded one: tests, numbers of launches, results.

    Each engine of the run is compared with the first engine of the record. name: of the record.
    """
    if not any(lines for by_engine in recorded.values() for lines in by_engine.values()):
        return [f"{name} has no launches"]
    result = [f"{test}: made no launch; {name} has some" for test in recorded if test not in answers]
    for test, by_engine in answers.items():
        if test not in recorded:
            result.append(f"{test}: {name} knows no launch of it")
            continue
        expected = next(iter(recorded[test].values()))
        for engine, lines in by_engine.items():
            if len(lines) != len(expected):
                result.append(f"{test}: {_many(len(lines))} on {engine}; {name} has {len(expected)}")
                continue
            unequal = list((Counter(lines) - Counter(expected)).elements())
            result += [f"{test}: not as in {name}, on {engine}: {line}" for line in sorted(unequal)]
    more = [f"and {len(result) - MOST} more differences"] if len(result) > MOST else []
    return result[:MOST] + more


def _many(count: int) -> str:
    return f"{count} launch{'' if count == 1 else 'es'}"
