"""Racy kernels, each with the number of its findings and the statements of their remedies.

A kernel is a paragraph of `racy_kernels.txt`: a line with its name, the threads of its block and the number of its findings; a line
with "->" for each remedy; its body. A remedy is written "statement place: line", with the text of the line that it precedes or of the
header of its loop. A kernel without one has a race that no barrier orders. Bodies have the thread t and, of a block of vectors, the
shared array p.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import simtbed as st
from simtbed import Global, Kernel, Result, Shared, f32, i32  # noqa: F401 - of the texts
from simtbed.errors import Insertion
from simtbed.runtime.registry import EngineName

from tests.checkers.insertion import with_insertions
from tests.texts import texts


@dataclass(frozen=True)
class Racy:
    """A kernel, its findings, its remedies, and how it is launched."""

    name: str
    text: str
    kernel: Kernel
    findings: int
    remedies: Sequence[str]
    block: int
    args: Mapping[str, Any]

    def launch(self, engine: EngineName = "numpy") -> Result:
        return st.launch(
            self.kernel, grid=1, block=self.block, args=self.args, check="all", faults="return", engine=engine
        )

    def corrected(self, insertions: Iterable[Insertion]) -> Racy:
        """Return the kernel with statements inserted."""
        return replace(self, kernel=st.kernel(source=with_insertions(self.text, list(insertions))))


VECTORS = {"x": np.arange(1, 129, dtype=np.float32), "out": st.empty(128, "f32")}
MATRICES = {name: np.ones(1024, np.float32) for name in ("x", "y", "out")}


TEXTS = texts("checkers/racy_kernels.txt")
VECTOR_MEMORY = "p = st.shared(f32, 128)"
TILES = "ta = st.shared(f32, 16, 16)\ntb = st.shared(f32, 16, 16)\nc = t % 16\nr = t // 16"
"""Statements before the bodies."""


def _kernels() -> Iterator[Racy]:
    for paragraph in TEXTS["kernels"].strip().split("\n\n"):
        header, *lines = paragraph.splitlines()
        name, block, findings = re.findall(r"\w+(?=: | threads| findings)", header)
        args, memory = (MATRICES, TILES) if block == "256" else (VECTORS, VECTOR_MEMORY)
        body = "\n".join(["t = st.thread.x", "s = f32(0)", memory, *(one for one in lines if one[:2] != "->")])
        parameters = ", ".join(f"{array}: Global[f32]" for array in args)
        text = f"{TEXTS['device functions']}def {name}({parameters}) -> None:\n{textwrap.indent(body, '    ')}\n"
        remedies = [one.removeprefix("-> ") for one in lines if one[:2] == "->"]
        yield Racy(name, text, st.kernel(source=text), int(findings), remedies, int(block), args)


RACY = {kernel.name: kernel for kernel in _kernels()}
