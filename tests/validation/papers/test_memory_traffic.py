"""What global memory moves, line by line, and what it would move with a row of its own for each lane."""

from typing import Any

import numpy as np
import simtbed as st
from simtbed import Global, Real
from simtbed.reports.profile.memory_traffic import Traffic, memory_traffic


@st.kernel
def with_first(x: Global[Real], out: Global[Real]) -> None:
    mine = x[st.lane]
    first = x[0]
    out[2 * st.lane] = mine + first


def _traffic(*types: str) -> dict[tuple[int, str, int], Traffic]:
    """By line (from the kernel's first), kind and size."""
    with st.profiling() as run:
        for type in types:
            args: dict[str, Any] = {"x": np.zeros(32, type), "out": st.empty(64, f"f{8 * np.dtype(type).itemsize}")}
            st.launch(with_first, grid=1, block=32, args=args, engine="numpy")
    start = with_first.function.__code__.co_firstlineno + 2
    return {(t.line - start, t.kind, t.size): t for t in memory_traffic(run.profile)}


def test_one_entry_a_line_and_size() -> None:
    once, both = _traffic("f4"), _traffic("f4", "f4", "f8")
    assert set(once) == {(0, "global_load", 4), (1, "global_load", 4), (2, "global_store", 4)}
    assert set(both) == set(once) | {(line, kind, 8) for line, kind, _ in once}
    assert (both[0, "global_load", 4].requests, both[0, "global_load", 4].sectors) == (2, 8)
    assert (both[0, "global_load", 8].requests, both[0, "global_load", 8].sectors) == (1, 8)


def test_distant_rows() -> None:
    result = _traffic("f4")
    whole, same, strided = result[0, "global_load", 4], result[1, "global_load", 4], result[2, "global_store", 4]
    assert (whole.sectors, whole.efficiency, whole.sectors_if_scattered) == (4, 1.0, 32)
    assert (strided.sectors, strided.efficiency, strided.sectors_if_scattered) == (8, 0.5, 32)
    assert (same.sectors, same.efficiency, same.sectors_if_scattered) == (
        1,
        4.0,
        None,
    )  # one element for all lanes: no layout matters
