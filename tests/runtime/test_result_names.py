"""Names of a result: its arrays, and its members."""

import pickle
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.testing import verify

from tests.table_checks import check_each

NAMES = ("buffers", "counters", "counts", "faults", "profile", "request", "samples", "source", "wait")
PARAMETERS = ", ".join(f"{name}: st.Global[st.i32]" for name in NAMES)
BODY = "".join(f"    {name}[st.thread.x] = st.thread.x\n" for name in NAMES)
members = st.kernel(source=f"def members({PARAMETERS}) -> None:\n{BODY}")
"""Write arrays that have the names of members."""


@st.kernel
def reserved(launch: st.Global[st.i32], remarks: st.Global[st.i32]) -> None:
    """Write an array with the name of the details; read one with the name of a member."""
    launch[st.thread.x] = remarks[st.thread.x]


def arrays() -> dict[str, Any]:
    return {name: st.empty(4, st.i32) for name in NAMES}


def test_a_name_of_an_array_and_a_member_is_refused() -> None:
    result = st.launch(members, grid=1, block=4, args=arrays())
    on_device = st.launch(
        members, grid=1, block=4, args={name: st.DeviceArray(np.zeros(4, np.int32)) for name in NAMES}
    )

    def check(name: str) -> None:
        assert result[name].tolist() == [0, 1, 2, 3]
        for launched in (result, on_device, pickle.loads(pickle.dumps(result))):
            with pytest.raises(st.SimtbedError, match=rf'\["{name}"\] for the array; write result\.launch\.{name} for'):
                getattr(launched, name)
        getattr(result.launch, name)

    check_each(NAMES, check)
    assert result.remarks == [] and result.launch.counters.total("global_store_requests") == len(NAMES)
    with pytest.raises(st.SimtbedError, match=r"^counts is a DeviceArray: read the argument, counts.numpy\(\)$"):
        on_device["counts"]


def test_the_name_of_the_details_is_refused() -> None:
    args = {"launch": st.empty(4, st.i32), "remarks": np.arange(4, dtype=np.int32)}
    result = st.launch(reserved, grid=1, block=4, args=args)
    with pytest.raises(st.SimtbedError, match=r'result\["launch"\] for the array; rename the parameter for the member'):
        _ = result.launch
    assert result["launch"].tolist() == [0, 1, 2, 3]
    assert result.remarks == []  # an array that is only read is not in the result


def test_simtbed_itself_reads_no_ambiguous_name() -> None:
    assert verify(members, grid=1, block=4, args=arrays(), checked=True)["faults"].tolist() == [0, 1, 2, 3]
    with st.profiling(check="all", detail=True) as run:
        st.launch(members, grid=1, block=4, args=arrays())
    assert run.launches[0].faults == () and run.launches[0].counts is not None


def test_names_are_completed() -> None:
    args = {"launch": st.empty(4, st.i32), "remarks": np.arange(4, dtype=np.int32)}
    names = dir(st.launch(reserved, grid=1, block=4, args=args))
    assert {"launch", "counters", "faults", "wait"} <= {*names} and "writes" not in names
