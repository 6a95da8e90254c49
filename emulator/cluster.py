"""Work shared by the workers of a Dask cluster: an address, a client, or this machine's cores; lost workers are survived."""

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

if TYPE_CHECKING:
    from distributed import Client, Future

Piece = TypeVar("Piece")
Answer = TypeVar("Answer")

LOCAL = "local"
"""The address that stands for a cluster of this machine's cores, which is started and ended here."""
MISSING = "a cluster needs Dask: python -m pip install 'simtbed[dask]'"
AHEAD = 3
"""Pieces taken for each thread of the cluster: one at work, and others that wait at the workers."""
ATTEMPTS = 3
"""How often a piece is given to the cluster. Each time Dask itself gives it to several workers before it gives up."""
PATIENCE = 60.0
"""Seconds without any worker after which nobody is waited for."""
ANSWER = 30.0
"""Seconds in which a scheduler answers, on a machine that is busy too."""
_LOOK = 5.0
"""Seconds between looks whether workers are there."""
_ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss|ucx)://)?[^\s/:]+:\d{1,5}")


@contextmanager
def connected(cluster: str | Client) -> Iterator[Client]:
    """A client of a cluster for the time inside. cluster: the address of a scheduler ("tcp://host:8786"), "local", or a
    `dask.distributed.Client`, which is left open.

    Raises UnavailableError where Dask is missing, nobody answers, or no worker comes; LaunchError for anything else.
    A script that gives "local" keeps what it runs under `if __name__ == "__main__":`, because workers import the script.
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
        # A local worker that is lost is begun again; one that is lost again when Dask looks would be given up.
        "distributed.deploy.lost-worker-timeout": "1 day",
    }
    with dask.config.set(settings), _cluster(cluster) as address, _client(address) as client:
        yield client


@contextmanager
def _cluster(given: str) -> Iterator[Any]:
    """An address, or a cluster of one worker a core of this machine."""
    if given != LOCAL:
        yield given
        return
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=os.cpu_count() or 1,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    ) as made:
        yield made


def _client(address: Any) -> Client:
    from distributed import Client

    try:
        client = Client(address, timeout=ANSWER, set_as_default=False)
    except OSError as error:
        raise UnavailableError(f"no Dask scheduler answers at {address}: {_first_line(error)}") from None
    return client


def map_over_cluster(
    pieces: Iterable[Piece], solve: Callable[[Piece], Answer], cluster: str | Client
) -> Iterator[tuple[Piece, Answer]]:
    """Each piece with its answer, in order, as `map_over_gpus` has it. `cluster` is as in `connected`.

    solve, pieces and answers are pickled; solve gives the same answer wherever and however often it is called. It goes to each
    worker once, with all that it holds, and stays there until the last answer: what large data the pieces share belongs in it.
    A piece whose worker is lost goes to another one. Launches in it use one thread each, because the cluster counts threads.
    A few pieces for each thread of the cluster are taken ahead.

    The first error of `solve`, in the order of the pieces, is raised, and no piece is begun any more. Raises SimtbedError
    for a piece that ends every worker it is given to, UnavailableError where workers have another simtbed or all are gone.
    """
    with connected(cluster) as client:
        _require_workers(client)
        threads = sum(client.nthreads().values())
        name = f"simtbed-{uuid.uuid4().hex}"
        under_way: deque[tuple[int, Piece, Future[bytes]]] = deque()
        sent = _everywhere(client, solve, f"solve-{name}")

        def submit(number: int, piece: Piece, attempt: int = 1) -> Future[bytes]:
            key = f"{name}-{number}-{attempt}"
            return client.submit(_solve, sent, _packed(piece), version("simtbed"), key=key, pure=False)

        def first() -> tuple[Piece, Answer]:
            nonlocal sent
            number, piece, future = under_way[0]
            for attempt in range(2, ATTEMPTS + 2):
                try:
                    packed = _answer(client, future)
                    under_way.popleft()
                    return piece, pickle.loads(packed)
                except _Lost:
                    if sent.status == "error":  # it was on its way to a worker that ended
                        sent = _everywhere(client, solve, f"solve-{name}-{number}-{attempt}")
                    if attempt <= ATTEMPTS:
                        future = submit(number, piece, attempt)
                        under_way[0] = (number, piece, future)
            raise SimtbedError(f"piece {number} ended every worker that it was given to: its memory may not suffice")

        try:
            for number, piece in enumerate(pieces):
                under_way.append((number, piece, submit(number, piece)))
                if len(under_way) >= AHEAD * max(1, threads):
                    yield first()
            while under_way:
                yield first()
        finally:
            client.cancel([*(future for _, _, future in under_way), sent])


class _Sent:
    """An object on its way to workers, and what it is there: a copy of its own, unpickled when it is first asked for."""

    def __init__(self, packed: bytes) -> None:
        self._packed, self._found, self._turn = packed, None, threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        with self._turn:
            return _Sent, (self._packed or _packed(self._found),)

    def found(self) -> Any:
        with self._turn:
            if self._packed:
                self._found, self._packed = pickle.loads(self._packed), b""
            return self._found


def _packed(given: Any) -> bytes:
    """Pickled in one piece: Dask would lay the arrays in it at any address, and those of a serial run are aligned."""
    from distributed.protocol.pickle import dumps

    packed: bytes = dumps(given)
    return packed


def _everywhere(client: Client, solve: Callable[[Piece], Answer], key: str) -> Future[_Sent]:
    """The same on every worker that there is now. It is the answer of a task, so a worker that comes later gets it from
    another one, and it is made anew where the last worker that had it is lost."""
    sent = client.submit(_Sent, _packed(solve), key=key, pure=False)
    _wait(client, sent)
    client.replicate([sent])
    return sent


def _solve(sent: _Sent, piece: bytes, wanted: str) -> bytes:
    """What a worker runs."""
    if (found := version("simtbed")) != wanted:
        raise UnavailableError(f"the workers have simtbed {found}, and this is simtbed {wanted}: install the same")
    os.environ.setdefault("SIMTBED_THREADS", "1")
    return _packed(sent.found()(pickle.loads(piece)))


class _Lost(Exception):
    """The workers that were given a piece are gone."""


def _wait(client: Client, future: Future[Any]) -> None:
    """Until a task has ended, one way or the other."""
    from concurrent.futures import CancelledError  # late: a start without a cluster needs no pools

    from distributed import TimeoutError, wait

    while True:
        try:
            with client.as_current():
                wait([future], timeout=_LOOK)
            return
        except (TimeoutError, CancelledError):
            if future.cancelled():
                raise UnavailableError(f"the Dask scheduler at {client.scheduler_info()['address']} is gone") from None
            _require_workers(client)


def _answer(client: Client, future: Future[bytes]) -> bytes:
    """Of a task, as soon as it is there."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    _wait(client, future)
    try:
        answer: bytes = future.result()
        return answer
    except KilledWorker:
        raise _Lost from None
    except CancelledError:
        raise UnavailableError("the Dask scheduler has forgotten the work: it was restarted, or is gone") from None
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "simtbed":
            raise UnavailableError("the workers of the cluster have no simtbed: install it there too") from None
        raise


def _require_workers(client: Client) -> None:
    """Wait until a worker is there. Raises UnavailableError where none comes."""
    from distributed import TimeoutError

    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise UnavailableError(f"the cluster has had no worker for {PATIENCE:.0f} seconds: start some") from None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
