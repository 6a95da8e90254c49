"""Generators of the inputs of `simtbed bench files`, from fixed seeds."""

import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from simtbed import Global, i64, u8
from simtbed.kernels.files import Outputs, open_input
from simtbed.kernels.files.text_loops import copied, decimal
from simtbed.kernels.pairhmm.host.files import records
from simtbed.kernels.pairhmm.host.generate import equal_lengths
from simtbed.kernels.pipeline import Flow, workers_for
from simtbed.kernels.sfs.host.generate import likelihoods
from simtbed.native import native

LETTERS = np.frombuffer(b"ACGT", np.uint8)
PAIRS, BASES, EDITS = 100_000, (300, 520), (1, 8)
EQUAL_PAIRS, EQUAL_LENGTH = 655_360, 512
SITES, INDIVIDUALS = 5_461, 1_024
SAMPLES, SITES_AT_ONCE = 100, 20_000
COLUMNS = np.frombuffer(b"\t.\tA\tG\t.\t.\t.\tPL", np.uint8)
HEADER = '##fileformat=VCFv4.2\n##contig=<ID=1>\n##FORMAT=<ID=PL,Number=G,Type=Integer,Description="Likelihoods">\n'
GZIP_LEVEL, WINDOW, TOGETHER = 6, 1 << 15, 1 << 20
MAKERS = 64
"""Maximum of threads to generate an input."""


def as_gzip(path: Path) -> Iterator[bytes]:
    """Compress a file to one gzip member at the default level; threads compress blocks with the preceding block as dictionary."""
    checksum, size = 0, 0

    def pieces() -> Iterator[tuple[bytes, bytes]]:
        nonlocal checksum, size
        before = b""
        with open_input(path) as source:
            while some := source.read(TOGETHER):
                yield before, some
                before, checksum, size = some[-WINDOW:], zlib.crc32(some, checksum), size + len(some)

    def packed(piece: tuple[bytes, bytes]) -> bytes:
        before, some = piece
        packer = zlib.compressobj(GZIP_LEVEL, wbits=-15, zdict=before)
        return packer.compress(some) + packer.flush(zlib.Z_SYNC_FLUSH)

    yield b"\x1f\x8b\x08" + bytes(7)
    yield from Flow(pieces()).map(packed, workers_for(MAKERS))
    yield zlib.compressobj(wbits=-15).flush()
    yield checksum.to_bytes(4, "little") + (size % (1 << 32)).to_bytes(4, "little")


def aligned_pairs() -> Iterator[bytes]:
    """Yield rows of reference, tab, alternate; the alternate has 1 to 8 substitutions, insertions or deletions."""
    draw = np.random.default_rng(1)
    for _ in range(PAIRS):
        reference = draw.choice(LETTERS, draw.integers(*BASES, endpoint=True))
        alternate = reference.tolist()
        for at, kind, letter in zip(*_edits(draw, len(reference)), strict=True):
            alternate[at : at + (kind > 0)] = [letter] if kind < 2 else []
        yield b"%s\t%s\n" % (reference.tobytes(), bytes(alternate))


def _edits(draw: np.random.Generator, length: int) -> tuple[list[int], list[int], list[int]]:
    """Return positions in descending order, kinds (0 insertion, 1 substitution, 2 deletion) and letters."""
    count = int(draw.integers(*EDITS, endpoint=True))
    places = np.sort(draw.choice(length, count, replace=False))[::-1]
    return places.tolist(), draw.integers(3, size=count).tolist(), draw.choice(LETTERS, count).tolist()


def equal_pairs() -> Iterator[bytes]:
    """Yield pairs of a read and a haplotype of 512 bases each."""
    yield from (line.encode() for line in records(equal_lengths(1, EQUAL_PAIRS, EQUAL_LENGTH, EQUAL_LENGTH)))


def likelihood_file(path: Path) -> Path:
    """Write SITES x INDIVIDUALS likelihoods as uncompressed npz."""
    with Outputs({"likelihoods": path}) as outputs:
        np.savez(outputs["likelihoods"], P=likelihoods(1, SITES, INDIVIDUALS))
    return path


def variants(sites: int) -> Iterator[bytes]:
    """Yield a VCF with PL of SAMPLES samples."""
    names = "\t".join(f"s{n}" for n in range(SAMPLES))
    yield f"{HEADER}#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t{names}\n".encode()

    def rows(first: int) -> bytes:
        values = likelihoods(1 + first, min(SITES_AT_ONCE, sites - first), SAMPLES)
        phred = np.round(-10 * np.log10(values)).astype(np.int64)
        to = np.empty(phred.size * 5 + 64 * len(phred), np.uint8)
        length = _rows(phred.ravel(), COLUMNS, len(COLUMNS), len(phred), SAMPLES, first + 1, to)
        return to[:length].tobytes()

    yield from Flow(range(0, sites, SITES_AT_ONCE)).map(rows, workers_for(MAKERS))


@native
def _rows(
    phred: Global[i64], columns: Global[u8], width: i64, sites: i64, samples: i64, position: i64, to: Global[u8]
) -> i64:
    """Write lines of VCF: position, columns up to FORMAT, three numbers per sample. Return the length."""
    at = i64(0)
    for site in range(sites):
        to[at] = 49
        to[at + 1] = 9
        at = decimal(position + site, to, at + 2)
        at = copied(columns, i64(0), width, to, at)
        for sample in range(samples):
            for genotype in range(i64(3)):
                to[at] = 9 if genotype == 0 else u8(44)
                at = decimal(phred[3 * (site * samples + sample) + genotype], to, at + 1)
        to[at] = 10
        at += 1
    return at
