"""One test for every row of a table."""

import traceback
from collections.abc import Callable, Iterable
from typing import TypeVar

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
