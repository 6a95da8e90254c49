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
    """Items by their numbers from 0, at most `room` of them from the next one to be taken on. total: -1 until it is known."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._items: dict[int, Any] = {}
        self._taken = 0
        self.total = -1
        self._closed = False
        self._changed = threading.Condition()

    def put(self, number: int, item: Any) -> None:
        """Wait for room, and put item `number` there. Raises Closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or number < self._taken + self.room)
            if self._closed:
                raise Closed
            self._items[number] = item
            self._changed.notify_all()

    def end(self, total: int) -> None:
        """There are no items but the first `total`."""
        with self._changed:
            self.total = total
            self._changed.notify_all()

    def take(self) -> tuple[int, Any] | None:
        """(number, item), the items in their order, each to one taker; None after the last one. Raises Closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._taken in self._items or 0 <= self.total <= self._taken)
            if self._closed:
                raise Closed
            number = self._taken
            if number not in self._items:
                return None
            self._taken += 1
            self._changed.notify_all()
            return number, self._items.pop(number)

    def close(self) -> None:
        """Whoever waits here, or comes, is told that the flow ends."""
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()
