"""Bounded queue between two stages of a flow. It restores the order of the items."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any


class Closed(BaseException):
    """The flow ends early: raised in stages that wait. Not an Exception, so that no handler of a stage catches it."""


@dataclass(frozen=True)
class Failure:
    """An error in place of an item. No item follows it."""

    error: BaseException


class Channel:
    """Items numbered from 0, at most `capacity` from the next one to take. total: number of items, -1 while unknown.

    A change wakes only threads that can continue: each waking thread needs the interpreter's lock.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._items: dict[int, Any] = {}
        self._next = 0
        self.total = -1
        self._closed = False
        self._lock = threading.Lock()
        self._available = threading.Condition(self._lock)
        self._freed: dict[int, threading.Condition] = {}  # by number of the waiting item

    def put(self, number: int, item: Any) -> None:
        """Wait for capacity, then insert item `number`. Raise Closed if the flow ends."""
        with self._lock:
            if not self._accepts(number):
                self._freed[number] = free = threading.Condition(self._lock)
                free.wait_for(lambda: self._accepts(number))
                del self._freed[number]
            if self._closed:
                raise Closed
            self._items[number] = item
            if number == self._next:
                self._available.notify()

    def _accepts(self, number: int) -> bool:
        return self._closed or number < self._next + self.capacity

    def end(self, total: int) -> None:
        """Set the number of items to `total`."""
        with self._lock:
            self.total = total
            self._available.notify_all()

    def take(self) -> tuple[int, Any] | None:
        """Return (number, item) in order, each to one thread; None after the last one. Raise Closed if the flow ends."""
        with self._lock:
            self._available.wait_for(lambda: self._closed or self._next in self._items or 0 <= self.total <= self._next)
            if self._closed:
                raise Closed
            number = self._next
            if number not in self._items:
                return None
            self._next += 1
            if self._next in self._items:
                self._available.notify()
            elif self._next == self.total:
                self._available.notify_all()  # no further items
            if free := self._freed.get(number + self.capacity):
                free.notify()
            return number, self._items.pop(number)

    def close(self) -> None:
        """End the flow for all threads that use this channel."""
        with self._lock:
            self._closed = True
            self._items.clear()
            self._available.notify_all()
            for free in self._freed.values():
                free.notify()
