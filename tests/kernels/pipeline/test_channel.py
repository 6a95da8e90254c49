"""Channel between two stages: order, capacity, and no unnecessary wake-up of threads."""

import random
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from simtbed.kernels.pipeline import channel
from simtbed.kernels.pipeline.channel import Channel, Closed

SOON = 10.0


def _threads(count: int, work: Callable[[int], None]) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    return threads


def _end(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(SOON)
        assert not thread.is_alive()


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("capacity", [1, 3, 8])
def test_items_are_taken_once_and_all_threads_end(capacity: int) -> None:
    channel_under_test, total, lock = Channel(capacity), 300, threading.Lock()
    numbers, received = iter(range(total)), []

    def put(seed: int) -> None:
        draw = random.Random(seed)
        while True:
            with lock:
                number = next(numbers, total)
            if number == total:
                return
            if draw.random() < 0.1:
                time.sleep(0.0005)
            channel_under_test.put(number, number * number)

    def take(_: int) -> None:
        while (result := channel_under_test.take()) is not None:
            with lock:
                received.append(result)

    takers, putters = _threads(5, take), _threads(capacity, put)
    _end(putters)
    channel_under_test.end(total)
    _end(takers)
    assert sorted(received) == [(number, number * number) for number in range(total)]


class _CountingCondition(threading.Condition):
    """Counts waiting and woken threads."""

    waiting = woken = 0

    def wait(self, timeout: float | None = None) -> bool:
        _CountingCondition.waiting += 1
        result = super().wait(timeout)
        _CountingCondition.woken += 1
        return result


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> type[_CountingCondition]:
    _CountingCondition.waiting = _CountingCondition.woken = 0
    monkeypatch.setattr(channel, "threading", SimpleNamespace(Lock=threading.Lock, Condition=_CountingCondition))
    return _CountingCondition


def test_an_item_wakes_one_taker(counted: type[_CountingCondition]) -> None:
    channel_under_test = Channel(8)
    takers = _threads(6, lambda _: channel_under_test.take() and None)
    _until(lambda: counted.waiting == 6)
    channel_under_test.put(1, "later")
    assert counted.woken == 0
    channel_under_test.put(0, "now")
    _until(lambda: sum(thread.is_alive() for thread in takers) == 4)
    assert counted.woken == 2
    channel_under_test.end(2)
    _end(takers)


def test_taking_an_item_wakes_the_thread_with_capacity(counted: type[_CountingCondition]) -> None:
    channel_under_test = Channel(2)
    for number in range(2):
        channel_under_test.put(number, number)
    putters = _threads(4, lambda number: channel_under_test.put(5 - number, 5 - number))
    _until(lambda: counted.waiting == 4)
    for number in range(6):
        assert channel_under_test.take() == (number, number)
        _until(lambda number=number: sum(thread.is_alive() for thread in putters) == max(3 - number, 0))  # type: ignore[misc]
        assert counted.woken == min(number + 1, 4)
    _end(putters)


def test_the_last_item_ends_all_takers() -> None:
    channel_under_test = Channel(4)
    channel_under_test.end(1)
    result = []
    takers = _threads(4, lambda _: result.append(channel_under_test.take()))
    time.sleep(0.05)
    channel_under_test.put(0, "only")
    _end(takers)
    assert sorted(result, key=str) == [(0, "only"), None, None, None]


def test_closing_ends_all_waiting_threads() -> None:
    full, empty, ended = Channel(1), Channel(1), []
    full.put(0, None)

    def wait(number: int) -> None:
        with pytest.raises(Closed):
            full.put(number + 1, None) if number % 2 else empty.take()
        ended.append(number)

    threads = _threads(6, wait)
    time.sleep(0.05)
    full.close()
    empty.close()
    _end(threads)
    assert len(ended) == 6
