"""Items between two stages: in order, in bounded room, and no thread wakes in vain."""

from __future__ import annotations

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
    made = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(count)]
    for thread in made:
        thread.start()
    return made


def _end(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(SOON)
        assert not thread.is_alive()


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("room", [1, 3, 8])
def test_whoever_puts_them_items_are_taken_once_and_all_threads_end(room: int) -> None:
    between, total, lock = Channel(room), 300, threading.Lock()
    numbers, taken = iter(range(total)), []

    def put(seed: int) -> None:
        draw = random.Random(seed)
        while True:
            with lock:
                number = next(numbers, total)
            if number == total:
                return
            if draw.random() < 0.1:
                time.sleep(0.0005)
            between.put(number, number * number)

    def take(_: int) -> None:
        while (found := between.take()) is not None:
            with lock:
                taken.append(found)

    takers, putters = _threads(5, take), _threads(room, put)
    _end(putters)
    between.end(total)
    _end(takers)
    assert sorted(taken) == [(number, number * number) for number in range(total)]


class _Counted(threading.Condition):
    """Counts who waits, and who woke."""

    waiting = woken = 0

    def wait(self, timeout: float | None = None) -> bool:
        _Counted.waiting += 1
        found = super().wait(timeout)
        _Counted.woken += 1
        return found


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> type[_Counted]:
    _Counted.waiting = _Counted.woken = 0
    monkeypatch.setattr(channel, "threading", SimpleNamespace(Lock=threading.Lock, Condition=_Counted))
    return _Counted


def test_an_item_wakes_one_taker(counted: type[_Counted]) -> None:
    between = Channel(8)
    takers = _threads(6, lambda _: between.take() and None)
    _until(lambda: counted.waiting == 6)
    between.put(1, "later")
    assert counted.woken == 0
    between.put(0, "now")
    _until(lambda: sum(thread.is_alive() for thread in takers) == 4)
    assert counted.woken == 2
    between.end(2)
    _end(takers)


def test_an_item_that_is_taken_wakes_the_thread_that_has_room_now(counted: type[_Counted]) -> None:
    between = Channel(2)
    for number in range(2):
        between.put(number, number)
    putters = _threads(4, lambda number: between.put(5 - number, 5 - number))
    _until(lambda: counted.waiting == 4)
    for number in range(6):
        assert between.take() == (number, number)
        _until(lambda number=number: sum(thread.is_alive() for thread in putters) == max(3 - number, 0))  # type: ignore[misc]
        assert counted.woken == min(number + 1, 4)
    _end(putters)


def test_the_last_item_tells_all_takers_that_there_is_no_other() -> None:
    between = Channel(4)
    between.end(1)
    found = []
    takers = _threads(4, lambda _: found.append(between.take()))
    time.sleep(0.05)
    between.put(0, "only")
    _end(takers)
    assert sorted(found, key=str) == [(0, "only"), None, None, None]


def test_closing_ends_all_who_wait() -> None:
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
