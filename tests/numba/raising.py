"""Kernels with debug=True that raise, each with the line of the finding in the comment `# raises`; long chains; prints in branches."""

# mypy: allow-untyped-defs
import numpy as np
from numba import cuda


@cuda.jit(device=True)
def limited(x):
    if x > 5:
        raise ValueError("too big")  # raises device
    return x


@cuda.jit(device=True)
def limited_twice(x):
    assert x != 3, "three"  # raises nested
    return limited(x)


@cuda.jit(device=True)
def quotient(a, b):
    return a // b


@cuda.jit(debug=True, opt=False)
def device(x):
    x[cuda.threadIdx.x] = limited(cuda.threadIdx.x)


@cuda.jit(debug=True, opt=False)
def nested(x):
    x[cuda.threadIdx.x] = limited_twice(cuda.threadIdx.x % 5)


@cuda.jit(debug=True, opt=False)
def own_and_device(x):
    t = cuda.threadIdx.x
    if t == 2:
        raise IndexError("two")  # raises own_and_device
    x[t] = limited(t % 5)


@cuda.jit(debug=True, opt=False)
def division(x):
    t = cuda.threadIdx.x
    y = x[t]

    x[t] = 1 + y // (t - 4)  # raises division


@cuda.jit(debug=True, opt=False)
def second_division(x):
    t = cuda.threadIdx.x
    x[t] = 7 // (t + 1) + 8 // (t - 1)  # raises second_division


@cuda.jit
def print_in_branches(x):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        if x[i] > 2:
            print("big", x[i], i)
        else:
            print("small", x[i], i)


def chain(arms: int):  # type: ignore[no-untyped-def]
    """Return a kernel with a chain of `elif`."""
    lines = (f"    {'el' if arm else ''}if v < {arm}.5:\n        w += {arm % 7} * v\n" for arm in range(arms))
    text = "def chained(x):\n    v = x[cuda.threadIdx.x]\n    w = 1.0\n" + "".join(lines)
    names = {"cuda": cuda}
    exec(text + "    else:\n        w = -1.0\n    x[cuda.threadIdx.x] = w\n", names)
    return cuda.jit(names["chained"])


if __name__ == "__main__":
    for kernel in (device, nested, own_and_device, division, second_division):
        try:
            kernel[1, 8](np.ones(8, np.int32))
        except (ValueError, AssertionError, IndexError, ZeroDivisionError) as error:
            print(kernel.py_func.__name__, type(error).__name__, error)
    print_in_branches[1, 2](np.arange(4, dtype=np.float32))
    cuda.synchronize()
    values = np.linspace(0, 145, 32)
    results = values.copy()
    chain(140)[1, 32](results)
    arms = np.ceil(values - 0.5)
    print("equal" if np.array_equal(results, np.where(arms < 140, 1 + arms % 7 * values, -1)) else results)
