"""Native Beagle scanner: results equal those of Python's split and float, numbers to the bit."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simtbed.kernels.family import InputError
from simtbed.kernels.files import open_input
from simtbed.kernels.sfs.host import files_beagle, sites

SPACES = st.sampled_from([" ", "\t", "  ", " \t ", "\x0b", "\x0c", "\r "])
PLAIN = st.sampled_from(
    ["0", "1", "0.333333", ".5", "5.", "1e-5", "1E5", "+2", "1e+22", "1e-22", "9007199254740992", "0.1234567890123456"]
)
RARE = st.sampled_from(
    ["9007199254740993", "1e23", "1e-23", "1e-300", "5e-324", "1e300", "0.12345678901234567", "1_0", "1e0005", "00000000000000000000001"]
)  # fmt: skip
FLOATS = st.floats(0, 1e300, allow_subnormal=True).map(repr)
WRONG = st.sampled_from(["x", "nan", "-1", "inf", "1e", "1.2.3", "e5", ".", "-", "1e301", "1-2", "0x1"])
MARKERS = st.sampled_from(["chr1_5", "1:7", "rs7", "a_b", "_9", "c_0000000000000000000"])


def reference(path: Path) -> tuple[list[list[float]], list[str], list[int]] | int:
    """Return likelihoods, chromosomes and positions by plain Python, or the line of the first mistake."""
    lines = path.read_bytes().split(b"\n")
    columns = len(lines[0].split())
    values, chromosomes, positions = [], [], []
    for number, line in enumerate(lines[1:], 2):
        fields = line.split()
        if not fields:
            continue
        try:
            numbers = [float(field) for field in fields[3:]]
        except ValueError:
            return number
        groups = np.array(numbers[: len(numbers) // 3 * 3]).reshape(-1, 3)
        good = ((groups >= 0) & (groups <= sites.LARGEST)).all() and (groups > 0).any(axis=1).all()
        name = fields[0].decode()
        separator = next((s for s in "_:" if name.rpartition(s)[1] and name.rpartition(s)[2].isdigit()), "")
        last = name.rpartition(separator)[2] if separator else "0"
        if len(fields) != columns or not good or len(last) > 18:
            return number
        values.append(numbers)
        chromosomes.append(name.rpartition(separator)[0] if separator else name)
        positions.append(int(last))
    return values, chromosomes, positions


def read_result(path: Path) -> tuple[list[list[float]], list[str], list[int]] | int:
    """Return the same by the reader."""
    values, chromosomes, positions = [], [], []
    try:
        with open_input(path) as source:
            for some in (sites for part in files_beagle.sections(source) for sites in part(Counter())):
                values += some.likelihoods.reshape(-1, 3 * some.likelihoods.shape[1]).tolist()
                chromosomes += some.chromosomes
                positions += some.positions.tolist()
    except InputError as error:
        return int(str(error).replace(": line ", ":").split(":")[1].split(",")[0])
    return values, chromosomes, positions


@st.composite
def files(draw: st.DrawFn, wrong: bool) -> str:
    individuals = draw(st.integers(1, 3))
    number = st.one_of(PLAIN, PLAIN, RARE, FLOATS)
    lines = [" ".join(["marker", "a", "b"] + ["I"] * 3 * individuals)]
    for _ in range(draw(st.integers(0, 9))):
        if draw(st.integers(0, 5)) == 0:
            lines.append(draw(st.sampled_from(["", " ", "\t\r"])))
            continue
        count = 3 * individuals
        if wrong and draw(st.integers(0, 9)) == 0:
            count += draw(st.integers(-count, 3))
        values = [
            draw(st.one_of(number, WRONG) if wrong and draw(st.integers(0, 9)) == 0 else number) for _ in range(count)
        ]
        if not wrong:
            values = [draw(FLOATS.filter(lambda f: float(f) > 0)) if at % 3 == 0 else v for at, v in enumerate(values)]
        marker = draw(MARKERS if wrong else MARKERS.filter(lambda m: len(m) < 15))
        text = "".join(field + draw(SPACES) for field in [marker, "0", "1", *values])
        lines.append(draw(st.sampled_from(["", " "])) + (text if draw(st.booleans()) else text.rstrip()))
    return "\n".join(lines) + draw(st.sampled_from(["", "\n", "\r\n"]))


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [False, True])
def test_lines_equal_the_results_of_python(wrong: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "given.beagle"
    monkeypatch.setattr(sites, "SITES_AT_ONCE", 3)
    monkeypatch.setattr(files_beagle, "SECTION_BYTES", 150)  # sections of a few lines
    some = 0

    @settings(max_examples=100, deadline=None)
    @given(files(wrong))
    def check(text: str) -> None:
        nonlocal some
        path.write_text(text, newline="")
        expected = reference(path)
        assert read_result(path) == expected
        some += isinstance(expected, int) == wrong

    check()
    assert some > 15


def test_signs_of_zero_are_preserved(tmp_path: Path) -> None:
    path = tmp_path / "given.beagle"
    path.write_text("marker a b I I I\nm 0 1 -0 -0.0e5 1\n")
    with open_input(path) as source:
        (only,) = (sites for part in files_beagle.sections(source) for sites in part(Counter()))
    np.testing.assert_array_equal(np.signbit(only.likelihoods.ravel()), [True, True, False])


def test_a_file_without_sites_is_one_batch(tmp_path: Path) -> None:
    path = tmp_path / "given.beagle"
    path.write_text("marker a b I I I")
    with open_input(path) as source:
        (only,) = (sites for part in files_beagle.sections(source) for sites in part(Counter()))
    assert only.likelihoods.shape == (0, 1, 3) and only.chromosomes == []


def test_a_line_that_is_too_long_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "given.beagle"
    path.write_text("marker a b I I I\nm 0 1 " + " " * 5000 + "1 1 1\n")
    with (
        open_input(path, memory=8 * 1000) as source,
        pytest.raises(InputError, match="a line has more than 1,000 bytes"),
    ):
        list(files_beagle.sections(source))
