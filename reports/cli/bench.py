"""`simtbed bench`: how fast the emulator is, and how fast the kernels are."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from .options import Engine, Input, Json
from .parameters import Argument, Option, command


class Bench(StrEnum):
    """What can be measured."""

    emulator = "emulator"
    pairhmm = "pairhmm"
    align = "align"
    correct = "correct"
    sfs = "sfs"


class Section(StrEnum):
    """What the pair-HMM's benchmark has."""

    lengths = "lengths"
    files = "files"
    ren = "ren"
    tables = "tables"


@command
def bench(
    what: Annotated[Bench, Argument("WHAT", help="The jit engine, or a family's kernels.")] = Bench.emulator,
    peers: Annotated[bool, Option(("--peers",), help="Beside other emulators too.")] = False,
    repeat: Annotated[int, Option(metavar="N", min=1, max=1000, help="Rounds; medians are printed.")] = 7,
    engine: Annotated[Engine, Option(help="Of a family's kernels: measured with cuda, else counted.")] = Engine.jit,
    pairs: Annotated[
        int | None, Option(metavar="N", min=1, max=1 << 31, help="Of a family's synthetic sets, instead of all.")
    ] = None,
    source: Input = None,
    only: Annotated[
        list[Section] | None, Option(("--only",), help="Of the pair-HMM's sections; may be given again.")
    ] = None,
    json: Json = False,
) -> int:
    """How fast the emulator is, and how fast the kernels are.

    The jit engine on this machine, beside scalar code; or a family's kernels on a GPU, or what they cost on the
    emulator. Takes minutes.

    \b
    simtbed bench --peers
    simtbed bench pairhmm --engine cuda
    """
    if what is Bench.sfs:
        from ..bench import sfs

        return sfs.bench(engine.value, repeat, json)
    if what is Bench.pairhmm:
        from ..bench import pairhmm

        return pairhmm.bench(engine.value, repeat, pairs, source, json, [section.value for section in only or ()])
    if what is Bench.align:
        from ..bench import align

        return align.bench(engine.value, repeat, json)
    if what is Bench.correct:
        from ..bench import correct

        return correct.bench(engine.value, repeat, json)
    from ..bench import emulation as benchmark

    return benchmark.bench(repeat, peers, json)
