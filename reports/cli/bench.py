"""`simtbed bench`: how fast the emulator is, and how fast the kernels are."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, get_args

from simtbed import SimtbedError

from .options import Engine, Input, Json
from .parameters import Argument, Option, command


class Bench(StrEnum):
    """What can be measured."""

    emulator = "emulator"
    pairhmm = "pairhmm"
    align = "align"
    correct = "correct"
    sfs = "sfs"
    files = "files"


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
        list[str] | None,
        Option(("--only",), metavar="NAME", help="Of the pair-HMM's sections or the commands; may be given again."),
    ] = None,
    output: Annotated[
        Path | None,
        Option(("--output", "-o"), metavar="JSON", help="Of files: written anew after each command."),
    ] = None,
    json: Json = False,
) -> int:
    """How fast the emulator, the kernels and whole commands are.

    The jit engine on this machine, beside scalar code; a family's kernels on a GPU, or what they cost on the
    emulator; or, with files, commands from file to file, beside other programs that are installed. Takes minutes.

    \b
    simtbed bench --peers
    simtbed bench pairhmm --engine cuda
    simtbed bench files --only correct
    """
    if output is not None and what is not Bench.files:
        raise SimtbedError("--output of bench is for files: simtbed bench files")
    if what is Bench.files:
        from ..bench import files

        return files.bench(engine.value, repeat, only or [], json, output)
    if what is Bench.sfs:
        from ..bench import sfs

        return sfs.bench(engine.value, repeat, json)
    if what is Bench.pairhmm:
        from ..bench import pairhmm

        known = get_args(pairhmm.Section)
        if unknown := set(only or []).difference(known):
            raise SimtbedError(f"bench pairhmm has no section {unknown.pop()!r}; it has {', '.join(known)}")
        sections = [section for section in known if section in (only or [])]
        return pairhmm.bench(engine.value, repeat, pairs, source, json, sections)
    if what is Bench.align:
        from ..bench import align

        return align.bench(engine.value, repeat, json)
    if what is Bench.correct:
        from ..bench import correct

        return correct.bench(engine.value, repeat, json)
    from ..bench import emulation as benchmark

    return benchmark.bench(repeat, peers, json)
