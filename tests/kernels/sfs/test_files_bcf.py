"""Native BCF scanner: results and errors equal those of the reader of single records, to the bit."""

from __future__ import annotations

import gzip
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cyvcf2
import numpy as np
import pytest
from simtbed.kernels.family import InputError
from simtbed.kernels.files import open_input
from simtbed.kernels.sfs.host import files_bcf, sites

HEADER = """##fileformat=VCFv4.2
##contig=<ID=1>
##contig=<ID=chrX>
##FILTER=<ID=q10,Description="">
##INFO=<ID=NS,Number=1,Type=Integer,Description="">
##INFO=<ID=TX,Number=1,Type=String,Description="">
##FORMAT=<ID=GT,Number=1,Type=String,Description="">
##FORMAT=<ID=AD,Number=R,Type=Integer,Description="">
##FORMAT=<ID=GL,Number=G,Type=Float,Description="">
##FORMAT=<ID=PL,Number=G,Type=Integer,Description="">
"""


def text(seed: int, count: int, samples: int) -> str:
    """Return sites of all kinds, most of the usual form."""
    draw = np.random.default_rng(seed)

    def pick(*choices: str, first: float = 0.8) -> str:
        return choices[0] if draw.random() < first else str(draw.choice(choices))

    def phred() -> str:
        return ",".join(map(str, draw.integers(0, draw.choice([3, 100, 127, 200, 40_000, 70_000]), 3)))

    def real() -> str:
        return ",".join(f"{-value:.4g}" for value in draw.exponential(2, 3))

    def value(key: str) -> str:
        if key == "PL":
            return pick(phred(), ".", ".,.,.", "3,.,1", "0,9", first=0.9)
        if key == "GL":
            return pick(real(), ".", "-1,.,-2", "-0.1,-inf,-3", first=0.9)
        return {"GT": pick("0/1", "./.", "1|1"), "AD": pick("3,4", ".", "300,70000")}[key]

    lines = [
        HEADER
        + "\t".join(
            ["#CHROM POS ID REF ALT QUAL FILTER INFO FORMAT".replace(" ", "\t"), *(f"s{n}" for n in range(samples))]
        )
    ]
    for at in range(count):
        keys = pick("GT:PL", "PL", "GL", "GT:GL:PL", "GT:AD:PL", "GT", "AD:GL", first=0.5).split(":")
        alternatives = pick("G", "GT", "<*>", "G,T", "<DEL>", "*", "g", first=0.8)
        info = pick(".", f"NS={draw.integers(0, 1 << 20)}", "NS=3;TX=some text of it that continues", first=0.5)
        head = [
            pick("1", "chrX"),
            str(at + 1),
            pick(".", f"rs{at}"),
            pick("A", "AC"),
            alternatives,
            ".",
            pick(".", "q10", "PASS"),
            info,
        ]
        lines.append("\t".join([*head, ":".join(keys), *(":".join(map(value, keys)) for _ in range(samples))]))
    return "\n".join(lines) + "\n"


def written(folder: Path, content: str) -> bytes:
    """Return the text as uncompressed BCF."""
    (folder / "given.vcf").write_text(content)
    source = cyvcf2.VCF(str(folder / "given.vcf"))
    writer = cyvcf2.Writer(str(folder / "given.bcf"), source, "wb")
    for record in source:
        writer.write_record(record)
    writer.close()
    source.close()
    return gzip.decompress((folder / "given.bcf").read_bytes())


ReadResult = tuple[dict[str, Any], Counter[str]] | str


def read(path: Path, posteriors: bool = False) -> ReadResult:
    """Return all sites of the reader, or its message and the number of preceding sites."""
    counts: Counter[str] = Counter()
    batches: list[sites.Sites] = []
    try:
        with open_input(path) as source:
            for section in files_bcf.sections(source, posteriors):
                batches.extend(section(counts))
    except InputError as error:
        return str(error)
    assert batches
    return {
        "likelihoods": np.concatenate([p.likelihoods for p in batches]).tobytes(),
        "scale": np.concatenate([p.scale for p in batches]).tobytes(),
        "chromosomes": [name for p in batches for name in p.chromosomes],
        "positions": np.concatenate([p.positions for p in batches]).tolist(),
        "alleles": [names for p in batches for names in p.alleles],
        "reads": [[some.tolist() for some in p.reads] if p.reads else None for p in batches],
        "samples": {p.samples for p in batches},
    }, counts


@contextmanager
def record_by_record() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        new = files_bcf._SiteScan._new

        def unable(some: Any) -> None:
            some.enabled = False
            new(some)

        patch.setattr(files_bcf._SiteScan, "_new", unable)
        yield


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use pieces of a few records and batches of a few sites."""
    monkeypatch.setattr(files_bcf, "SECTION_BYTES", 3_000)
    monkeypatch.setattr(sites, "SITES_AT_ONCE", 13)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("posteriors", [False, True])
@pytest.mark.parametrize("samples", [1, 3, 17])
def test_the_scan_and_the_reader_of_records_agree(samples: int, posteriors: bool, tmp_path: Path) -> None:
    for seed in range(5):
        content = text(seed, 200, samples)
        content = content if seed % 2 else content.replace("AD", "XX")  # without allele depths
        path = tmp_path / f"{seed}.bcf"
        path.write_bytes(written(tmp_path, content))
        result = read(path, posteriors)
        with record_by_record():
            expected = read(path, posteriors)
        assert not isinstance(result, str) and len(result[0]["positions"]) > 100
        assert sum(result[1].values()) > 5
        assert isinstance(expected, tuple)
        for name in result[0]:
            if name != "reads" or posteriors:
                assert result[0][name] == expected[0][name], name
        assert result[1] == expected[1]


@pytest.mark.usefixtures("small")
def test_most_records_take_the_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, calls = tmp_path / "given", 0
    lines = text(1, 300, 4)
    path.write_bytes(written(tmp_path, lines))
    take = files_bcf._SiteScan.take_record

    def counted(some: Any) -> None:
        nonlocal calls
        calls += 1
        take(some)

    monkeypatch.setattr(files_bcf._SiteScan, "take_record", counted)
    assert isinstance(read(path), tuple)
    assert 0 < calls < 200


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_damaged_files_give_the_same_error(tmp_path: Path) -> None:
    """Change, remove and insert bytes: both readers return equal sites and errors."""
    draw, path = np.random.default_rng(4), tmp_path / "given"
    whole = written(tmp_path, text(9, 40, 3).replace("AD", "XX"))
    begin = 9 + int.from_bytes(whole[5:9], "little")
    errors = Counter[bool]()
    for _ in range(600):
        content = bytearray(whole)
        at = int(draw.integers(begin, len(content)))
        kind = draw.integers(4)
        if kind == 0:
            del content[at:]
        elif kind == 1:
            content[at : at + 1] = b""
        else:
            content[at] = int(draw.choice([0, 1, 0x7F, 0x80, 0xFF, int(draw.integers(256))]))
        path.write_bytes(content)
        result = read(path, posteriors=bool(kind & 1))
        with record_by_record():
            expected = read(path, posteriors=bool(kind & 1))
        assert result == expected
        errors[isinstance(result, str)] += 1
    assert min(errors.values()) > 100


@pytest.mark.usefixtures("small")
def test_damage_is_reported_after_the_preceding_record(tmp_path: Path) -> None:
    path = tmp_path / "given"
    whole = written(tmp_path, text(9, 60, 3).replace("AD", "XX"))
    at = 9 + int.from_bytes(whole[5:9], "little")
    last = "the header"
    for record in range(1, 61):
        path.write_bytes(whole[: at + 12])
        assert f"record {record}, after {last}: " in str(read(path))
        shared, single = struct.unpack("<II", whole[at : at + 8])
        contig, position = struct.unpack("<ii", whole[at + 8 : at + 16])
        last = f"{('1', 'chrX')[contig]}:{position + 1}"
        at += 8 + shared + single
