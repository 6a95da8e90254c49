"""Refused uses of multi-dimensional arrays; the golden text has the messages."""

# ruff: noqa
# mypy: ignore-errors
import simtbed as st
from simtbed import Global, f32


@st.kernel
def wrong(x: Global[f32], y: Global[f32], out: Global[f32]) -> None:
    i = st.thread.x
    out[i] = x[i]
    a = x[i] + 1
    out[0] = x[i, 1:3]
    x[i] = 2.0
    b = y[i, 0]
    c = x[i, i, i]
    d = x[::2]
    e = x[-1:]
    f = x[1.5, i]
    g = x.T
    h = x[-1, 0]
    row = x[0]
    row = x[1]
    for k in range(2):
        late = x[k]
    out[1] = late[0]
    st.atomic_add(x, i, 1.0)
