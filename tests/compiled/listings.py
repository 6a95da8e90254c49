"""Synthetic SASS listings for small kernels, each instruction with its source line."""

from __future__ import annotations

from typing import Any

import simtbed as st
from simtbed.compiled.control_flow import Graph, graph
from simtbed.compiled.flow_records import LocatedInstruction
from simtbed.compiled.kernel_launches import KernelLaunches
from simtbed.compiled.matching import LoopMatcher
from simtbed.compiled.path_estimator import PathEstimator
from simtbed.engines.cuda.sass import Instruction
from simtbed.reports.hardware.recording import RecordingLauncher


def launched(kernel: Any, **args: Any) -> KernelLaunches:
    """Launch a kernel with one warp, with counts and decisions."""
    launcher = RecordingLauncher("jit", st.devices.find("H200"))
    launcher.launch(kernel, grid=1, block=32, args=args)
    (launches,) = launcher.kernels
    return launches


def placed(launches: KernelLaunches, *rows: tuple[str, str]) -> list[LocatedInstruction]:
    """Return a listing: instructions at 0x0, 0x10, ..., each with a substring of its printed line, or none."""
    texts = launches.source.text.splitlines()
    lines = [next(n for n, text in enumerate(["", *texts]) if part in text and (n or not part)) for _, part in rows]
    return [
        LocatedInstruction(Instruction(16 * n, text), line)
        for n, ((text, _), line) in enumerate(zip(rows, lines, strict=True))
    ]


def matched(launches: KernelLaunches, *rows: tuple[str, str]) -> LoopMatcher:
    """Return the loop matcher of a listing."""
    listing = placed(launches, *rows)
    whole: Graph = graph(tuple(each.instruction for each in listing))
    return LoopMatcher(whole, [each.place for each in listing], launches.statements.without_inlining())


def walked(launches: KernelLaunches, *rows: tuple[str, str]) -> dict[int, tuple[int, int]]:
    """Return warp and thread executions by block from path sampling."""
    estimator = PathEstimator(matched(launches, *rows), launches)
    result = estimator.estimate()
    assert result is not None
    blocks = range(len(estimator.matcher.graph.blocks))
    return {b: (round(result.warps[b]), round(result.threads[b])) for b in blocks if result.threads[b]}
