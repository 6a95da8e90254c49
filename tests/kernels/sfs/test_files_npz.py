"""Archives of NumPy arrays that no program of NumPy writes."""

import zipfile
from collections import Counter
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from simtbed.kernels import InputError
from simtbed.kernels.sfs.host.files import Options, problems

from tests.table_checks import check_each


def test_types_and_names_without_values_in_an_npz(tmp_path: Path) -> None:
    """Headers that NumPy accepts, and a member name that zipfile cuts at NUL."""
    good = BytesIO()
    np.save(good, np.ones((2, 1, 3)))

    def header(descr: str, shape: str) -> bytes:
        text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        return b"\x93NUMPY\x01\x00v\x00" + text.encode()

    path = tmp_path / "given.npz"
    descrs = ["'|O'", "'|S0'", "'|V0'", "'<U0'", "[]", "[('a', '|O')]", "'<f8'", "('<i8', (2,))"]
    cases = [
        (name, descr, name) for name in ("P", "chrom", "pos") for descr in descrs if (name, descr) != ("P", "'<f8'")
    ]
    cases += [("P\0x", "'<f8'", "expected an array P of sites x individuals x 3, found nothing")]

    def check(case: tuple[str, str, str]) -> None:
        name, descr, message = case
        with zipfile.ZipFile(path, "w") as archive:
            if name in ("chrom", "pos"):
                archive.writestr("P.npy", good.getvalue())
            archive.writestr(
                f"{name.replace(chr(0), '@')}.npy", header(descr, "(2, 1, 3)" if name[0] == "P" else "(2,)")
            )
        path.write_bytes(path.read_bytes().replace(b"P@x.npy", b"P\0x.npy"))
        with pytest.raises(InputError, match=message):
            list(problems(path, Options(), Counter()))

    check_each(cases, check)
