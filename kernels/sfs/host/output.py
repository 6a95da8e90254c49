"""What is written of spectra: a row a site as TSV or npz, the spectrum over all sites and its picture; whole files or none."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from typing import IO, Literal

import numpy as np

from .problem import Floats, Problem

Format = Literal["tsv", "npz"]
Rows = Iterable[tuple[Problem, Floats]]
"""Problems and their answers, some sites at a time; at least one, perhaps without sites."""


def tsv(rows: Rows) -> Iterator[str]:
    """A header, then chromosome, position and 2N + 1 values a site; a line at a time with its newline."""
    header = False
    for problem, answer in rows:
        if not header:
            yield "\t".join(["chrom", "pos", *map(str, range(2 * problem.individuals + 1))]) + "\n"
            header = True
        line = "\t".join(["%.10g"] * answer.shape[1]) + "\n"
        places = zip(problem.chromosomes, problem.positions.tolist(), strict=True)
        for (chromosome, position), values in zip(places, answer.tolist(), strict=True):
            yield f"{chromosome}\t{position}\t{line % tuple(values)}"


def npz(rows: Rows, target: IO[bytes]) -> None:
    """`values` (sites, 2N + 1) as they come; `pos`; `chrom` as numbers into `chromosomes`.

    Raises OSError. The shapes are known last, so the arrays wait in files of their own.
    """
    names: dict[str, int] = {}
    sites, width = 0, 0
    with tempfile.TemporaryFile() as values, tempfile.TemporaryFile() as positions, tempfile.TemporaryFile() as chrom:
        for problem, answer in rows:
            sites, width = sites + len(answer), answer.shape[1]
            values.write(np.ascontiguousarray(answer, np.float64).data)
            positions.write(problem.positions.astype(np.int64).data)
            numbers = [names.setdefault(name, len(names)) for name in problem.chromosomes]
            chrom.write(np.array(numbers, np.int32).data)
        with zipfile.ZipFile(target, "w") as archive:
            _member(archive, "values", values, (sites, width), np.dtype(np.float64))
            _member(archive, "pos", positions, (sites,), np.dtype(np.int64))
            _member(archive, "chrom", chrom, (sites,), np.dtype(np.int32))
            with archive.open("chromosomes.npy", "w") as file:
                np.lib.format.write_array(file, np.array(list(names), np.str_))


def _member(
    archive: zipfile.ZipFile, name: str, data: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[np.generic]
) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        data.seek(0)
        shutil.copyfileobj(data, file)


# ------------------------------------------------------------------ the spectrum over sites
def spectrum_lines(spectrum: Floats) -> Iterator[str]:
    """The spectrum as TSV: minor alleles, how many sites have so many, and their share."""
    yield "minor_alleles\tsites\tshare\n"
    whole = spectrum.sum() or 1.0
    yield from (f"{j}\t{sites:.10g}\t{sites / whole:.10g}\n" for j, sites in enumerate(spectrum.tolist()))


WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 900, 420, 80, 50, 40
"""Of the picture, in pixels: whole, and what is left free for labels."""


def picture(spectrum: Floats, title: str) -> str:
    """The sites with 1 to 2N - 1 minor alleles as bars, SVG. Sites without variation would dwarf them: they are told
    in the title."""
    shown = spectrum[1:-1]
    top = float(shown.max()) if len(shown) and shown.max() > 0 else 1.0
    step, height = (WIDTH - LEFT - 20) / max(len(shown), 1), HEIGHT - BOTTOM - TOP
    bars = "".join(
        f'<rect x="{LEFT + at * step:.2f}" y="{TOP + height * (1 - value / top):.2f}" width="{max(step * 0.9, 0.3):.2f}" '
        f'height="{height * value / top:.2f}"><title>{at + 1}: {value:.6g}</title></rect>\n'
        for at, value in enumerate(shown.tolist())
    )
    levels = "".join(
        f'<text x="{LEFT - 8}" y="{TOP + height * (1 - part) + 4:.0f}" text-anchor="end">{top * part:.3g}</text>\n'
        for part in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    every = max(1, -(-len(shown) // 16))
    counts = "".join(
        f'<text x="{LEFT + (at + 0.45) * step:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{at + 1}</text>\n'
        for at in range(0, len(shown), every)
    )
    fixed = f"none {spectrum[0]:.6g}, all {spectrum[-1]:.6g} (not drawn)"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12">\n<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n'
        f'<text x="{LEFT}" y="22" font-size="14">{_escaped(title)}; sites with minor alleles: {fixed}</text>\n'
        f'<g fill="#3b6ea5">\n{bars}</g>\n{levels}{counts}'
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">minor alleles</text>\n'
        f'<text x="16" y="{TOP + height / 2}" text-anchor="middle" transform="rotate(-90 16 {TOP + height / 2})">'
        "sites</text>\n</svg>\n"
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
