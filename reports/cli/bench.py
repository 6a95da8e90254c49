"""`simtbed bench`: how fast the emulator is, and how fast the kernels are."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from .options import Engine, Input, Json, new_app

app = new_app()


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


@app.command()
def bench(
    what: Annotated[Bench, typer.Argument(help="The jit engine, or a family's kernels.")] = Bench.emulator,
    peers: Annotated[bool, typer.Option("--peers", help="Beside other emulators too.")] = False,
    repeat: Annotated[int, typer.Option(metavar="N", help="Rounds; medians are printed.")] = 7,
    engine: Annotated[
        Engine, typer.Option(help="Of a family's kernels: measured with cuda, else counted.")
    ] = Engine.jit,
    pairs: Annotated[
        int | None, typer.Option(metavar="N", help="Of a family's synthetic sets, instead of all.")
    ] = None,
    source: Input = None,
    only: Annotated[
        list[Section] | None, typer.Option("--only", help="Of the pair-HMM's sections; may be given again.")
    ] = None,
    json: Json = False,
) -> int:
    """How fast the emulator is, and how fast the kernels are.

    The jit engine on this machine, beside scalar code; or a family's kernels on a GPU, or what they cost on the
    emulator. Takes minutes.
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
