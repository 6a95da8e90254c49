"""Work distribution over the workers of a Dask cluster: an address, a client, or this machine's cores. Lost workers are replaced."""

from __future__ import annotations

import logging
import os
import pickle
import re
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

from .checked import shown
from .errors import LaunchError, SimtbedError, UnavailableError
from .process_signals import block_signals, start_resource_tracker

if TYPE_CHECKING:
    from distributed import Client, Future

Piece = TypeVar("Piece")
Answer = TypeVar("Answer")

LOCAL = "local"
"""The address of a temporary cluster of this machine's cores."""
MISSING = "a cluster needs Dask: python -m pip install 'simtbed[dask]'"
AHEAD = 3
"""Pieces submitted for each thread of the cluster: one running, the others queued at the workers."""
ATTEMPTS = 3
"""Submissions of a piece. For each, Dask itself tries several workers before it gives up."""
WORKER_TIMEOUT = 60.0
"""Seconds without any worker before an error."""
SCHEDULER_TIMEOUT = 30.0
"""Timeout of the scheduler in seconds, also on a busy machine."""
_POLL_SECONDS = 5.0
"""Seconds between checks for workers."""
_ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss|ucx)://)?[^\s/:]+:\d{1,5}")


@contextmanager
def connected(cluster: str | Client) -> Iterator[Client]:
    """Context manager: a client of a cluster. cluster: the address of a scheduler ("tcp://host:8786"), "local", or a
    `dask.distributed.Client`, which is not closed.

    Raises UnavailableError if Dask is missing, no scheduler answers, or no worker connects; LaunchError for anything
    else. A script with "local" runs its code under `if __name__ == "__main__":`, because workers import the script.
    """
    try:
        import dask
        from distributed import Client
    except ImportError:
        raise UnavailableError(MISSING) from None
    if isinstance(cluster, Client):
        yield cluster
        return
    if not isinstance(cluster, str) or not (cluster == LOCAL or _ADDRESS.fullmatch(cluster)):
        raise LaunchError(
            f'a cluster is the address of its scheduler, such as tcp://host:8786, "{LOCAL}" or a dask.distributed.Client, '
            f"not {shown(cluster)}"
        )
    settings = {
        # Pieces travel with their tasks, and may be large.
        "distributed.admin.large-graph-warning-threshold": "1 TB",
        # A lost local worker is restarted; with the default timeout Dask would give up a worker lost twice.
        "distributed.deploy.lost-worker-timeout": "1 day",
    }
    with dask.config.set(settings), _cluster(cluster) as address, _client(address) as client:
        yield client


@contextmanager
def _cluster(address: str) -> Iterator[Any]:
    """Return an address, or a cluster of one worker for each core of this machine."""
    if address != LOCAL:
        yield address
        return
    from distributed import LocalCluster

    start_resource_tracker()
    with block_signals():  # in the start of the workers, and in them: they end with this process
        local = LocalCluster(
            n_workers=os.cpu_count() or 1,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        )
    with local as cluster:
        yield cluster


def _client(address: Any) -> Client:
    from distributed import Client

    try:
        client = Client(address, timeout=SCHEDULER_TIMEOUT, set_as_default=False)
    except OSError as error:
        raise UnavailableError(f"no Dask scheduler answers at {address}: {_first_line(error)}") from None
    return client


def map_over_cluster(
    pieces: Iterable[Piece], solve: Callable[[Piece], Answer], cluster: str | Client
) -> Iterator[tuple[Piece, Answer]]:
    """Yield each piece with its answer, in order, as in `map_over_gpus`.

    Parameters
    ----------
    pieces : work items. solve : called for each piece on a worker. cluster : as in `connected`.

    solve, pieces and answers are pickled; solve must give the same answer on every call. It is sent to each worker
    once and remains there until the last answer: large data common to all pieces belongs in it. A piece of a lost
    worker is sent to another one. Launches inside use one thread each, because the cluster counts threads. A few
    pieces for each thread are submitted ahead.

    The first error of `solve`, in the order of the pieces, is raised, and no further piece is started. Raises
    SimtbedError for a piece that ends every worker, UnavailableError if workers have another simtbed or all are
    lost.
    """
    with connected(cluster) as client:
        _require_workers(client)
        threads = sum(client.nthreads().values())
        name = f"simtbed-{uuid.uuid4().hex}"
        pending: deque[tuple[int, Piece, Future[bytes]]] = deque()
        sent = _replicated(client, solve, f"solve-{name}")

        def submit(number: int, piece: Piece, attempt: int = 1) -> Future[bytes]:
            key = f"{name}-{number}-{attempt}"
            return client.submit(_solve, sent, _packed(piece), version("simtbed"), key=key, pure=False)

        def first() -> tuple[Piece, Answer]:
            nonlocal sent
            number, piece, future = pending[0]
            for attempt in range(2, ATTEMPTS + 2):
                try:
                    packed = _answer(client, future)
                    pending.popleft()
                    return piece, pickle.loads(packed)
                except _WorkersLost:
                    if sent.status == "error":  # its worker ended during the transfer
                        sent = _replicated(client, solve, f"solve-{name}-{number}-{attempt}")
                    if attempt <= ATTEMPTS:
                        future = submit(number, piece, attempt)
                        pending[0] = (number, piece, future)
            raise SimtbedError(f"piece {number} ended every worker that it was given to: its memory may not suffice")

        try:
            for number, piece in enumerate(pieces):
                pending.append((number, piece, submit(number, piece)))
                if len(pending) >= AHEAD * max(1, threads):
                    yield first()
            while pending:
                yield first()
        finally:
            client.cancel([*(future for _, _, future in pending), sent])


class _Transferred:
    """An object sent to workers; unpickled there at its first use."""

    def __init__(self, packed: bytes) -> None:
        self._packed, self._object, self._lock = packed, None, threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        with self._lock:
            return _Transferred, (self._packed or _packed(self._object),)

    def unpacked(self) -> Any:
        with self._lock:
            if self._packed:
                self._object, self._packed = pickle.loads(self._packed), b""
            return self._object


def _packed(value: Any) -> bytes:
    """Pickle in one buffer: Dask would place arrays at any address, and those of a serial run are aligned."""
    from distributed.protocol.pickle import dumps

    packed: bytes = dumps(value)
    return packed


def _replicated(client: Client, solve: Callable[[Piece], Answer], key: str) -> Future[_Transferred]:
    """Send an object to every current worker. As the result of a task, it is also copied to later workers, and
    recomputed if its last worker is lost."""
    sent = client.submit(_Transferred, _packed(solve), key=key, pure=False)
    _wait(client, sent)
    client.replicate([sent])
    return sent


def _solve(sent: _Transferred, piece: bytes, expected: str) -> bytes:
    """Solve a piece on a worker."""
    if (installed := version("simtbed")) != expected:
        raise UnavailableError(
            f"the workers have simtbed {installed}, and this is simtbed {expected}: install the same"
        )
    os.environ.setdefault("SIMTBED_THREADS", "1")
    return _packed(sent.unpacked()(pickle.loads(piece)))


class _WorkersLost(Exception):
    """Raised if the workers of a piece are lost."""


def _wait(client: Client, future: Future[Any]) -> None:
    """Wait until a task ends, with a result or an error."""
    from concurrent.futures import CancelledError  # late: a start without a cluster needs no pools

    from distributed import TimeoutError, wait

    while True:
        try:
            with client.as_current():
                wait([future], timeout=_POLL_SECONDS)
            return
        except (TimeoutError, CancelledError):
            if future.cancelled():
                raise UnavailableError(
                    f"the Dask scheduler at {client.scheduler_info()['address']} has ended"
                ) from None
            _require_workers(client)


def _answer(client: Client, future: Future[bytes]) -> bytes:
    """Return the result of a task."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    _wait(client, future)
    try:
        answer: bytes = future.result()
        return answer
    except KilledWorker:
        raise _WorkersLost from None
    except CancelledError:
        raise UnavailableError("the Dask scheduler has forgotten the work: it was restarted, or has ended") from None
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "simtbed":
            raise UnavailableError("the workers of the cluster have no simtbed: install it there too") from None
        raise


def _require_workers(client: Client) -> None:
    """Wait for a worker. Raises UnavailableError after a timeout."""
    from distributed import TimeoutError

    try:
        client.wait_for_workers(1, timeout=WORKER_TIMEOUT)
    except TimeoutError:
        raise UnavailableError(f"the cluster has had no worker for {WORKER_TIMEOUT:.0f} seconds: start some") from None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
