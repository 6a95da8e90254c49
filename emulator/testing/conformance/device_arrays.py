"""Two kernels in sequence over device arrays."""

import numpy as np
import simtbed as st
from simtbed import DeviceArray, Global, c64, i16, i32, i64, int2, u64

from ...runtime.engine import Engine
from ...runtime.registry import EngineName
from .outcomes import launcher

FILL = np.arange(64, dtype=np.int32)


@st.kernel
def doubled(x: Global[i32], between: Global[i32], pairs: Global[int2]) -> None:
    """Add twice x to between, and (1, lane) to pairs."""
    i = st.block.x * 32 + st.lane
    between[i] += 2 * x[i]
    pairs[i] = st.int2(pairs[i].x + 1, st.lane)


@st.kernel
def summed(between: Global[i32], pairs: Global[int2], out: Global[i32]) -> None:
    i = st.block.x * 32 + st.lane
    out[i] = between[i] + 100 * pairs[i].x


@st.kernel
def transposed(x: Global[i32], out: Global[i32]) -> None:
    """out = x, transposed."""
    for i in range(out.shape[0]):
        if st.lane < out.shape[1]:
            out[i, st.lane] = x[st.lane, i]


@st.kernel
def first_half(a: Global[i32], b: Global[c64], c: Global[i16]) -> None:
    """Store to the elements below 16."""
    if st.lane < 16:
        a[st.lane] = 1
        b[st.lane] = st.c64(st.f32(1), st.f32(0))
        c[st.lane] = i16(1)


@st.kernel
def added(x: Global[u64], y: Global[i16], pairs: Global[int2], z: Global[c64], out: Global[i64]) -> None:
    """Add 1 to every other element of y and pairs; out: the sum of all arrays."""
    i = st.block.x * 32 + st.lane
    if i % 2 == 0:
        y[i] += i16(1)
        pairs[i] = st.int2(pairs[i].x + 1, pairs[i].y)
    out[i] = i64(x[i] & 7) + 10 * i64(y[i]) + 1000 * i64(pairs[i].x) + 100000 * i64(pairs[i].y) + i64(z[i].imag)


def of_one_value(engine: EngineName | Engine) -> None:
    """Test arrays filled with a value, for one launch and for several. Raises AssertionError."""
    run, even = launcher(engine), np.arange(64) % 2 == 0
    for on_device in (False, True):
        x, y, pairs, z = (
            DeviceArray(new) if on_device else new
            for new in (
                st.full(64, (1 << 64) - 3, st.u64),
                st.full(64, -2, st.i16),
                st.full(64, (7, 3), st.int2),
                st.full(64, 2 - 8j, st.c64),
            )
        )
        for times in (1, 2):
            args = {"x": x, "y": y, "pairs": pairs, "z": z, "out": st.empty(64, "i64")}
            buffers = run(added, grid=2, block=32, args=args, counters=False).buffers
            gained = (times if on_device else 1) * even
            assert np.array_equal(buffers["out"], 5 - 20 + 7000 + 300000 - 8 + 1010 * gained)
            after = {name: given.numpy() for name, given in args.items() if isinstance(given, DeviceArray)} or buffers
            assert np.array_equal(after["y"], gained - 2)
            assert np.array_equal(after["pairs"], np.stack([7 + gained, np.full(64, 3)], axis=1))
            assert not on_device or np.array_equal(after["z"], np.full(64, 2 - 8j, np.complex64))


def of_two_dimensions(engine: EngineName | Engine) -> None:
    """Transpose an array into another one and back. Raises AssertionError."""
    run, first = launcher(engine), FILL.reshape(4, 16)
    original, intermediate = DeviceArray(first[:, ::3]), DeviceArray(st.empty((6, 4), i32))
    run(transposed, grid=1, block=32, args={"x": original, "out": intermediate}, counters=False)
    back = run(transposed, grid=1, block=32, args={"x": intermediate, "out": st.empty((4, 6), i32)}, counters=False)
    assert np.array_equal(intermediate.numpy(), first[:, ::3].T)
    assert np.array_equal(back.buffers["out"], first[:, ::3])


def of_poison(engine: EngineName | Engine) -> None:
    """Test that elements without a store hold poison, in outputs and in device arrays. Raises AssertionError."""
    run, types = launcher(engine), {"a": "i32", "b": "c64", "c": "i16"}
    on_device = {name: DeviceArray(st.empty(32, type)) for name, type in types.items()}
    before = {name: array.numpy() for name, array in on_device.items()}
    new = {name: st.empty(32, type) for name, type in types.items()}
    buffers = run(first_half, grid=1, block=32, args=new, counters=False).buffers
    run(first_half, grid=1, block=32, args=on_device, counters=False)
    for name, array in on_device.items():
        for contents in (buffers[name], array.numpy()):
            assert (contents[:16] == 1).all()
            assert contents[16:].tobytes() == before[name][16:].tobytes()


def in_place(engine: EngineName | Engine) -> None:
    """Test that a changed array is not copied: an emulator changes its memory on the host, for all contents
    including zeros, and a GPU its own. Raises AssertionError."""
    run = launcher(engine)
    x, intermediate, pairs = (
        DeviceArray(FILL),
        DeviceArray(st.zeros(64, i32)),
        DeviceArray(np.full((64, 2), 5, np.int32)),
    )
    addresses = [array.host.ctypes.data for array in (intermediate, pairs)]
    for times in (1, 2, 3):
        run(doubled, grid=2, block=32, args={"x": x, "between": intermediate, "pairs": pairs}, counters=False)
        remote = [array.remote is not None for array in (intermediate, pairs)]
        assert all(remote) or addresses == [array.host.ctypes.data for array in (intermediate, pairs)]
        assert intermediate.fill is None
        if times != 2:  # a device array on a GPU is read from time to time
            assert np.array_equal(intermediate.numpy(), 2 * times * FILL)
            assert np.array_equal(pairs.numpy(), np.stack([np.full(64, 5 + times), FILL % 32], axis=1))


def sequence(engine: EngineName | Engine) -> tuple[DeviceArray, DeviceArray, list[int]]:
    """Run `doubled` twice, then `summed`: return the intermediate array, the pairs and the sums. Raises AssertionError."""
    run = launcher(engine)
    x, intermediate, pairs = DeviceArray(FILL), DeviceArray(np.full(64, 5, np.int32)), DeviceArray(st.zeros(64, "int2"))
    for _ in range(2):
        result = run(doubled, grid=2, block=32, args={"x": x, "between": intermediate, "pairs": pairs}, counters=False)
        assert not result.buffers
    args = {"between": intermediate, "pairs": pairs, "out": st.empty(64, "i32")}
    sums = run(summed, grid=2, block=32, args=args, counters=False).buffers["out"]
    assert np.array_equal(intermediate.numpy(), 5 + 4 * FILL)
    assert np.array_equal(pairs.numpy(), np.stack([np.full(64, 2), FILL % 32], axis=1))
    assert np.array_equal(sums, 205 + 4 * FILL)
    return intermediate, pairs, sums.tolist()
