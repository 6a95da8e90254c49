"""Hypothesis strategies for what a kernel is launched with: arrays, grids and blocks, orders."""

from __future__ import annotations

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
"""Numbers near 0 are drawn as often as all others together."""
FEW = 8
"""Different numbers that an array without gaps has at most."""


def elements(type: Any, special: bool = True) -> st.SearchStrategy[Any]:
    """Numbers of a scalar type (`st.f32`, or "f32"): small ones, which shrink to 0, and any.

    special: also the extremes of the type; of floats NaN, infinities, -0 and numbers below the normal ones. Without it
    floats are finite and normal, and of magnitudes that do not overflow when squared.
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

    def held(value: float) -> float:
        return halves.number(value, scalar) if scalar == BF16 else value

    if special:
        return st.one_of(small, st.floats(width=width)).map(held)
    bound = float(scalar.dtype.type(scalar.largest**0.25))
    return st.one_of(small, st.floats(-bound, bound, width=width, allow_subnormal=False)).map(held)


def arrays(
    type: Any, length: int | st.SearchStrategy[int], special: bool = True
) -> st.SearchStrategy[npt.NDArray[Any]]:
    """Arrays for a parameter `Global[type]`: of `length` elements, of vectors with the shape (length, lanes). special: as in
    `elements`.

    Half of them are 0 but for some elements, which tells those that matter. Half have one of a few numbers at every place:
    so a kernel that forgets an element, the last one or that of a neighbour, is seen to.
    """
    scalar, lanes = split(named(type))
    whole = COMPLEX.get(named(type))

    def of_length(count: int) -> st.SearchStrategy[npt.NDArray[Any]]:
        shape = (count, lanes) if lanes else (count,)
        numbers = elements(scalar.name, special)

        def full(few: list[Any], seed: int) -> npt.NDArray[Any]:
            return np.array(few, scalar.dtype)[np.random.default_rng(seed).integers(len(few), size=shape)]

        parts = st.one_of(
            arrays_of.arrays(scalar.dtype, shape, elements=numbers, fill=st.just(0)),
            st.builds(full, st.lists(numbers, min_size=2, max_size=FEW), st.integers(0, 2**16 - 1)),
        )
        return parts if whole is None else parts.map(lambda found: found.view(whole)[:, 0])

    return of_length(length) if isinstance(length, int) else length.flatmap(of_length)


def launch_shapes(
    threads: int, *, multiple: int = 1, most_blocks: int = 8, most_threads: int = 1024
) -> st.SearchStrategy[tuple[int, int]]:
    """(grid, block), of one dimension, with `threads` threads or more: a block is a multiple of `multiple`, of at most
    `most_threads` threads, and the grid has no block more than it needs. Blocks are `multiple` times 1, 3 or a power of
    two, or as small or as large as they may be: few sizes, because a kernel is compiled for each.

    Raises LaunchError where `most_blocks` blocks cannot have so many threads.
    """
    least, most = max(1, -(-threads // (most_blocks * multiple))), most_threads // multiple
    if least > most:
        raise LaunchError(f"{most_blocks} blocks of at most {most_threads} threads are fewer than {threads} threads")
    counts = sorted({least, 3, most, *(1 << power for power in range(most.bit_length()))})
    blocks = st.sampled_from([n * multiple for n in counts if least <= n <= most])
    return blocks.map(lambda block: (max(1, -(-threads // block)), block))


def schedules() -> st.SearchStrategy[int]:
    """Seeds of orders of blocks and warps, for `schedule=`."""
    return st.integers(0, 2**16 - 1)
