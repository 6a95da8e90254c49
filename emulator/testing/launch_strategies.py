"""Hypothesis strategies for launches: arrays, grids and blocks, orders."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from ..errors import LaunchError
from ..ir import halves
from ..language.types import BF16, COMPLEX, F16, F64, Scalar
from ..runtime.arrays import named, split

ORDINARY = 8
"""Weight of numbers near 0 relative to all others."""
FEW = 8
"""Maximum distinct numbers of an array without gaps."""


def elements(type: Any, special: bool = True) -> st.SearchStrategy[Any]:
    """Return a strategy for numbers of a scalar type (`st.f32`, or "f32"): small ones, which shrink to 0, and any.

    special: also the extremes of the type; for floats NaN, infinities, -0 and subnormal numbers. Without it
    floats are finite and normal, with magnitudes whose squares do not overflow.
    """
    scalar = named(type)
    if not isinstance(scalar, Scalar):
        raise LaunchError(f"elements are of a scalar type, not of {scalar}")
    if scalar.kind == "bool":
        return st.booleans()
    if scalar.is_integer:
        low, high = scalar.range
        near = st.integers(max(low, -ORDINARY), ORDINARY)
        return st.one_of(near, st.integers(low, high), st.sampled_from((low, high))) if special else near
    width: Literal[16, 32, 64] = 64 if scalar == F64 else 16 if scalar == F16 else 32
    small = st.integers(-ORDINARY, ORDINARY).map(lambda n: float(n))

    def representable(value: float) -> float:
        return halves.number(value, scalar) if scalar == BF16 else value

    if special:
        return st.one_of(small, st.floats(width=width)).map(representable)
    bound = float(scalar.dtype.type(scalar.largest**0.25))
    return st.one_of(small, st.floats(-bound, bound, width=width, allow_subnormal=False)).map(representable)


def arrays(
    type: Any, length: int | st.SearchStrategy[int], special: bool = True
) -> st.SearchStrategy[npt.NDArray[Any]]:
    """Return a strategy for arguments of a parameter `Global[type]`: `length` elements; vectors have the shape (length, lanes).

    Half of the arrays are 0 except for some elements, which isolates the relevant ones. The other half repeat a few numbers, which
    exposes kernels that skip an element, such as the last one. special: as in `elements`.
    """
    scalar, lanes = split(named(type))
    whole = COMPLEX.get(named(type))

    def of_length(count: int) -> st.SearchStrategy[npt.NDArray[Any]]:
        shape = (count, lanes) if lanes else (count,)
        numbers = elements(scalar.name, special)

        def full(few: list[Any], seed: int) -> npt.NDArray[Any]:
            return np.array(few, scalar.dtype)[np.random.default_rng(seed).integers(len(few), size=shape)]

        components = st.one_of(
            arrays_of.arrays(scalar.dtype, shape, elements=numbers, fill=st.just(0)),
            st.builds(full, st.lists(numbers, min_size=2, max_size=FEW), st.integers(0, 2**16 - 1)),
        )
        return components if whole is None else components.map(lambda found: found.view(whole)[:, 0])

    return of_length(length) if isinstance(length, int) else length.flatmap(of_length)


def launch_shapes(
    threads: int, *, multiple: int = 1, most_blocks: int = 8, most_threads: int = 1024
) -> st.SearchStrategy[tuple[int, int]]:
    """Return a strategy for one-dimensional (grid, block) with at least `threads` threads.

    A block is a multiple of `multiple`, with at most `most_threads` threads, and the grid is minimal. Blocks are `multiple` times
    1, 3 or a power of two, or the smallest or largest possible: few sizes, because a kernel is compiled for each.

    Raises LaunchError if `most_blocks` blocks cannot have so many threads.
    """
    least, most = max(1, -(-threads // (most_blocks * multiple))), most_threads // multiple
    if least > most:
        raise LaunchError(f"{most_blocks} blocks of at most {most_threads} threads are fewer than {threads} threads")
    counts = sorted({least, 3, most, *(1 << power for power in range(most.bit_length()))})
    blocks = st.sampled_from([n * multiple for n in counts if least <= n <= most])
    return blocks.map(lambda block: (max(1, -(-threads // block)), block))


def schedules() -> st.SearchStrategy[int]:
    """Return a strategy for seeds of orders of blocks and warps, for `schedule=`."""
    return st.integers(0, 2**16 - 1)
