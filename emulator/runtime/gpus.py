"""Which CUDA device launches go to, and work shared by several of them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from ..checked import whole

if TYPE_CHECKING:
    from concurrent.futures import Future

MOST_GPUS = 1024
"""More than any machine has: each one is given a thread."""

Piece = TypeVar("Piece")
Answer = TypeVar("Answer")

_CURRENT: ContextVar[int] = ContextVar("the CUDA device of launches", default=0)


def current_gpu() -> int:
    """The number of the CUDA device that launches of this thread go to."""
    return _CURRENT.get()


@contextmanager
def on_gpu(number: int) -> Iterator[None]:
    """Inside, launches of this thread on the cuda engine go to that CUDA device, counted from 0; outside to the first."""
    before = _CURRENT.set(whole("number", number, 0, MOST_GPUS))
    try:
        yield
    finally:
        _CURRENT.reset(before)


def map_over_gpus(
    pieces: Iterable[Piece], solve: Callable[[Piece], Answer], gpus: int
) -> Iterator[tuple[Piece, Answer]]:
    """Each piece with its answer, in order. With several GPUs each has a thread in which `solve` is called, and takes the
    next piece when it is done with one; twice as many pieces as GPUs are taken ahead.

    The first error of `solve`, in the order of the pieces, is raised, and no piece is begun any more.
    """
    if whole("gpus", gpus, 1, MOST_GPUS) == 1:
        for piece in pieces:
            yield piece, solve(piece)
        return
    from concurrent.futures import ThreadPoolExecutor  # late: most work goes to one

    numbers, lock = iter(range(gpus)), threading.Lock()

    def begin() -> None:
        with lock:
            _CURRENT.set(next(numbers))

    under_way: deque[tuple[Piece, Future[Answer]]] = deque()
    pool = ThreadPoolExecutor(gpus, initializer=begin)
    try:
        for piece in pieces:
            under_way.append((piece, pool.submit(solve, piece)))
            if len(under_way) == 2 * gpus:
                first, answer = under_way.popleft()
                yield first, answer.result()
        while under_way:
            first, answer = under_way.popleft()
            yield first, answer.result()
    finally:
        pool.shutdown(cancel_futures=True)
