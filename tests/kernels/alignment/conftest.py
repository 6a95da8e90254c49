"""Strategies for alignment problems with many ties, and GATK's answers from the published data."""

from hypothesis import strategies as st
from simtbed.kernels.alignment.host.problem import Parameters, Problem, Strategy

PUBLISHED = {
    "NEW": Parameters(200, -150, -260, -11),
    "BESTHAP": Parameters(10, -15, -30, -5),
    "NGS": Parameters(25, -50, -110, -6),
    "ORIG": Parameters(3, -1, -4, -3),
}


scores = st.builds(
    Parameters, st.integers(0, 5), st.integers(-5, 0), st.integers(-8, 0), st.integers(-5, 0)
)  # gaps cheaper to open than to extend, and free ones


@st.composite
def sequences(draw: st.DrawFn, most: int) -> bytes:
    """Two letters, often repeats of a few of them: most cells of a matrix tie."""
    unit = draw(st.binary(min_size=1, max_size=6)).translate(bytes(b"AC"[code & 1] for code in range(256)))
    length = draw(st.integers(1, most))
    other = draw(st.integers(0, length))
    return (unit * length)[:other] + (unit[::-1] * length)[: length - other]


def problems(most: int = 70) -> st.SearchStrategy[Problem]:
    """Up to 12 pairs of sequences of at most `most` bases."""
    pairs = st.lists(st.tuples(sequences(most), sequences(most)), min_size=1, max_size=12)
    return st.builds(Problem.from_pairs, pairs, scores, st.sampled_from(Strategy))
