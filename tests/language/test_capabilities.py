"""Words that not every device has are refused where it has not, with their place."""

from typing import Any

import pytest
import simtbed as st
from simtbed import LaunchError, devices
from simtbed.runtime.request import prepare_request

from tests.table_checks import each_row

NEEDS: list[tuple[str, str, str, str]] = [
    ("out[st.lane] = st.reduce_add(st.lane)", "i32", r"st\.reduce_add", "8.0"),
    ("out[st.lane], _ = st.match_all(st.lane)", "u32", r"st\.match_all", "7.0"),
    ("out[st.lane] = st.dp4a(st.lane, 3, 4)", "i32", r"st\.dp4a", "6.1"),
    ("st.nanosleep(20)", "i32", r"st\.nanosleep", "7.0"),
    ("st.atomic_add(out, 0, 1.0)", "f64", r"st\.atomic_add on f64", "6.0"),
    ("st.atomic_add(out, 0, st.float4(1.0, 2.0, 3.0, 4.0))", "float4", r"st\.atomic_add on float4", "9.0"),
    ('st.atomic_add(out, 0, 1, order="release")', "i32", 'order="release"', "7.0"),
    ("tile = st.shared(st.i32, 32); st.async_copy(tile, st.lane, out, st.lane)", "i32", r"st\.async_copy", "8.0"),
    ("out[st.lane] = st.load_acquire(out, 0)", "i32", r"st\.load_acquire", "7.0"),
    ('st.atomic_add(out, 0, 1, scope="system")', "i32", 'scope="system"', "6.0"),
]


@each_row(NEEDS)
def test_older_devices_are_refused(row: tuple[str, str, str, str]) -> None:
    line, type, word, capability = row
    kernel = st.kernel(source=f"def k(out: st.Global[st.{type}]) -> None:\n    {line}\n")
    how: Any = {"grid": 1, "block": 32, "args": {"out": st.zeros(32, type)}}
    prepare_request(kernel, **how, device=devices.H200)
    with pytest.raises(LaunchError, match=rf":2: {word} needs compute capability {capability}, K40 has 3.5"):
        prepare_request(kernel, **how, device=devices.K40)
