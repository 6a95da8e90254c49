"""Own code of Numba's kernels for a GPU: bytes of parameters, and PTX. Run as a script, in a process of its own."""

# mypy: allow-untyped-defs, allow-untyped-calls
import pickle
import re

import numpy as np
import pytest
from numba import cuda
from simtbed import LaunchError
from simtbed.engines.cuda.binary import binary
from simtbed.engines.cuda.own_code import packed
from simtbed.numba.gpu_code import SYMBOL

CAPTURED = cuda.to_device(np.ones(4))


@cuda.jit(device=True)
def pair(values, i):
    tile = cuda.shared.array(32, np.float64)
    tile[i] = values[i] * 2
    cuda.syncthreads()
    return tile[31 - i] + values[i]


@cuda.jit
def summed(x, out, factor):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = pair(x, i) * factor + x[i]


summed.targetoptions["lto"] = True  # Numba's default on a machine with NVIDIA's linker


@cuda.jit
def captured(out):
    out[0] = CAPTURED[0]


@cuda.jit
def whole_grid(out):
    cuda.cg.this_grid().sync()
    out[0] = 1


def launch():
    x, out = cuda.to_device(np.arange(67.0)), cuda.to_device(np.zeros(32))
    summed[1, 32](x[:3:-2], out[::1], 3)
    return out.copy_to_host()


def own(kernel):
    """Return the own code and the last request of a kernel that was launched for one combination of types."""
    (compiled,) = kernel.overloads.values()
    return compiled.kernel.own_code({}), list(compiled.launcher._plans.values())[-1]


def test_parameters():
    launch()
    code, request = own(summed)
    values: dict[str, object] = {"x@.stride0": -2, "x@.shape0": 31, "x@.offset": 60}
    values = {name: values.get(name, 7) for name in request.specialisation.summary.parameters}
    addresses = {"x": 4096, "out": 8192}
    values |= {name: np.zeros(64) for name in addresses}
    data = [value.tobytes() for value in packed(code.arguments, values, addresses)]
    numbers = [int.from_bytes(value, "little", signed=True) for value in data]
    assert numbers[3:7] == [8, 4096 + 60 * 8, 31, -16], numbers
    assert numbers[11] == 8192 and numbers[-1] == 7, numbers


def test_ptx():
    before = launch()
    code, request = own(summed)
    text = code.text("sm_90").text
    assert f".entry {SYMBOL}(" in text and ".target sm_90" in text
    assert "mul" in text and not re.search(r"\bfma\b", text), "products and sums are not contracted"
    assert ".target sm_80" in code.text("sm_80").text
    compiled = binary(request, "sm_90")
    assert compiled.interface.kernel == SYMBOL and compiled.built.resources.registers > 8
    assert compiled.built.resources.shared_bytes == 32 * 8
    assert (launch() == before).all()


def test_refusals():
    out = cuda.to_device(np.zeros(1))
    captured[1, 1](out)
    whole_grid[1, 32](out)
    code, _ = own(summed)
    for text, expected in (
        (own(captured)[0].text, "captured: the kernel contains the address of an array of the emulator"),
        (own(whole_grid)[0].text, "whole_grid: cudaCG.* needs NVIDIA's linker"),
        (pickle.loads(pickle.dumps(code)).text, "summed: another process cannot compile this kernel"),
    ):
        with pytest.raises(LaunchError, match=expected):
            text("sm_90")
    with pytest.raises(LaunchError, match="captured: 49,153 bytes of dynamic shared memory, more than 49,152"):
        captured[1, 1, 0, 49153](out)


if __name__ == "__main__":
    test_parameters()
    test_ptx()
    test_refusals()
    print("passed")
