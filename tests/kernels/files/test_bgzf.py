"""BGZF, checked by zlib and by the fields of the blocks; damage is reported; threads do not change the bytes."""

import gzip
import io
import threading
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from simtbed.kernels.family import InputError
from simtbed.kernels.files import Input
from simtbed.kernels.files.bgzf import BLOCK_CONTENT, END_OF_BGZF, MAX_BLOCK, BgzfWriter, packed_blocks
from simtbed.kernels.files.bgzf_scan import whole_blocks
from simtbed.runtime.cores import on_cores

RANDOM = np.random.default_rng(1)
LETTERS = RANDOM.choice(np.frombuffer(b"ACGT\n", np.uint8), 3 * BLOCK_CONTENT * 17).tobytes()
NOISE = RANDOM.integers(0, 256, 2 * BLOCK_CONTENT, np.uint8).tobytes()


def packed(data: bytes, piece: int = 100_000) -> bytes:
    out = io.BytesIO()
    with BgzfWriter(cast(BinaryIO, out)) as writer:
        for at in range(0, len(data), piece):
            assert writer.write(data[at : at + piece]) == len(data[at : at + piece])
    return out.getvalue()


def read(data: bytes) -> bytes:
    with Input(io.BytesIO(data), Path("given")) as source:
        return source.read()


@pytest.mark.parametrize("data", [b"", b"A", LETTERS, NOISE, LETTERS[:BLOCK_CONTENT], LETTERS[: 16 * BLOCK_CONTENT]])
def test_output_is_gzip_in_blocks(data: bytes) -> None:
    result = packed(data)
    assert gzip.decompress(result) == read(result) == data
    assert len(whole_blocks(result).data) == len(result) and result.endswith(END_OF_BGZF)
    at = 0
    while at < len(result):
        size = int.from_bytes(result[at + 16 : at + 18], "little") + 1
        assert int.from_bytes(result[at + size - 4 : at + size], "little") <= MAX_BLOCK
        at += size
    assert at == len(result)


def test_threads_and_pieces_change_nothing() -> None:
    before = threading.active_count()
    whole = packed(LETTERS)
    for threads in (1, 3):
        with on_cores(threads):
            assert packed(LETTERS, 777_777) == whole
            assert read(whole) == LETTERS
    assert threading.active_count() == before


@pytest.mark.slow
def test_addresses_do_not_change_the_bytes() -> None:
    """Blocks compressed again, as copies between other bytes, with a growing heap and uninitialised free memory.

    ISA-L hashes a block's third byte from the address of its own state. That changes one position of 32,768, so the test has many
    blocks, which repeat each of their first four bytes; about one of 10,000 differed.
    """
    starts = [RANDOM.bytes(6) for _ in range(1000)]
    blocks = [b"\n".join((a, RANDOM.bytes(9), a[:4], a[1:5], a[2:], RANDOM.bytes(20))) for a in starts]
    blocks += [LETTERS[: 16 * BLOCK_CONTENT], NOISE]
    first = [packed_blocks(block) for block in blocks]
    allocated = []
    for _ in range(40):
        allocated.append(bytearray(int(RANDOM.integers(1 << 16, 400_000))))
        dirt = [b"\1" * size for size in (1 << 17, 100_000, 400_000)]
        before, behind = RANDOM.bytes(int(RANDOM.integers(64))), RANDOM.bytes(300)
        del dirt
        for block, result in zip(blocks[:1000] if len(allocated) % 20 else blocks, first, strict=False):
            view = memoryview(before + block + behind)[len(before) :]
            assert packed_blocks(view[: len(block)]) == result


@pytest.mark.parametrize(
    "length",
    [*range(1, 40), 257, 258, 259, 260, BLOCK_CONTENT - 1, BLOCK_CONTENT, BLOCK_CONTENT + 1, BLOCK_CONTENT + 2],
)
def test_short_and_full_blocks_of_all_kinds(length: int) -> None:
    for data in (NOISE[:length], LETTERS[:length], b"A" * length, bytes(length), b"AC" * (length // 2)):
        result = packed_blocks(data)
        assert gzip.decompress(result) == read(result + END_OF_BGZF) == data
        assert len(whole_blocks(result).data) == len(result)


def test_only_mutable_data_are_copied() -> None:
    """The bytes are equal for a reused buffer and for an immutable one."""
    out = io.BytesIO()
    with BgzfWriter(cast(BinaryIO, out)) as writer:
        buffer = bytearray(LETTERS)
        writer.write(buffer)
        buffer[:] = bytes(len(buffer))
        writer.write(LETTERS)
    assert out.getvalue() == packed(LETTERS + LETTERS)


@pytest.mark.slow
@given(at=some.integers(0, 199_999))
def test_a_block_with_a_wrong_length_is_damaged(at: int) -> None:
    data = bytearray(packed(LETTERS[:200_000]))
    block = 0
    for _ in range(at % 4):
        block += int.from_bytes(data[block + 16 : block + 18], "little") + 1
    end = block + int.from_bytes(data[block + 16 : block + 18], "little") + 1
    stated = int.from_bytes(data[end - 4 : end], "little")
    for other in {stated + 1, max(stated - 1, 0), at, MAX_BLOCK + 1} - {stated}:
        data[end - 4 : end] = other.to_bytes(4, "little")
        with pytest.raises(InputError, match="given: damaged or truncated"):
            read(bytes(data))


@given(cuts=some.lists(some.integers(0, 4000), max_size=4), blocked=some.lists(some.booleans(), min_size=5, max_size=5))
def test_members_of_both_kinds(cuts: list[int], blocked: list[bool]) -> None:
    """Concatenated files of BGZF and of gzip, as from `cat`."""
    ends = [0, *sorted(cuts), 4000]
    sections = [LETTERS[a:b] for a, b in pairwise(ends)]
    data = b"".join((packed if how else gzip.compress)(part) for part, how in zip(sections, blocked, strict=False))
    if blocked[0]:
        data += END_OF_BGZF
    assert read(data) == LETTERS[:4000]


@given(at=some.integers(18, len(packed(LETTERS[:200_000])) - 29), bit=some.integers(0, 7))
def test_a_damaged_bit_is_reported(at: int, bit: int) -> None:
    data = bytearray(packed(LETTERS[:200_000]))
    data[at] ^= 1 << bit
    try:
        result = read(bytes(data))
    except InputError as error:
        message = str(error)
    else:  # of an unused header field, such as the time
        message, _ = "given: ", result.index(LETTERS[:200_000])
    assert message.startswith("given: ")


def test_a_truncated_file_is_reported() -> None:
    data = packed(LETTERS[:200_000])
    for length in (len(data) - 28, len(data) - 3, len(data) // 2, 30, 17):
        with pytest.raises(InputError, match=r"given: (damaged or )?truncated"):
            read(data[:length])
