"""Hostile files of every format: each trial ends with 0 or 2, a line on stderr, and outputs whole or unchanged."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hostile.formats import FORMATS, PACKINGS, Format
from tests.hostile.mutations import mutated
from tests.hostile.trial import command, mishandled

TRIALS = 25
"""Of a format in every run of the tests; `python -m tests.hostile 10000` makes more."""

every_format = pytest.mark.parametrize("form", FORMATS, ids=[form.name for form in FORMATS])


@every_format
def test_good_files_are_read_however_they_are_packed(form: Format, tmp_path: Path) -> None:
    for good in form.good:
        for pack in (bytes, *PACKINGS.values()):
            content = form.wrap(good)
            assert mishandled(form, content if content[:2] == b"\x1f\x8b" else pack(content), tmp_path) == ""
            assert (tmp_path / "out").exists() == ("{out}" in form.command)


@every_format
def test_mutated_files_are_handled(form: Format, tmp_path: Path) -> None:
    result = {}
    for seed in range(TRIALS):
        data = form.wrap(mutated(form.good[seed % len(form.good)], seed))
        if wrong := mishandled(form, data, tmp_path):
            result[seed] = wrong
    assert result == {}


@every_format
def test_cut_files_are_handled(form: Format, tmp_path: Path) -> None:
    good = form.good[0]
    result = {}
    for length in range(0, len(good), max(len(good) // TRIALS, 1)):
        if wrong := mishandled(form, form.wrap(good[:length]), tmp_path):
            result[length] = wrong
    assert result == {}


@given(data=st.binary(max_size=300), form=st.sampled_from(FORMATS))
def test_any_bytes_are_handled(tmp_path_factory: pytest.TempPathFactory, data: bytes, form: Format) -> None:
    assert mishandled(form, form.wrap(data), tmp_path_factory.mktemp("any")) == ""


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_damaged_packing_is_an_error(packing: str, tmp_path: Path) -> None:
    """Each byte of a packed file is changed: what is read is right, or the file is refused."""
    form = next(form for form in FORMATS if form.name == "table")
    packed = PACKINGS[packing](form.good[0])
    path, out = tmp_path / "in", tmp_path / "out"
    path.write_bytes(packed)
    assert command(["align", str(path), "-o", str(out)])[0] == 0
    answer = out.read_bytes()
    for at in range(len(packed)):
        path.write_bytes(packed[:at] + bytes([packed[at] ^ 0x55]) + packed[at + 1 :])
        out.unlink(missing_ok=True)
        code, _, message = command(["align", str(path), "-o", str(out)])
        assert (code == 0 and out.read_bytes() == answer) or (code == 2 and message.count("\n") == 1)


def test_a_trial_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    form = next(form for form in FORMATS if form.name == "table")
    monkeypatch.setattr("simtbed.kernels.alignment.host.files.scan_table", lambda *_: 1 / 0)
    assert "a defect of simtbed" in mishandled(form, form.good[0], tmp_path)
