"""One test for every row of a table."""

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pytest

Row = TypeVar("Row")


def check_each(rows: Iterable[Row], check: Callable[[Row], object], name: Callable[[Row], object] = repr) -> None:
    """Call check(row) for every row, then fail with the name and the error of each failed row."""
    failures = []
    for row in rows:
        try:
            check(row)
        except (Exception, pytest.fail.Exception) as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            failures.append(f"{name(row)}: {type(error).__name__} in line {place.lineno}: {error}")
    assert not failures, f"{len(failures)} rows fail\n" + "\n".join(failures)


def each_row(
    rows: Iterable[Any], name: Callable[[Any], object] = repr
) -> Callable[[Callable[..., object]], Callable[..., None]]:
    """Make one test of a check of a row, its first parameter; the others are fixtures."""

    def decorate(check: Callable[..., object]) -> Callable[..., None]:
        signature = inspect.signature(check)

        @functools.wraps(check)
        def test(**fixtures: Any) -> None:
            check_each(rows, lambda row: check(row, **fixtures), name)

        vars(test)["__signature__"] = signature.replace(parameters=[*signature.parameters.values()][1:])
        return test

    return decorate


def first_fast(values: Sequence[str]) -> list[Any]:
    """Return the values of a parameter: the first one for the fast tests, the others for the slow ones."""
    return [values[0], *(pytest.param(value, marks=pytest.mark.slow) for value in values[1:])]
