"""Workers of a launch: the buffers of each thread, reused by later launches, and the distribution of blocks over threads."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from . import interrupts
from .layout import OWN_ARGUMENTS, SIZES, Buffers

SHORTEST, LONGEST = 0.0002, 0.01
"""Target processor time of a range of blocks in seconds: long compared with its start, short for an interactive user."""
MEASURABLE = 0.0001
"""Processor time of a range in seconds that predicts the rest: long compared with the call of the code, 20 us."""
WORTH_THREADS = 0.0005
"""Processor time of the rest in seconds for which other threads are started: the start of one takes 0.1 ms."""
MAX_REUSED = 1 << 18
"""Bytes of a worker that is reused. The system provides larger zeroed memory faster than a fill."""
_LINE = 64  # bytes: buffers are aligned to a cache line, and a line is between them


@dataclass(frozen=True)
class Worker:
    """Buffers of one thread, by their names in SIZES. memory: of all of them. addresses: of the buffers, by the names of ARGUMENTS;
    arguments: in the order of OWN_ARGUMENTS, 0 for none."""

    memory: npt.NDArray[np.uint8]
    buffers: Mapping[str, npt.NDArray[Any]]
    addresses: Mapping[str, int]
    arguments: tuple[int, ...]

    @staticmethod
    def with_buffers(needed: Buffers) -> Worker:
        sizes = {name: int(needed.sizes[name]) for name in SIZES.names or ()}
        for name in ("counts", "faults"):
            sizes[name] = 8 * (sizes[name] + 1)
        if sizes["frame"]:
            sizes = {name: sizes[name] for name in ("counts", "faults", "samples")}  # blocks have the others
        sizes["allowance"] = 8
        memory = np.zeros(sum(-(-size // _LINE) * _LINE + _LINE for size in sizes.values()) + _LINE, np.uint8)
        first = memory.ctypes.data
        start = -first % _LINE
        buffers: dict[str, npt.NDArray[Any]] = {}
        addresses = {}
        for name, size in sizes.items():
            buffers[name] = memory[start : start + size]
            addresses[f".{name}"] = first + start
            start += -(-size // _LINE) * _LINE + _LINE
        for name in ("counts", "faults", "allowance"):
            buffers[name] = buffers[name].view(np.int64)
        return Worker(memory, buffers, addresses, tuple(addresses.get(name, 0) for name in OWN_ARGUMENTS))

    def clear(self) -> None:
        """Begin another launch."""
        self.buffers["allowance"][0] = interrupts.ALLOWANCE


@dataclass
class WorkerPool:
    """Idle workers of a kernel."""

    needed: Buffers
    idle: list[Worker] = field(default_factory=list)

    def take(self, number: int) -> list[Worker]:
        """Return so many cleared workers."""
        return [self._worker() for _ in range(number)]

    def give_back(self, workers: list[Worker]) -> None:
        """Reuse the workers of a launch that ended without an exception."""
        if workers[0].memory.nbytes <= MAX_REUSED:
            self.idle += workers

    def _worker(self) -> Worker:
        try:
            worker = self.idle.pop()
        except IndexError:
            worker = Worker.with_buffers(self.needed)
        else:
            worker.memory.fill(0)
        worker.clear()
        return worker


def _started_threads(run: Callable[[Worker], None], workers: Sequence[Worker]) -> Iterator[threading.Thread]:
    """Start a thread for each worker, as many as the system allows."""
    for worker in workers:
        thread = threading.Thread(target=run, args=(worker,))
        try:
            thread.start()
        except RuntimeError:
            return
        yield thread


def distribute(
    blocks: int, workers: Sequence[Worker], run: Callable[[Worker, int, int], bool], seconds: float = math.inf
) -> bool:
    """Run all blocks on the workers, each in its own thread, range by range. Return whether all ranges succeeded.

    A worker claims the next range after each range, so that blocks may differ in duration. seconds: expected processor time. The other
    threads are started once the expected rest is WORTH_THREADS.
    """
    if blocks == 1:
        return run(workers[0], 0, 1)
    lock = threading.Lock()
    left = range(blocks)

    # `work` refers to no function that refers to it: a cycle would keep the memory of launches.
    def work(worker: Worker, predicted: Callable[[float], None] = lambda rest: None) -> None:
        nonlocal left
        size = 1
        while True:
            with lock:
                claimed, left = left[:size], left[size:]
            if not claimed:
                return
            start = time.thread_time()
            if not run(worker, claimed.start, claimed.stop):
                failed.append(claimed)
                with lock:
                    left = range(0)
            used = max(time.thread_time() - start, 1e-9)  # some systems count in steps of 16 ms
            block = used / len(claimed)
            if used >= MEASURABLE:
                predicted(block * len(left))
            even = 0 if waiting else len(left) / (2 * len(workers))
            size = max(1, int(min(max(even, SHORTEST / block), LONGEST / block)))

    def in_thread(worker: Worker) -> None:
        nonlocal left
        try:
            work(worker)
        except BaseException as error:  # an exception would be lost with its thread
            left = range(0)
            raised.append(error)

    def start_others(rest: float) -> None:
        if waiting and rest >= WORTH_THREADS:
            threads_of_others.extend(_started_threads(in_thread, waiting))
            waiting.clear()

    failed: list[range] = []
    raised: list[BaseException] = []
    threads_of_others: list[threading.Thread] = []
    waiting = list(workers[1:])
    try:
        start_others(seconds)
        work(workers[0], start_others)
    except BaseException:
        left = range(0)
        raise
    finally:
        for thread in threads_of_others:
            thread.join()
    if raised:
        raise raised[0]
    return not failed
