"""Selection of the CUDA device of launches, and work distribution over several devices."""

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

MAX_GPUS = 1024
"""Above the GPUs of any machine; each gets a thread."""

Piece = TypeVar("Piece")
Answer = TypeVar("Answer")

CURRENT: ContextVar[int] = ContextVar("the CUDA device of launches", default=0)


def current_gpu() -> int:
    """Return the index of the CUDA device for launches of this thread."""
    return CURRENT.get()


@contextmanager
def on_gpu(number: int) -> Iterator[None]:
    """Run launches of this thread on the cuda engine on CUDA device `number`, from 0; the default is the first."""
    before = CURRENT.set(whole("number", number, 0, MAX_GPUS))
    try:
        yield
    finally:
        CURRENT.reset(before)


def map_over_gpus(
    pieces: Iterable[Piece], solve: Callable[[Piece], Answer], gpus: int
) -> Iterator[tuple[Piece, Answer]]:
    """Yield each piece with its answer, in order.

    Parameters
    ----------
    pieces : work items. solve : called for each piece, in one thread for each GPU. gpus : number of GPUs.

    At most twice as many pieces as GPUs are submitted ahead. The first error of `solve`, in the order of the pieces,
    is raised, and no further piece is started.
    """
    if whole("gpus", gpus, 1, MAX_GPUS) == 1:
        for piece in pieces:
            yield piece, solve(piece)
        return
    from concurrent.futures import ThreadPoolExecutor  # late: most work uses one GPU

    numbers, lock = iter(range(gpus)), threading.Lock()

    def begin() -> None:
        with lock:
            CURRENT.set(next(numbers))

    pending: deque[tuple[Piece, Future[Answer]]] = deque()
    pool = ThreadPoolExecutor(gpus, initializer=begin)
    try:
        for piece in pieces:
            pending.append((piece, pool.submit(solve, piece)))
            if len(pending) == 2 * gpus:
                first, answer = pending.popleft()
                yield first, answer.result()
        while pending:
            first, answer = pending.popleft()
            yield first, answer.result()
    finally:
        pool.shutdown(cancel_futures=True)
