"""The formats that commands read, each with small good files of it: where mutations begin."""

import bz2
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

FASTQ = b"""@r1 first
ACGTACGTACGTAC
+
IIIIIIIIIIIIII
@r2
ACGTACGTACGTACNN
+r2
!~IIIIIIIIIIIII5
@r3
acgtacgtacgtac
+
!!!!!!!!!!!!!!
"""
FASTA = b">r1 first\nACGTACGTACGTAC\n>r2\nACGTACGT\nACGTACNN\n;#\n>r3\nacgtacgtacgtac\n"
"""`correct` discards a read with another character than a letter."""
REFERENCE = FASTA.replace(b";#", b"RU")
PAIRHMM = b"2 1\nACGT IIII 5555 5555 ++++\nA ! ! ! !\nACGTA\n1 2\nNACG\tIIII\tIIII\tIIII\t++++\nACG\nT\n0 1\nA\n"
TABLE = b"ACGT\tCG\nCG\tACGT\nNnR\tacgt\n"
REFERENCES, ALTERNATES = b">chr1 of this\nACGT\nAC\n>chr2\nGG\n", b">a\nACG\n>b\nG\n"
BEAGLE = b"marker a b I I I J J J\nchr1_5 0 1 1 .1 .001 1 1 1\nrs7 0 1 1 .1 .001 1 1e-3 1\nX:9 0 1 0 .1 .001 1 0 0\n"
VCF_HEADER = b"""##fileformat=VCFv4.2
##FILTER=<ID=PASS,Description="All filters passed">
##contig=<ID=1,length=1000>
##contig=<ID=X>
##INFO=<ID=DP,Number=1,Type=Integer,Description="reads, all">
##FORMAT=<ID=GT,Number=1,Type=String,Description="genotype">
##FORMAT=<ID=PL,Number=G,Type=Integer,Description="Phred">
##FORMAT=<ID=GL,Number=G,Type=Float,Description="log10">
##FORMAT=<ID=AD,Number=R,Type=Integer,Description="reads by allele">
##FORMAT=<ID=DP,Number=1,Type=Integer,Description="reads">
#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tA\tB
"""
VCF_SITES = b"""1\t5\trs1\tA\tG\t9\tPASS\tDP=3\tGT:PL:AD\t0/0:0,10,30:3,0\t./.:.:.
1\t6\t.\tA\tG,T\t.\t.\t.\tPL\t0,1,2,3,4,5\t0,1,2,3,4,5
1\t7\t.\tA\t<*>\t.\t.\t.\tGT\t0/0\t0/1
X\t8\t.\tAC\tA\t.\t.\t.\tGT:GL\t0/1:-1,0,-2.5\t1/1:-4,-1,0
X\t9\t.\tC\tT\t.\t.\tDP=7\tPL:DP\t30,0,10:7\t0,300,3000:200
"""
VCF = VCF_HEADER + VCF_SITES


def bcf() -> bytes:
    """The sites of VCF, written by hand, without another library."""
    names = {"PASS": 0, "DP": 1, "GT": 2, "PL": 3, "GL": 4, "AD": 5}  # DP of INFO and of FORMAT share a number

    def ints(kind: int, *rows: list[int]) -> bytes:
        return bytes([len(rows[0]) << 4 | kind]) + b"".join(struct.pack(f"<{len(r)}{'_bhi'[kind]}", *r) for r in rows)

    def floats(*rows: list[float]) -> bytes:
        return bytes([len(rows[0]) << 4 | 5]) + b"".join(struct.pack(f"<{len(r)}f", *r) for r in rows)

    def string(value: bytes) -> bytes:
        return bytes([len(value) << 4 | 7]) + value

    def record(contig: int, position: int, alleles: list[bytes], info: bytes, fields: dict[str, bytes]) -> bytes:
        numbers = (len(alleles) << 16 | bool(info), len(fields) << 24 | 2)
        shared = struct.pack("<iiifII", contig, position - 1, len(alleles[0]), 9.0, *numbers)
        shared += string(b"rs") + b"".join(map(string, alleles)) + b"\x11\x00" + info
        single = b"".join(bytes([0x11, names[name]]) + data for name, data in fields.items())
        return struct.pack("<II", len(shared), len(single)) + shared + single

    sites = [
        record(0, 5, [b"A", b"G"], b"\x11\x01\x11\x03", {
            "GT": ints(1, [2, 2], [0, 0]), "PL": ints(1, [0, 10, 30], [-128, -127, -127]), "AD": ints(1, [3, 0], [-128, -127]),
        }),
        record(0, 6, [b"A", b"G", b"T"], b"", {"PL": ints(1, [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5])}),
        record(0, 7, [b"A", b"<*>"], b"", {"GT": ints(1, [2, 2], [2, 4])}),
        record(1, 8, [b"AC", b"A"], b"", {"GT": ints(1, [2, 4], [4, 4]), "GL": floats([-1.0, 0.0, -2.5], [-4.0, -1.0, 0.0])}),
        record(1, 9, [b"C", b"T"], b"\x11\x01\x11\x07", {"PL": ints(2, [30, 0, 10], [0, 300, 3000]), "DP": ints(2, [7], [200])}),
    ]  # fmt: skip
    return with_bcf_header(VCF_HEADER, b"".join(sites))


def with_bcf_header(header: bytes, sites: bytes) -> bytes:
    """A BCF whose header says its length."""
    return b"BCF\x02\x02" + struct.pack("<I", len(header) + 1) + header + b"\0" + sites


def bgzf(data: bytes, size: int = 200) -> bytes:
    """In blocks of gzip, with the empty one at the end."""
    created = []
    for at in [*range(0, len(data), size), len(data)]:
        raw = zlib.compressobj(6, zlib.DEFLATED, -15)
        piece = data[at : at + size] if at < len(data) else b""
        packed = raw.compress(piece) + raw.flush()
        head = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0" + struct.pack("<H", len(packed) + 25)
        created.append(head + packed + struct.pack("<II", zlib.crc32(piece), len(piece)))
    return b"".join(created)


def npy(array: object) -> bytes:
    """An array as a member of an npz file."""
    to = io.BytesIO()
    np.lib.format.write_array(to, np.asarray(array))
    return to.getvalue()


MEMBERS = {
    "P": npy([[[1, 0.1, 0.001], [1, 1, 1]]] * 4),
    "chrom": npy(np.array(["1", "1", "X", "X"])),
    "pos": npy(np.arange(4) * 5),
}
"""Of four sites and two individuals."""


def npz(pack: bool = False, **members: bytes) -> bytes:
    """The MEMBERS, some of them others."""
    to = io.BytesIO()
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED if pack else zipfile.ZIP_STORED) as archive:
        for name, content in {**MEMBERS, **members}.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content)
    return to.getvalue()


ACCESSES = (
    b"op,bytes,lanes\nglobal_load,4,"
    + b" ".join(b"%d" % i for i in range(32))
    + b"\nshared_store,8,"
    + b" ".join([b"-1"] * 32)
    + b"\n"
)

PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, mtime=0),
    "bgzf": bgzf,
    "xz": lzma.compress,
    "bz2": bz2.compress,
}


@dataclass(frozen=True)
class Format:
    """A file format, with valid content and a command that reads it.

    good: valid contents. wrap: returns a file with correct lengths and checksums. command: arguments; {} is the file, {other} its
    valid second file.
    """

    name: str
    good: tuple[bytes, ...]
    command: tuple[str, ...]
    other: bytes = b""
    wrap: Callable[[bytes], bytes] = bytes


CORRECT = ("correct", "{}", "-o", "{out}", "--k", "12")
SIMULATE = ("simulate", "-o", "{out}", "--reference", "{}", "--length", "5-9", "--coverage", "2")
SFS = ("sfs", "{}", "-o", "{out}")
SITES = bcf()[len(with_bcf_header(VCF_HEADER, b"")) :]
FORMATS = (
    Format("fastq", (FASTQ, gzip.compress(FASTQ, mtime=0)), (*CORRECT, "--log", "{second}")),
    Format("fasta", (FASTA, lzma.compress(FASTA)), (*CORRECT, "--min-multiplicity", "1")),
    Format("fasta in gzip", (FASTA,), CORRECT, wrap=PACKINGS["gz"]),
    Format("truth", (FASTQ,), ("correct", "{other}", "-o", "{out}", "--k", "12", "--truth", "{}"), FASTQ),
    Format("reference", (REFERENCE, bz2.compress(REFERENCE)), SIMULATE),
    Format("pairhmm", (PAIRHMM, gzip.compress(PAIRHMM, mtime=0)), ("pairhmm", "{}", "-o", "{out}", "--variant", "wavefront-loaded")),
    Format("pairhmm in xz", (PAIRHMM,), ("pairhmm", "{}", "-o", "{out}", "--format", "tsv"), wrap=PACKINGS["xz"]),
    Format("table", (TABLE,), ("align", "{}", "-o", "{out}")),
    Format("alternates", (ALTERNATES,), ("align", "{other}", "{}", "-o", "{out}", "--format", "sam"), REFERENCES),
    Format("references", (REFERENCES,), ("align", "{}", "{other}", "-o", "{out}"), ALTERNATES),
    Format("beagle", (BEAGLE, gzip.compress(BEAGLE, mtime=0)), (*SFS, "--spectrum", "{second}")),
    Format("beagle in bgzf", (BEAGLE,), (*SFS, "--mode", "gama"), wrap=bgzf),
    Format("vcf", (VCF, bgzf(VCF)), (*SFS, "--mode", "gama")),
    Format("sites of vcf", (VCF_SITES,), SFS, wrap=lambda sites: VCF_HEADER + sites),
    Format("bcf", (bcf(), bgzf(bcf())), (*SFS, "--mode", "product")),
    Format("header of bcf", (VCF_HEADER,), SFS, wrap=lambda header: bgzf(with_bcf_header(header, SITES))),
    Format("sites of bcf", (SITES,), (*SFS, "--mode", "gama"), wrap=lambda sites: with_bcf_header(VCF_HEADER, sites)),
    Format("npz", (npz(), npz(pack=True)), (*SFS, "--format", "npz")),
    Format("P of npz", (MEMBERS["P"],), SFS, wrap=lambda array: npz(P=array)),
    Format("chrom of npz", (MEMBERS["chrom"], npy([b"1", b"X"] * 2), npy(range(4))), SFS, wrap=lambda array: npz(chrom=array)),
    Format("pos of npz", (MEMBERS["pos"],), SFS, wrap=lambda array: npz(pack=True, pos=array)),
    Format("accesses", (ACCESSES,), ("access", "{}", "--json")),
)  # fmt: skip
