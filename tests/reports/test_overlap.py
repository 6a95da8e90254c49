"""Items that are made while the ones before them are used."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from simtbed.reports.overlap import prefetch


def test_one_item_is_made_ahead_and_errors_come_in_their_place() -> None:
    made = []

    def items() -> Iterator[int]:
        for number in range(5):
            made.append(number)
            yield number
        raise ValueError("the end")

    used = []

    def use() -> None:
        for number in prefetch(items()):
            used.append(number)
            assert len(made) <= len(used) + 1

    with pytest.raises(ValueError, match="the end"):
        use()
    assert used == made == [0, 1, 2, 3, 4]


def test_who_stops_early_leaves_nothing_running() -> None:
    closed = []

    def items() -> Iterator[int]:
        try:
            yield from range(100)
        finally:
            closed.append(True)

    source = items()
    some = prefetch(source)
    assert next(some) == 0
    some.close()  # type: ignore[attr-defined]
    source.close()  # type: ignore[attr-defined]
    assert closed == [True]


def test_nothing_is_nothing() -> None:
    assert list(prefetch(iter(()))) == []
