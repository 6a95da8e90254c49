"""Work on a Dask cluster: order of the results, equality with the serial run, lost workers, one-line errors."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import simtbed as st
from distributed import Client, LocalCluster
from simtbed import cluster
from simtbed.cluster import connected, map_over_cluster


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Client of a real cluster of two worker processes."""
    with connected("local") as connection:
        yield connection


def square(n: int) -> int:
    return n * n


def launched(n: int) -> Any:
    """Return the result of a launch on the emulator and its counters."""

    @st.kernel
    def scaled(x: st.Global[st.f32], out: st.Global[st.f32], factor: st.f32) -> None:
        """out = x * by."""
        i = st.block.x * st.block_dim.x + st.thread.x
        out[i] = x[i] * factor

    x = np.arange(64, dtype=np.float32)
    result = st.launch(scaled, grid=2, block=32, args={"x": x, "out": st.empty(64, st.f32), "factor": float(n)})
    return result.out.tolist(), result.counters.totals()


def process(n: int) -> int:
    time.sleep(0.02)
    return os.getpid()


def ending(n: int) -> int:
    if n == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return n


class Adding:
    """A function with data. It returns how often this process has unpickled it."""

    unpickled = 0

    def __init__(self, data: Any) -> None:
        self.data = data

    def __setstate__(self, state: dict[str, Any]) -> None:
        type(self).unpickled += 1
        self.__dict__.update(state)

    def __call__(self, n: int) -> tuple[int, int, float]:
        time.sleep(0.02)
        return os.getpid(), type(self).unpickled, float(self.data[n])


def failing(n: int) -> int:
    if n >= 3:
        raise ValueError(f"no {n}")
    return n


@pytest.mark.parametrize("count", [0, 1, 23])
def test_answers_are_in_the_order_of_the_pieces(client: Client, count: int) -> None:
    assert list(map_over_cluster(range(count), square, client)) == [(n, n * n) for n in range(count)]


def test_launches_on_workers_are_those_of_the_serial_run(client: Client) -> None:
    assert list(map_over_cluster(range(4), launched, client)) == [(n, launched(n)) for n in range(4)]


def test_large_pieces_travel(client: Client) -> None:
    pieces = [np.full(400_000, n, np.float64) for n in range(5)]
    sums = [float(answer) for _, answer in map_over_cluster(pieces, np.sum, client)]
    assert sums == [400_000.0 * n for n in range(5)]


def described(piece: tuple[str, np.ndarray]) -> Any:
    name, array = piece
    return name, array[::2].copy(), array.flags.aligned and array.flags.writeable and array.flags.c_contiguous


def test_arrays_travel_as_they_are(client: Client) -> None:
    """Arrays are aligned and writeable at any position in a message, as native functions require."""
    pieces = [("x" * n, np.arange(n + 3, dtype=np.float64)) for n in range(9)]
    for (name, array), answer in map_over_cluster(pieces, described, client):
        assert answer[0] == name and answer[2]
        np.testing.assert_array_equal(answer[1], array[::2])
        assert answer[1].flags.aligned and answer[1].flags.writeable


def test_a_worker_killed_in_the_middle_is_survived(client: Client) -> None:
    answers = map_over_cluster(range(80), process, client)
    results = [next(answers)]
    killed = results[0][1]
    os.kill(killed, signal.SIGKILL)
    results += answers
    assert [piece for piece, _ in results] == list(range(80))
    assert killed not in {worker for _, worker in results[-10:]}


def test_a_function_is_sent_once_to_each_worker(client: Client) -> None:
    data = np.arange(1_000_000, dtype=np.float64)
    results = [answer for _, answer in map_over_cluster(range(40), Adding(data), client)]
    assert [value for _, _, value in results] == list(range(40))
    workers = {process_id for process_id, _, _ in results}
    assert len(workers) == len(client.nthreads())
    for worker in workers:
        assert len({times for process_id, times, _ in results if process_id == worker}) == 1


def test_workers_that_are_all_killed_get_the_function_again(client: Client) -> None:
    answers = map_over_cluster(range(60), Adding(np.arange(1_000, dtype=np.float64)), client)
    results = [next(answers) for _ in range(4)]
    for worker in client.run(os.getpid).values():
        os.kill(worker, signal.SIGKILL)
    results += answers
    assert [answer[2] for _, answer in results] == list(range(60))


def test_a_piece_that_ends_every_worker_is_named(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ATTEMPTS", 1)
    with pytest.raises(st.SimtbedError, match="piece 2 ended every worker"):
        list(map_over_cluster(range(5), ending, client))


def test_the_cluster_remains_usable_after_the_first_error(client: Client) -> None:
    with pytest.raises(ValueError, match="no 3"):
        list(map_over_cluster(range(9), failing, client))
    assert list(map_over_cluster(range(3), square, client)) == [(n, n * n) for n in range(3)]


def test_consumed_pieces_are_bounded(client: Client) -> None:
    consumed = 0

    def pieces() -> Iterator[int]:
        nonlocal consumed
        for n in range(100):
            consumed += 1
            yield n

    answers = map_over_cluster(pieces(), square, client)
    most = cluster.AHEAD * sum(client.nthreads().values())
    for n in range(10):
        assert next(answers) == (n, n * n)
        assert consumed <= n + most


def test_an_address_is_connected_to(client: Client) -> None:
    assert list(map_over_cluster(range(3), square, client.scheduler_info()["address"])) == [(0, 0), (1, 1), (2, 4)]


def test_workers_with_another_simtbed_are_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "version", lambda package: "99.0")
    with pytest.raises(st.UnavailableError, match=r"the workers have simtbed .*, and this is simtbed 99\.0"):
        list(map_over_cluster([1], square, client))


def test_a_cluster_without_workers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "WORKER_TIMEOUT", 0.2)
    with (
        LocalCluster(n_workers=0, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0") as empty,
        pytest.raises(st.UnavailableError, match="no worker"),
    ):
        list(map_over_cluster([1], square, empty.scheduler_address))


def test_workers_may_start_late() -> None:
    with LocalCluster(n_workers=0, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0") as late:
        timer = threading.Timer(0.3, late.scale, (1,))
        timer.start()
        assert list(map_over_cluster([3], square, late.scheduler_address)) == [(3, 9)]
        timer.join()


@pytest.mark.parametrize("wrong", ["", "nonsense", "ftp://host:1", "tcp://host", "tcp://a:1/x"])
def test_what_is_no_address_is_refused(wrong: str) -> None:
    with pytest.raises(st.LaunchError, match="a cluster is the address of its scheduler"), connected(wrong):
        pass


def test_no_scheduler_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "SCHEDULER_TIMEOUT", 0.2)
    with pytest.raises(st.UnavailableError, match="no Dask scheduler answers at tcp:"):
        list(map_over_cluster([1], square, "tcp://127.0.0.1:9"))


def test_without_dask_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(st.UnavailableError, match=r"simtbed\[dask\]"), connected("local"):
        pass
