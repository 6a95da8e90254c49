"""`simtbed bench`: benchmarks of the emulator, of kernels and of whole commands."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, get_args

from simtbed import SimtbedError
from simtbed.runtime.registry import EngineName

from .options import Engine, Input, Json
from .parameters import Argument, Option, command


class Bench(StrEnum):
    """Subjects of benchmarks."""

    emulator = "emulator"
    pairhmm = "pairhmm"
    align = "align"
    correct = "correct"
    sfs = "sfs"
    files = "files"


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """The options of `simtbed bench`."""

    peers: Annotated[bool, Option(help="Measure other emulators too.")] = False
    repeat: Annotated[int, Option(metavar="N", min=1, max=1000, help="Number of rounds; medians are printed.")] = 7
    engine: Annotated[
        Engine, Option(help="Engine of a family's kernels: cuda measures times, the emulators count.")
    ] = Engine.jit
    pairs: Annotated[
        int | None, Option(metavar="N", min=1, max=1 << 31, help="Limit synthetic sets to N pairs; default: all sets.")
    ] = None
    input: Input = None
    only: Annotated[
        list[str] | None, Option(metavar="NAME", help="Select a section of pairhmm, or a command of files; repeatable.")
    ] = None
    output: Annotated[
        Path | None,
        Option(("--output", "-o"), metavar="JSON", help="Write the results of files to JSON after each command."),
    ] = None
    json: Json = False


@command
def bench(
    subject: Annotated[
        Bench, Argument("WHAT", help="The jit engine (emulator), the kernels of a family, or whole commands (files).")
    ] = Bench.emulator,
    *,
    options: BenchOptions,
) -> int:
    """Measure the speed of the emulator, the kernels or whole commands.

    emulator: the jit engine on this machine, compared with scalar code. A family: its kernels on a GPU, or their
    counters on the emulator. files: commands from file to file, compared with other installed programs. Takes minutes.

    \b
    simtbed bench --peers
    simtbed bench pairhmm --engine cuda
    simtbed bench files --only correct
    """
    engine: EngineName = options.engine.value
    repeat, only, json = options.repeat, options.only or [], options.json
    if options.output is not None and subject is not Bench.files:
        raise SimtbedError("--output of bench needs files: simtbed bench files")
    if subject is Bench.files:
        from ..bench import files

        return files.bench(engine, repeat, only, json, options.output)
    if subject is Bench.sfs:
        from ..bench import sfs

        return sfs.bench(engine, repeat, json)
    if subject is Bench.pairhmm:
        from ..bench import pairhmm

        sections_of_pairhmm = get_args(pairhmm.Section)
        if unknown := set(only).difference(sections_of_pairhmm):
            raise SimtbedError(
                f"bench pairhmm has no section {unknown.pop()!r}; it has {', '.join(sections_of_pairhmm)}"
            )
        sections = [section for section in sections_of_pairhmm if section in only]
        return pairhmm.bench(engine, repeat, options.pairs, options.input, json, sections)
    if subject is Bench.align:
        from ..bench import align

        return align.bench(engine, repeat, json)
    if subject is Bench.correct:
        from ..bench import correct

        return correct.bench(engine, repeat, json)
    from ..bench import emulation

    return emulation.bench(repeat, options.peers, json)
