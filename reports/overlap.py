"""Work that overlaps with other work: the next item is made while one is used."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def prefetch(items: Iterator[Item]) -> Iterator[Item]:
    """The same items, and each one is made while the one before it is used. Errors come where they would have come."""
    ended = object()
    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(next, items, ended)
        while (item := following.result()) is not ended:
            following = thread.submit(next, items, ended)
            yield item  # type: ignore[misc]
