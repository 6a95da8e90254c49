"""Items between two stages of a flow: a bounded queue that keeps their order whoever puts them there."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any


class Closed(BaseException):
    """The flow ends early: a stage that waits for an item or for room stops. No handler of Exception takes it."""


@dataclass(frozen=True)
class Failure:
    """An error in the place of an item, after which none follows."""

    error: BaseException


class Channel:
    """Items by their numbers from 0, at most `room` of them from the next one to be taken on. total: -1 until it is known.

    Only who can go on is woken: a stage may have many threads, and each that wakes needs the interpreter's lock."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._items: dict[int, Any] = {}
        self._taken = 0
        self.total = -1
        self._closed = False
        self._lock = threading.Lock()
        self._there = threading.Condition(self._lock)
        self._free: dict[int, threading.Condition] = {}  # of each number that there is no room for yet

    def put(self, number: int, item: Any) -> None:
        """Wait for room, and put item `number` there. Raises Closed."""
        with self._lock:
            if not self._has_room(number):
                self._free[number] = free = threading.Condition(self._lock)
                free.wait_for(lambda: self._has_room(number))
                del self._free[number]
            if self._closed:
                raise Closed
            self._items[number] = item
            if number == self._taken:
                self._there.notify()

    def _has_room(self, number: int) -> bool:
        return self._closed or number < self._taken + self.room

    def end(self, total: int) -> None:
        """There are no items but the first `total`."""
        with self._lock:
            self.total = total
            self._there.notify_all()

    def take(self) -> tuple[int, Any] | None:
        """(number, item), the items in their order, each to one taker; None after the last one. Raises Closed."""
        with self._lock:
            self._there.wait_for(lambda: self._closed or self._taken in self._items or 0 <= self.total <= self._taken)
            if self._closed:
                raise Closed
            number = self._taken
            if number not in self._items:
                return None
            self._taken += 1
            if self._taken in self._items:
                self._there.notify()
            elif self._taken == self.total:
                self._there.notify_all()  # nobody need wait for another one
            if free := self._free.get(number + self.room):
                free.notify()
            return number, self._items.pop(number)

    def close(self) -> None:
        """Whoever waits here, or comes, is told that the flow ends."""
        with self._lock:
            self._closed = True
            self._items.clear()
            self._there.notify_all()
            for free in self._free.values():
                free.notify()
