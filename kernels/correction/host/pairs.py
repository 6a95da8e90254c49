"""Paired reads in two files: reading in step, validation, and separate output of the mates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import simtbed as st
from simtbed import Global, SimtbedError, i64, u8
from simtbed.native import native

from ...family import InputError
from ...files import excerpt
from ...pipeline import Flow
from .files import ReadBlock, ReadFile
from .problem import Corrected, Reads

DISCARDED = ord("D")


@dataclass(frozen=True)
class PairedFile(ReadFile):
    """Blocks of first mates followed by their second mates. mates: the file of the second mates."""

    mates: ReadFile | None = None

    def blocks(self) -> Flow[ReadBlock]:
        """Return a flow of the blocks. Raise InputError if the files are not in step."""
        assert self.mates is not None
        mates = self.mates
        return super().blocks().through(lambda blocks: _pair_blocks(blocks, self.name, mates))


def pair_files(first: ReadFile, second: ReadFile) -> PairedFile:
    """Return both files as one. Raise SimtbedError if their formats differ."""
    if first.form != second.form:
        raise SimtbedError(
            f"{first.name} is {first.form.upper()} and {second.name} {second.form.upper()}: mates have the same format"
        )
    return PairedFile(first.name, first.form, first.start, first.size, second)


def _pair_blocks(blocks: Iterator[ReadBlock], name: str, second: ReadFile) -> Iterator[ReadBlock]:
    read = 0
    with closing(iter(second.blocks())) as second_blocks:
        waiting: list[ReadBlock] = []
        for block in blocks:
            while sum(map(len, waiting)) < len(block) and (more := next(second_blocks, None)) is not None:
                waiting.append(more)
            available = concatenate_blocks(waiting) if waiting else slice_block(block, 0, 0)
            if len(available) < len(block):
                raise InputError(f"{second.name}: it ends before read {read + len(available) + 1} of {name}")
            mates, waiting = slice_block(available, 0, len(block)), _rest(available, len(block))
            mismatch = int(first_mismatch(block.data, block.names, mates.data, mates.names, len(block)))
            if mismatch >= 0:
                raise InputError(
                    f"{second.name}: read {read + mismatch + 1} is {excerpt(mates.name(mismatch).encode())}, "
                    f"expected the mate of {excerpt(block.name(mismatch).encode())} in {name}"
                )
            read += len(block)
            yield replace(concatenate_blocks([block, mates]), fraction=block.fraction)
        if any(map(len, waiting)) or next(second_blocks, None) is not None:
            raise InputError(f"{second.name}: it continues after read {read}, the last of {name}")


def slice_block(block: ReadBlock, first: int, last: int) -> ReadBlock:
    """Return the reads [first, last)."""
    return replace(
        block,
        names=block.names[2 * first : 2 * last],
        sequences=block.sequences[first:last],
        qualities=block.qualities[first:last],
        reads=block.reads.subset(first, last),
    )


def _rest(block: ReadBlock, first: int) -> list[ReadBlock]:
    """Return the reads from `first` on, without the bytes before them; an empty list if there are none."""
    if first == len(block):
        return []
    own = slice_block(block, first, len(block))
    begin = int(own.names[0])
    return [
        replace(
            own,
            data=own.data[begin:],
            names=own.names - begin,
            sequences=own.sequences - begin,
            qualities=own.qualities - begin,
        )
    ]


def concatenate_blocks(blocks: list[ReadBlock]) -> ReadBlock:
    """Return blocks of one format as one block."""
    if len(blocks) == 1:
        return blocks[0]
    begins = np.cumsum([0, *(len(block.data) for block in blocks)]).tolist()
    names, sequences, qualities = (
        np.concatenate([getattr(block, column) + begin for block, begin in zip(blocks, begins, strict=False)])
        for column in ("names", "sequences", "qualities")
    )
    data = np.concatenate([block.data for block in blocks])
    return ReadBlock(
        blocks[0].fastq, data, names, sequences, qualities, Reads.concatenate([block.reads for block in blocks])
    )


@st.device
def _name_end(data: Global[u8], first: i64, end: i64) -> i64:
    """Return the end of a name: a blank, or the start of its suffix /1 or /2."""
    at = first
    while at < end and data[at] != 32 and data[at] != 9:
        at += 1
    if at - first > 2 and data[at - 2] == 47 and (data[at - 1] == 49 or data[at - 1] == 50):
        at -= 2
    return at


@st.device
def _mate_number(data: Global[u8], at: i64, end: i64) -> u8:
    """Return the digit of /1 or /2, or of a comment such as `1:N:0`, behind a name; 0 without one."""
    suffix = at + 1 < end and data[at] == 47
    comment = at + 2 < end and data[at] == 32 and (data[at + 1] == 49 or data[at + 1] == 50) and data[at + 2] == 58
    return data[at + 1] if suffix or comment else u8(0)


@native
def first_mismatch(
    data: Global[u8], names: Global[i64], mate_data: Global[u8], mate_names: Global[i64], count: i64
) -> i64:
    """Return the first read whose mate has another name, or the same number of a mate, or -1. Other comments are ignored."""
    for read in range(count):
        first, mate_first = names[2 * read], mate_names[2 * read]
        length = _name_end(data, first, names[2 * read + 1]) - first
        if _name_end(mate_data, mate_first, mate_names[2 * read + 1]) - mate_first != length:
            return i64(read)
        number = _mate_number(data, first + length, names[2 * read + 1])
        if number != 0 and number == _mate_number(mate_data, mate_first + length, mate_names[2 * read + 1]):
            return i64(read)
        for i in range(length):
            if data[first + i] != mate_data[mate_first + i]:
                return i64(read)
    return i64(-1)


def discard_pairs(corrected: Corrected) -> tuple[Corrected, int]:
    """Discard the mates of discarded reads; return their number too."""
    mates = corrected.flags.reshape(2, -1)
    discarded = np.asarray((mates == DISCARDED).any(axis=0))
    flags = np.where(discarded, np.uint8(DISCARDED), mates).ravel()
    return replace(corrected, flags=flags), int(discarded.sum() * 2 - (mates == DISCARDED).sum())


def split_mates(
    block: ReadBlock, corrected: Corrected
) -> tuple[tuple[ReadBlock, Corrected], tuple[ReadBlock, Corrected]]:
    """Return the first and the second mates, as views."""
    middle = len(block) // 2
    return _half(block, corrected, 0, middle), _half(block, corrected, middle, len(block))


def _half(block: ReadBlock, corrected: Corrected, first: int, last: int) -> tuple[ReadBlock, Corrected]:
    own = slice_block(block, first, last)
    offsets = block.reads.offsets
    text = corrected.text[offsets[first] : offsets[last]]
    return own, Corrected(own.reads, text, corrected.flags[first:last], corrected.spans[first:last])


def interleave(first: bytes, second: bytes, lines: int) -> bytes:
    """Return the records of both texts alternately. lines: lines per record. Both have the same number of records."""
    first_records, second_records = first.splitlines(keepends=True), second.splitlines(keepends=True)
    return b"".join(
        b"".join(text)
        for at in range(0, len(first_records), lines)
        for text in (first_records[at : at + lines], second_records[at : at + lines])
    )
