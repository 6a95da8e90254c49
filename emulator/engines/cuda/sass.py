"""The SASS of a cubin: its instructions, each with its place in the user's source."""

from __future__ import annotations

import hashlib
import re
import tempfile
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

from ... import disk_cache
from ...errors import LaunchError, UnavailableError
from . import nvcc

MISSING = 'the disassembler nvdisasm is not found: put it on PATH, set CUDA_HOME, or pip install "simtbed[sass]"'


@dataclass(frozen=True)
class Control:
    """Scheduling control of an instruction, from compute capability 7.0 on.

    stall: cycles before the warp may issue its next instruction, 0-15. yields: whether another warp has priority.
    writes, reads: number of the scoreboard (0-5) that is set until the result is written, and until the operands are
    read; or None. waits: scoreboards that must be free before it issues. reuse: operands cached by the register file.
    """

    stall: int
    yields: bool
    writes: int | None
    reads: int | None
    waits: tuple[int, ...]
    reuse: tuple[int, ...]

    @staticmethod
    def decode(code: int) -> Control:
        """Decode the 128 bits of an instruction; bits 105-125 are control (Jia et al. 2018, section 2.1)."""
        bits = code >> 105

        def scoreboard(at: int) -> int | None:
            number = bits >> at & 7
            return None if number == 7 else number

        return Control(
            stall=bits & 15,
            yields=not bits >> 4 & 1,
            writes=scoreboard(5),
            reads=scoreboard(8),
            waits=tuple(n for n in range(6) if bits >> 11 + n & 1),
            reuse=tuple(n for n in range(4) if bits >> 17 + n & 1),
        )


@dataclass(frozen=True)
class Instruction:
    """One SASS instruction. `text` is all of it, labels as offsets, without the semicolon: "@!P0 BRA 0x1b0".

    offset: bytes from the start of its section. places: (file, line) of the source, innermost of the inlined calls
    first; empty without line information. control, encoding: scheduling control and all 128 bits; None if the listing
    has no code.
    """

    offset: int
    text: str
    places: tuple[tuple[str, int], ...] = ()
    control: Control | None = None
    encoding: int | None = None

    @cached_property
    def predicate(self) -> str:
        """The predicate, such as "@P0", "@!UP1", or nothing for an instruction that all threads obey."""
        first = self.text.partition(" ")[0]
        return first if first.startswith("@") else ""

    @cached_property
    def operation(self) -> str:
        """The opcode with its modifiers: LDG.E.128.CONSTANT."""
        return self.text.removeprefix(self.predicate).split(maxsplit=1)[0]

    @cached_property
    def opcode(self) -> str:
        """The opcode alone: LDG."""
        return self.operation.partition(".")[0]


def find_nvdisasm() -> Path:
    """Return the disassembler's path, found as the compiler is. Raises LaunchError."""
    result = nvcc.find_tool("nvdisasm")
    if result is None:
        raise UnavailableError(MISSING)
    return result


def disassemble(cubin: bytes, kernel: str) -> tuple[Instruction, ...]:
    """Return the instructions of a kernel and of callees in its section, in address order.

    Raises LaunchError without nvdisasm, or if it rejects the cubin.
    """
    return _disassembled(find_nvdisasm(), cubin, kernel)


@cache
def _disassembled(nvdisasm: Path, cubin: bytes, kernel: str) -> tuple[Instruction, ...]:
    key = hashlib.sha256("\0".join(("listing", nvcc.identity(nvdisasm))).encode() + cubin).hexdigest()

    def read(data: bytes) -> tuple[Instruction, ...]:
        if not (instructions := parse(data.decode(), kernel)):
            raise ValueError(f"no instruction of {kernel}")
        return instructions

    result = disk_cache.load(f"{key}.listing", read)
    if result is None:
        listing = _listing(nvdisasm, cubin, kernel)
        disk_cache.save(f"{key}.listing", listing.encode())
        result = parse(listing, kernel)
    return result


def _listing(nvdisasm: Path, cubin: bytes, kernel: str) -> str:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        process = nvcc.run([str(nvdisasm), "-c", "-gi", "-hex", file.name], None)
    if process.returncode:
        raise LaunchError(f"nvdisasm does not read the cubin of {kernel}\n{nvcc.output_of(process)}")
    return process.stdout


_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]+)\*/\s+(.*?)\s*;(?:\s*/\* 0x([0-9a-f]{16}) \*/)?")
_REST = re.compile(r"\s*/\* 0x([0-9a-f]{16}) \*/\s*$")
_LABEL = re.compile(r"([.$\w]+):\s*$")
_PLACE = re.compile(r'\s*//## File "([^"]*)", line (\d+)')


def parse(listing: str, kernel: str) -> tuple[Instruction, ...]:
    """`nvdisasm -c -gi`, with or without `-hex`, as instructions: those of the section of `kernel`."""
    _, _, section = listing.partition(f".section\t.text.{kernel},")
    section = section.partition("\n\t.section\t")[0]
    labels: dict[str, int] = {}
    waiting: list[str] = []
    result: list[Instruction] = []
    places: tuple[tuple[str, int], ...] = ()
    low: str | None = None  # the first half of an instruction's code
    inside = False  # a run of places: the places of an inlined instruction are on consecutive lines
    for row in section.splitlines():
        if place := _PLACE.match(row):
            places = (*(places if inside else ()), (place[1], int(place[2])))
        inside = place is not None
        if label := _LABEL.match(row):
            waiting.append(label[1])
        elif instruction := _INSTRUCTION.match(row):
            offset = int(instruction[1], 16)
            labels |= dict.fromkeys(waiting, offset)
            waiting.clear()
            result.append(Instruction(offset, " ".join(instruction[2].split()), places))
            low = instruction[3]
        elif (high := _REST.match(row)) and low:
            code = int(high[1] + low, 16)
            result[-1] = replace(result[-1], control=Control.decode(code), encoding=code)

    def resolved(text: str) -> str:
        """Replace labels of this section by offsets."""
        text = re.sub(r"`\(([^)]+)\)", lambda m: f"{labels[m[1]]:#x}" if m[1] in labels else m[0], text)
        return re.sub(r"(?<=[ ,])\.L_x_\d+", lambda m: f"{labels[m[0]]:#x}" if m[0] in labels else m[0], text)

    return tuple(replace(instruction, text=resolved(instruction.text)) for instruction in result)
