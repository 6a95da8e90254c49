"""What a cubin holds: its SASS, instruction by instruction, each with its place in the user's source."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import LaunchError
from . import cuda_build

MISSING = 'the disassembler nvdisasm is not found: put it on PATH, set CUDA_HOME, or pip install "simtbed[sass]"'


@dataclass(frozen=True)
class Instruction:
    """One SASS instruction. `text` is all of it, without the semicolon: "@!P0 BRA `(.L_x_1)".

    offset: bytes from the start of its section. targets: offsets it may go to besides the next; of a call, where the
    callee begins, if it lies in this section. places: (file, line) of the source, innermost of the inlined calls first.
    """

    offset: int
    text: str
    targets: tuple[int, ...] = ()
    places: tuple[tuple[str, int], ...] = ()

    @property
    def predicate(self) -> str:
        """"@P0", "@!UP1", or nothing for an instruction that all threads obey."""
        first = self.text.partition(" ")[0]
        return first if first.startswith("@") else ""

    @property
    def operation(self) -> str:
        """The opcode with its modifiers: LDG.E.128.CONSTANT."""
        return self.text.removeprefix(self.predicate).split(maxsplit=1)[0]

    @property
    def opcode(self) -> str:
        """The opcode alone: LDG."""
        return self.operation.partition(".")[0]


def find_nvdisasm() -> Path:
    """The disassembler, where the compiler is looked for. Raises LaunchError."""
    found = cuda_build.find_tool("nvdisasm")
    if found is None:
        raise LaunchError(MISSING)
    return found


def disassemble(cubin: bytes, kernel: str) -> tuple[Instruction, ...]:
    """The instructions of a kernel and of what it calls in its section, in address order.

    Raises LaunchError where there is no nvdisasm or it does not know the cubin.
    """
    return _disassembled(find_nvdisasm(), cubin, kernel)


@cache
def _disassembled(nvdisasm: Path, cubin: bytes, kernel: str) -> tuple[Instruction, ...]:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = cuda_build.run([str(nvdisasm), "-c", "-gi", file.name], None)
    if done.returncode:
        raise LaunchError(f"nvdisasm does not read the cubin of {kernel}\n{cuda_build.said(done)}")
    return parse(done.stdout, kernel)


_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]+)\*/\s+(.*?)\s*;")
_LABEL = re.compile(r"([.$\w]+):\s*$")
_PLACE = re.compile(r'\s*//## File "(.*)", line (\d+)')
_TARGET = re.compile(r"`\(([^)]+)\)")


def parse(listing: str, kernel: str) -> tuple[Instruction, ...]:
    """`nvdisasm -c -gi` as instructions: those of the section of `kernel`."""
    _, _, section = listing.partition(f".section\t.text.{kernel},")
    section = section.partition("\n\t.section\t")[0]
    labels: dict[str, int] = {}
    waiting: list[str] = []
    found: list[tuple[int, str, tuple[tuple[str, int], ...]]] = []
    places: tuple[tuple[str, int], ...] = ()
    inside = False  # of a run of places: what an inlined instruction has one below the other
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
            found.append((offset, " ".join(instruction[2].split()), places))

    def targets(text: str) -> tuple[int, ...]:
        if not re.search(r"(^|\s)(BRA|BRX|JMP|CALL)\b", text):
            return ()
        tables = re.findall(r'BRANCH_TARGETS ([^"]*)"', text)
        names = _TARGET.findall(text) + [name.strip() for table in tables for name in table.split(",")]
        return tuple(labels[name] for name in names if name in labels)

    return tuple(Instruction(offset, text, targets(text), places) for offset, text, places in found)
