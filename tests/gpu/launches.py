"""Times of launches beside CuPy's `RawKernel` in the same process, and launches of several threads: `python -m tests.gpu.launches`.

A time is the median of the batches, in microseconds for one launch. Each batch ends with a synchronisation outside of its time, or
inside for the rows with a synchronisation.
"""

import itertools
import statistics
import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import simtbed as st
from simtbed import DeviceArray, Global, Stream, f32, i32, launch

SMALL, LARGE, BATCHES, NODES = 1024, 1 << 20, 60, 1000
THREADS, LAUNCHES = 8, 10_000

CUDA = """extern "C" __global__ void axpy(const float *x, const float *y, float *out, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a * x[i] + y[i];
}"""


@st.kernel
def axpy(x: Global[f32], y: Global[f32], out: Global[f32], a: f32, n: i32) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        out[i] = a * x[i] + y[i]


@st.kernel
def add(total: Global[i32], step: i32, n: i32) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        total[i] += step


Work = Callable[[], object]


def median(work: Work, end: Work, count: int) -> float:
    """Return the median of batches of `count` launches in microseconds for one launch."""
    times = []
    for _ in range(BATCHES + 5):
        start = time.perf_counter()
        for _ in range(count):
            work()
        times.append((time.perf_counter() - start) / count * 1e6)
        end()
    return statistics.median(times[5:])


def rows(cupy: Any) -> dict[str, tuple[Work, Work, Work, Work, int]]:
    """Return work and end of a batch of this package, those of CuPy, and the launches of a batch."""
    own_stream, their_stream = Stream(), cupy.cuda.Stream()
    x, y = (np.random.default_rng(seed).random(SMALL, np.float32) for seed in (1, 2))
    own = [[DeviceArray(array) for array in (x, y, x)] for _ in range(8)]
    their = [[cupy.asarray(array) for array in (x, y, x)] for _ in range(8)]
    large = [np.ones(LARGE, np.float32) for _ in range(2)]
    kernel, numbers = cupy.RawKernel(CUDA, "axpy"), itertools.count()
    own_next, their_next = itertools.cycle(own), itertools.cycle(their)
    same = {"x": own[0][0], "y": own[0][1], "out": own[0][2], "a": 2.0, "n": SMALL}
    theirs = (*their[0], np.float32(2), np.int32(SMALL))

    def start(args: Any, grid: Any = 4, stream: Stream | None = own_stream) -> st.Result:
        return launch(axpy, grid=grid, block=256, args=args, engine="cuda", stream=stream)

    def their_start(args: Any, grid: int = 4) -> None:
        with their_stream:
            kernel((grid,), (256,), args)

    def queued(work: Work, other: Work) -> tuple[Work, Work, Work, Work, int]:
        return work, own_stream.synchronize, other, their_stream.synchronize, 200

    def copied(arrays: list[Any]) -> tuple[Work, Work, Work, Work, int]:
        count = len(arrays[0])
        args = {"x": arrays[0], "y": arrays[1], "out": st.empty(count, f32), "a": 2.0, "n": count}

        def other() -> Any:
            out = cupy.empty(count, np.float32)
            kernel((count // 256,), (256,), (*map(cupy.asarray, arrays), out, np.float32(2), np.int32(count)))
            return out.get()

        return lambda: start(args, count // 256, None).out, int, other, int, 20

    def their_wait() -> None:
        their_start(theirs)
        their_stream.synchronize()

    return {
        "same arguments": queued(lambda: start(same), lambda: their_start(theirs)),
        "changed scalar": queued(
            lambda: start({**same, "a": float(next(numbers))}),
            lambda: their_start((*their[0], np.float32(next(numbers)), np.int32(SMALL))),
        ),
        "a tuple of arguments": queued(lambda: start((*own[0], 2.0, SMALL)), lambda: their_start(theirs)),
        "other arrays of the same shape": queued(
            lambda: start((*next(own_next), 2.0, SMALL)), lambda: their_start((*next(their_next), *theirs[3:]))
        ),
        "CuPy arrays": queued(lambda: start((*their[0], 2.0, SMALL)), lambda: their_start(theirs)),
        "a new tuple of the grid": queued(lambda: start(same, tuple(map(int, "41"))), lambda: their_start(theirs)),
        "with synchronisation": (lambda: start(same, stream=None), int, their_wait, int, 200),
        "NumPy arrays of 4 kB": copied([x, y]),
        "NumPy arrays of 4 MB": copied(large),
    }


def of_graph() -> float:
    """Return the microseconds of one launch of a graph, with the end of the graph."""
    arrays, stream = [DeviceArray(np.ones(SMALL, np.float32)) for _ in range(3)], Stream()
    with st.capture() as graph:
        for _ in range(NODES):
            launch(axpy, grid=4, block=256, args=(*arrays, 2.0, SMALL), engine="cuda", stream=stream)

    def replay() -> None:
        graph.replay(stream)
        stream.synchronize()

    return median(replay, int, 1) / NODES


def in_threads(engine: Any = "cuda", threads: int = THREADS, launches: int = LAUNCHES) -> list[str]:
    """Launch from several threads, half of them on a stream; return the errors and the wrong results. Each launch adds another number."""
    problems: list[str] = []

    def work(thread: int) -> None:
        stream, total = Stream() if thread % 2 else None, DeviceArray(np.zeros(SMALL, np.int32))
        try:
            for step in range(launches):
                launch(add, grid=4, block=256, args=(total, step % 7 + thread, SMALL), engine=engine, stream=stream)
            if stream is not None:
                stream.synchronize()
            expected = sum(step % 7 + thread for step in range(launches))
            if not (total.numpy() == expected).all():
                problems.append(f"thread {thread}: {total.numpy()[:4]}, not {expected}")
        except Exception as error:
            problems.append(f"thread {thread}: {error!r}")

    started = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    for running in started:
        running.start()
    for running in started:
        running.join()
    return problems


def main() -> None:
    cupy = import_module("cupy")  # only on a machine with a GPU
    print(f"{'launch':32} {'simtbed':>9} {'CuPy':>9} {'ratio':>7}")
    for name, (work, end, other, their_end, count) in rows(cupy).items():
        own, their = median(work, end, count), median(other, their_end, count)
        print(f"{name:32} {own:9.2f} {their:9.2f} {own / their:7.2f}", flush=True)
    print(f"{'a launch of a graph of 1,000':32} {of_graph():9.2f}")
    start = time.perf_counter()
    problems = in_threads()
    seconds = time.perf_counter() - start
    print(
        f"{THREADS} threads, {THREADS * LAUNCHES:,} launches: {seconds:.1f} s, {len(problems)} problems",
        *problems,
        sep="\n",
    )


if __name__ == "__main__":
    main()
