"""Refused uses of halves; the golden text has the messages."""

# ruff: noqa
# mypy: ignore-errors
import simtbed as st
from simtbed import Global, bf16, f16, f32, half2


@st.kernel
def refused(x: Global[f16], y: Global[bf16], pairs: Global[half2], out: Global[f32]) -> None:
    """Each line is refused."""
    a, b = x[0], y[0]
    out[0] = st.exp(a)
    out[1] = a + f32(1)
    out[2] = a
    x[1] = a * b
    x[2] = a + 70000.0
    st.atomic_max(x, 0, a)
    st.atomic_add(x, 0, a, scope="block")
    st.atomic_sub(pairs, 0, half2(a, a))
    x[3] = st.match_any(a)
    y[1] = a // a
    pairs[0] = pairs[0] * 2
