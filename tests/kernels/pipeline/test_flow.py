"""Flows: order, limits, errors and ends, for any stages and threads."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as some
from simtbed import on_gpu
from simtbed.kernels.pipeline import AHEAD, Flow, workers_for
from simtbed.runtime.cores import current_cores, on_cores
from simtbed.runtime.gpus import current_gpu


def threads() -> int:
    return threading.active_count()


@pytest.mark.slow
@given(
    count=some.integers(0, 40),
    workers=some.integers(1, 5),
    slow=some.sets(some.integers(0, 39), max_size=4),
    group=some.integers(1, 7),
)
def test_order_is_preserved(count: int, workers: int, slow: set[int], group: int) -> None:
    def late(number: int) -> int:
        if number in slow:
            time.sleep(0.001)
        return number

    def grouped(numbers: Iterator[int]) -> Iterator[list[int]]:
        results: list[int] = []
        for number in numbers:
            results.append(number)
            if len(results) == group:
                yield results
                results = []
        if results:
            yield results

    before = threads()
    flow = Flow(range(count)).map(late, workers).through(grouped).map(sum, workers)
    received: list[int] = []
    flow.into(received.append)
    assert received == [sum(range(first, min(first + group, count))) for first in range(0, count, group)]
    assert threads() == before
    assert list(flow) == received  # a flow can run again if its source can


@pytest.mark.parametrize("workers", [1, 3])
def test_the_number_of_items_is_limited(workers: int) -> None:
    created, finished, most = 0, 0, 0

    def source() -> Iterator[int]:
        nonlocal created, most
        for number in range(60):
            created += 1
            most = max(most, created - finished)
            yield number

    def sink(number: int) -> None:
        nonlocal finished
        time.sleep(0.002)
        finished += 1

    flow = Flow(source()).map(lambda number: number, workers).through(lambda numbers: numbers)
    flow.into(sink)
    assert finished == 60
    assert 2 + AHEAD < most <= flow.max_items


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("error", [ValueError("wrong"), MemoryError(), KeyboardInterrupt()])
def test_the_first_error_in_the_order_of_items_is_raised(workers: int, error: BaseException) -> None:
    def work(number: int) -> int:
        if number == 7:
            time.sleep(0.02)  # a later item fails first
            raise error
        if number == 8:
            raise RuntimeError("not the first")
        return number

    def source() -> Iterator[int]:
        yield from range(9)
        raise OSError("nor this one")

    before, received = threads(), list[int]()
    with pytest.raises(type(error)) as raised:
        Flow(source()).map(work, workers).map(lambda number: number, 2).into(received.append)
    assert raised.value is error
    assert received == [0, 1, 2, 3, 4, 5, 6]
    assert threads() == before


def test_an_error_of_the_source_follows_earlier_items() -> None:
    def source() -> Iterator[int]:
        yield from range(3)
        raise ValueError("the end")

    received: list[int] = []
    with pytest.raises(ValueError, match="the end"):
        Flow(source()).through(lambda numbers: (2 * n for n in numbers)).into(received.append)
    assert received == [0, 2, 4]


def test_an_error_of_the_sink_ends_all_stages() -> None:
    closed = []

    def stage(numbers: Iterator[int]) -> Iterator[int]:
        try:
            yield from numbers
        finally:
            closed.append(threading.current_thread())

    def sink(number: int) -> None:
        if number == 5:
            raise OSError("full")

    before = threads()
    with pytest.raises(OSError, match="full"):
        Flow(iter(range(1_000_000))).through(stage).map(lambda number: number, 3).into(sink)
    assert threads() == before
    assert len(closed) == 1 and closed[0] is not threading.current_thread()


def test_closing_early_ends_all_threads() -> None:
    closed = []

    def source() -> Iterator[int]:
        try:
            yield from range(1_000_000)
        finally:
            closed.append(True)

    before = threads()
    with closing(iter(Flow(source()).map(lambda number: -number, 2))) as items:
        assert next(items) == 0
    assert closed == [True]
    assert threads() == before


def test_a_stage_that_needs_no_more_items_ends_the_flow() -> None:
    def first_two(numbers: Iterator[int]) -> Iterator[int]:
        yield next(numbers)
        yield next(numbers)

    before = threads()
    assert list(Flow(iter(range(1_000_000))).through(first_two)) == [0, 1]
    assert threads() == before


def test_stages_run_in_the_caller_context_on_their_gpus() -> None:
    barrier = threading.Barrier(2)

    def location(number: int) -> tuple[int, int]:
        if number < 2:
            barrier.wait(10)  # both workers have an item
        return current_cores(), current_gpu()

    with on_cores(3), on_gpu(5):
        assert list(Flow(range(2)).map(lambda n: (current_cores(), current_gpu()))) == [(3, 5)] * 2
        assert sorted(Flow(range(2)).map(location, gpus=2)) == [(3, 0), (3, 1)]
        assert list(Flow(range(2)).map_pairs(location, workers=2)) == [(0, (3, 5)), (1, (3, 5))]
        assert [results for _, results in Flow(range(2)).map_pairs(location, gpus=2, workers=5)] == [(3, 0), (3, 1)]
        assert [workers_for(most) for most in (1, 2, 8)] == [1, 2, 3]


def test_stages_overlap() -> None:
    """Two stages wait for each other's items at the same time."""
    barrier = threading.Barrier(2)

    def first(number: int) -> int:
        if number == 1:
            barrier.wait(10)
        return number

    def other(number: int) -> int:
        if number == 0:
            barrier.wait(10)
        return number

    assert list(Flow(range(3)).map(first).map(other)) == [0, 1, 2]
