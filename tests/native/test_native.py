"""Native functions against an emulator; accepted arguments and refused operations."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import CompileError, Global, LaunchError, disk_cache, f32, float4, i32, i64
from simtbed.native import Fixed, fixed, native

from tests.native import functions
from tests.native.one_thread import ENGINES, assert_native_agrees

NUMBERS = np.array([5, -3, 1 << 40, 7, 0], np.int64)


# ------------------------------------------------------------------ conformance
@pytest.mark.parametrize("engine", ENGINES)
def test_functions_do_what_an_emulator_does(engine: str) -> None:
    assert assert_native_agrees(functions.total, NUMBERS, 5, 6, engine=engine) == 14
    assert assert_native_agrees(functions.collatz, 27, engine=engine) == 111
    text = np.frombuffer(b"to be or not to be", np.uint8)
    assert assert_native_agrees(functions.first_after, text, len(text), ord("b"), 5, engine=engine) == 16
    assert assert_native_agrees(functions.first_after, text, len(text), ord("z"), 0, engine=engine) == -1
    assert assert_native_agrees(functions.primes, np.zeros(50, np.bool_), 50, engine=engine) == 15
    assert_native_agrees(functions.histogram, text, len(text), np.zeros(7, np.int32), 7, engine=engine)
    x = np.array([0.1, -2.5, 3e8, 7.0])
    assert_native_agrees(functions.horner, x, np.zeros(4, np.float32), 4, engine=engine)
    assert assert_native_agrees(functions.within, 1.0, 1.0, 2.0, True, engine=engine) is False
    assert assert_native_agrees(functions.within, 1.0, 1.0, 2.0, False, engine=engine) is True
    samples = samples_of(x, np.array([1, 2, 0, 3], np.int32), 4)
    assert assert_native_agrees(functions.weighted_sum, samples, 2.0, engine=engine) == 32.2


def samples_of(*fields: Any) -> functions.Samples:
    """Return a named tuple of arrays, whose fields are annotated as in a kernel."""
    return functions.Samples(*fields)


def test_constants_specialise() -> None:
    for bins in (3, 5):
        counts = np.zeros(bins, np.int32)
        functions.histogram(np.arange(10, dtype=np.uint8), 10, counts, bins)
        assert counts.tolist() == np.bincount(np.arange(10) % bins).tolist()


def test_results_are_python_numbers() -> None:
    assert type(functions.total(NUMBERS, 5, 6)) is int
    assert type(functions.within(0.0, 0.0, 1.0, False)) is bool
    assert type(functions.horner(np.ones(1), np.ones(1, np.float32), 1)) is float


def test_other_threads_run_meanwhile() -> None:
    """The interpreter lock is requested once a call: another thread runs during the call."""
    text, started = np.zeros(1 << 27, np.uint8), threading.Event()
    functions.first_after(text, 1, 1, 0)  # compiled
    times: list[float] = []

    def work() -> None:
        started.set()
        functions.first_after(text, len(text), 1, 0)
        times.append(time.perf_counter())

    other = threading.Thread(target=work)
    other.start()
    started.wait()
    time.sleep(0.001)
    mine = time.perf_counter()
    other.join()
    assert mine < times[0]


# ------------------------------------------------------------------ arguments
@pytest.mark.parametrize(
    "arguments",
    [
        (NUMBERS.astype(np.int32), 5, 6),
        (NUMBERS[::2], 3, 6),
        (NUMBERS.reshape(1, 5), 5, 6),
        ([1, 2], 2, 6),
        (NUMBERS, 1 << 63, 6),
        (NUMBERS, 5.0, 6),
        (NUMBERS, 5),
        (NUMBERS, 5, 6, 7),
    ],
)
def test_wrong_arguments_are_reported_in_a_line(arguments: tuple[object, ...]) -> None:
    with pytest.raises(LaunchError) as message:
        functions.total(*arguments)
    assert "\n" not in str(message.value)


def test_written_arrays_are_writeable_and_distinct() -> None:
    flags = np.zeros(64, np.bool_)
    flags.flags.writeable = False
    with pytest.raises(LaunchError, match="writeable"):
        functions.primes(flags, 64)
    bytes = np.zeros(64, np.uint8)
    with pytest.raises(LaunchError, match="overlaps"):
        functions.histogram(bytes, 64, bytes[:28].view(np.int32), 7)


def test_arrays_may_be_checked_once() -> None:
    assert functions.total(Fixed(NUMBERS), 5, 6) == 14
    with pytest.raises(LaunchError, match="overlap"):
        fixed(NUMBERS, NUMBERS[1:])
    with pytest.raises(LaunchError, match="int64"):
        functions.total(Fixed(NUMBERS.astype(np.int32)), 5, 6)


def test_a_named_tuple_of_arrays_is_one_parameter() -> None:
    values, weights = np.array([0.5, 1.5]), np.array([2, 4], np.int32)
    assert functions.weighted_sum(samples_of(values, weights, 2), 2.0) == 14
    assert values.tolist() == [1, 3]
    assert functions.weighted_sum(samples_of(*fixed(values, weights), 2), 0.5) == 7
    with pytest.raises(LaunchError, match=r"samples\.weights is a contiguous array of int32"):
        functions.weighted_sum(samples_of(values, values, 2), 2.0)
    with pytest.raises(LaunchError, match="takes 4 arrays and numbers, got 3"):
        functions.weighted_sum((values, weights), 2.0)


# ------------------------------------------------------------------ refused
@native
def copies_arrays(samples: functions.Samples) -> None:
    other = samples
    other.values[0] = 1.0


@native
def has_a_place() -> i32:
    return st.thread.x


@native
def synchronises(x: f32) -> f32:
    return st.shuffle_up(x, 1)


@native
def waits() -> None:
    st.sync()


@native
def shares(n: i32) -> i32:
    own = st.shared(i32, 4)
    own[0] = n
    return own[0]


@native
def acts(x: Global[i32]) -> None:
    st.atomic_add(x, 0, 1)


@native
def reads_a_length(x: Global[i32]) -> i32:
    return len(x)


@native
def says(n: i32) -> None:
    print(n)


@native
def insists(n: i32) -> None:
    assert n > 0


@native
def takes_vectors(x: Global[float4]) -> None:
    pass


@native
def mixes(n: i32, m: i64) -> i64:
    return n + m


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (has_a_place, (), "no place in a grid"),
        (synchronises, (1.0,), "cannot synchronise"),
        (waits, (), "cannot synchronise"),
        (shares, (1,), "st.local"),
        (acts, (np.zeros(1, np.int32),), "cannot synchronise"),
        (reads_a_length, (np.zeros(1, np.int32),), "make it a parameter"),
        (says, (1,), "cannot raise or print"),
        (insists, (1,), "cannot raise"),
        (takes_vectors, (np.zeros(4, np.float32),), "arrays of numbers"),
        (mixes, (1, 1), "nothing is converted silently"),
        (copies_arrays, (samples_of(np.zeros(1), np.zeros(1, np.int32), 1),), "it is a parameter only"),
    ],
)
def test_what_one_thread_cannot_do_is_refused_at_its_line(
    function: object, arguments: tuple[object, ...], message: str
) -> None:
    with pytest.raises(CompileError, match=message) as error:
        function(*arguments)  # type: ignore[operator]
    assert error.value.diagnostics[0].span.file == __file__


# ------------------------------------------------------------------ the cache
_PROGRAM = """
import sys, numpy as np
from tests.native import functions
import simtbed.native.function as function
if sys.argv[1] == "kept":
    function.prepared = None  # the front end must not run
print(functions.total(np.array([5, -3, 7]), 3, 6), "numba" in sys.modules)
"""


def _in_a_process(cache: Path, *arguments: str) -> str:
    environment = {**os.environ, "SIMTBED_CACHE": str(cache), "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", _PROGRAM, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_the_front_end_runs_once(tmp_path: Path) -> None:
    assert _in_a_process(tmp_path, "new") == "8 False"
    assert _in_a_process(tmp_path, "kept") == "8 False"


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert _in_a_process(tmp_path / "file" / "folder", "new") == "8 False"


def test_nothing_is_kept_of_what_is_not_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMTBED_CACHE", str(tmp_path))
    assert functions.collatz.address() and disk_cache.cache_folder().folder == tmp_path
    monkeypatch.setattr("simtbed.native.function.digest", lambda _: None)
    before = set(tmp_path.iterdir())
    fresh = native(functions.within.function)
    assert fresh(1.0, 0.0, 2.0, True) is True
    assert set(tmp_path.iterdir()) == before


def test_code_on_disk_is_called_without_the_front_end() -> None:
    code = "import sys, simtbed.native; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"simtbed.frontend.reader", "simtbed.native.text"}.isdisjoint(loaded)
