"""Refused uses of tuples and structs; the golden text has the messages."""

# ruff: noqa
# mypy: ignore-errors
from typing import NamedTuple

import simtbed as st
from simtbed import Global, f32, i32


class Point(NamedTuple):
    x: f32
    y: f32


class Vague(NamedTuple):
    x: float


@st.device
def pair(a: i32) -> tuple[i32, f32]:
    if a > 3:
        return a
    if a > 2:
        return a, a
    return a, 1.0, 2


@st.device
def taking(p: Point, q: tuple[i32, i32]) -> f32:
    return p.x


@st.kernel
def tuples(x: Global[f32], out: Global[f32], n: i32) -> None:
    a, b = n, 1, 2
    p = (n, 1.0)
    c = p[2]
    d = p + 1
    p = (1, 2, 3)
    p = 5
    e = n
    e = (1, n)
    if n > 1:
        late = (n, n)
    out[0] = late[0]
    g = (1, n) if n > 0 else 3
    h, *i = (1, n)


@st.kernel
def structs(x: Global[f32], out: Global[f32], n: i32) -> None:
    p = Point(1.0, n)
    q = Point(1.0)
    r = Point(1.0, 2.0)
    r.x = 3.0
    s = r.z
    u = Vague(1.0)
    v = taking(r, (1, 2.5))
    w = taking((1.0, 2.0), (1, 2))
    out[0] = r


@st.kernel
def results(out: Global[f32], n: i32) -> None:
    a, b = pair(n)
    out[0] = b
