"""Memory in printed CUDA C++: declarations, addresses, and launch errors."""

from collections.abc import Callable

import numpy as np
import pytest
import simtbed as st
from simtbed import Constant, Global, LaunchError, f32, f64, i8, i32, i64
from simtbed.engines.cuda.printer import cuda_source
from simtbed.runtime.registry import EngineName
from simtbed.runtime.request import prepare_request

Golden = Callable[[str, str], None]


@st.kernel
def carved(out: Global[f32], n: i32, wide: i64) -> None:
    """Arrays with counts of constants, a parameter and a dimension."""
    fixed = st.shared(i32, 4)
    first = st.dynamic_shared(f32, 3)
    second = st.dynamic_shared(f64, n + 1)
    third = st.dynamic_shared(i8, wide)
    rest = st.dynamic_shared(f32)
    t = st.thread.x
    fixed[t % 4] = 1
    first[0] = 1.0
    second[0] = 2.0
    third[0] = 3
    rest[t] = f32(len(rest))
    out[t] = rest[t]


ARGUMENTS = {"out": st.empty(32, "f32"), "n": 2, "wide": 5}


def test_dynamic_shared_arrays_are_offsets(golden: Golden) -> None:
    request = prepare_request(carved, grid=1, block=32, args=ARGUMENTS, shared=400)
    golden("cuda/dynamic_shared.cu", cuda_source(request.program, request.block).text)


def test_addresses_of_arrays() -> None:
    request = prepare_request(carved, grid=1, block=32, args=ARGUMENTS, shared=400)
    actual = {name: (array.offset, array.length) for name, array in request.dynamic_arrays.items()}
    assert actual == {"first": (0, 3), "second": (16, 3), "third": (40, 5), "rest": (48, 88)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"n": 50},
            r"carved needs 432 bytes of dynamic shared memory \(first 3 x 4, second 51 x 8, third 5 x 1, rest takes "
            r"the rest\), the launch gives 400: pass shared=432",
        ),
        ({"wide": -1}, "carved: third in dynamic shared memory has the count -1"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, int], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        prepare_request(carved, grid=1, block=32, args={**ARGUMENTS, **change}, shared=400)


@pytest.mark.parametrize("engine", ["numpy", "jit"])
def test_narrow_arrays_count_their_words(engine: EngineName) -> None:
    """33 bytes from the second on: lanes 0 and 1 ... share words, depending on the array's address."""

    @st.kernel
    def strided(out: Global[i32], n: i32) -> None:
        before = st.dynamic_shared(i8, n)
        bytes_after = st.dynamic_shared(i8)
        t = st.thread.x
        before[0] = 1
        bytes_after[66 * t] = i8(t)
        out[t] = i32(bytes_after[66 * t])

    counts = []
    for n in (1, 2, 3, 4):
        args = {"out": st.empty(32, "i32"), "n": n}
        result = st.launch(strided, grid=1, block=32, args=args, shared=4000, engine=engine)
        assert result.out.tolist() == np.arange(32).tolist()
        counts.append(result.counters.total("shared_load_wavefronts"))
    words = [[(66 * lane + n) // 4 for lane in range(32)] for n in (1, 2, 3, 4)]
    expected = [max(len({w for w in row if w % 32 == bank}) for bank in range(32)) for row in words]
    assert counts == expected and len(set(expected)) > 1


@st.kernel
def reads_table(table: Constant[f32], out: Global[f32]) -> None:
    out[st.lane] = table[st.lane % len(table)]


def test_a_table_is_in_constant_memory() -> None:
    args = {"table": np.array([1.5, 2.5], np.float32), "out": st.empty(32, "f32")}
    request = prepare_request(reads_table, grid=1, block=32, args=args)
    assert "__constant__ float table[2] = {1.5f, 2.5f};" in cuda_source(request.program, request.block).text


@pytest.mark.parametrize("engine", ["numpy", "jit"])
def test_each_launch_has_its_own_table(engine: EngineName) -> None:
    for scale in (1, 2):
        table = np.arange(4, dtype=np.float32) * scale
        result = st.launch(
            reads_table, grid=1, block=32, args={"table": table, "out": st.empty(32, "f32")}, engine=engine
        )
        assert result.out.tolist() == np.tile(table, 8).tolist()
        assert result.counters.total("constant_loads") == 1


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros(16385, np.float32), "table has 65,540 bytes of constant tables: a kernel has at most 65,536"),
        (np.zeros(4), r"table is Constant\[f32\]: give a NumPy array of one dimension and of float32"),
        ((1.0, 2.0), r"table is Constant\[f32\]: give a NumPy array"),
    ],
    ids=["large", "double", "tuple"],
)
def test_what_is_no_table_is_refused(table: object, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        prepare_request(reads_table, grid=1, block=32, args={"table": table, "out": st.empty(32, "f32")})
