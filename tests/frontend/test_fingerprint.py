"""Fingerprints of programs: equal for equal behaviour, independent of the source position."""

import simtbed as st
from simtbed import Const, Global, Real, f32
from simtbed.frontend.reader import specialise
from simtbed.ir.fingerprint import fingerprint


def _twins() -> list[st.Kernel]:
    def make() -> st.Kernel:
        @st.kernel
        def scaled(x: Global[Real], SCALE: Const) -> None:
            x[st.lane] *= SCALE

        return scaled

    return [make(), make()]


@st.kernel
def scaled(x: Global[Real], SCALE: Const) -> None:
    x[st.lane] *= SCALE


@st.kernel
def added(x: Global[f32], SCALE: Const) -> None:
    x[st.lane] += SCALE


def fingerprint_of(kernel: st.Kernel, scale: float, real: str = "f32") -> str:
    from simtbed.language.types import SCALARS

    return fingerprint(specialise(kernel, {"SCALE": scale}, SCALARS[real]).program)


def test_equal_programs_have_one() -> None:
    first, second = _twins()
    assert fingerprint_of(first, 2.0) == fingerprint_of(second, 2.0) == fingerprint_of(scaled, 2.0)


def test_every_difference_changes_it() -> None:
    actual = [fingerprint_of(scaled, factor) for factor in (2.0, 3.0, 0.0, -0.0)]
    actual += [fingerprint_of(scaled, 2.0, "f64"), fingerprint_of(added, 2.0)]
    assert len(set(actual)) == len(actual)
