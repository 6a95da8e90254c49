"""Cases other than the variants: features of the language, rows of the op table, examples, kernels of `simtbed bench`.

`simtbed hardware compare --cases tests.validation.cases:cases`.
"""

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from simtbed import Result, empty
from simtbed.kernels import FAMILIES, Launcher
from simtbed.reports.bench.kernels import block_sum, transpose
from simtbed.reports.hardware.cases import VARIANTS, Case, OperationCase, variants
from simtbed.reports.papers.mangal2014.counting import small_problem
from simtbed.testing.conformance import FEATURES, Feature
from simtbed.testing.conformance.edge_values import comparable
from simtbed.testing.conformance.operations import group_id, groups, request

EXAMPLES = sorted(path.stem for path in (Path(__file__).parents[2] / "examples" / "kernels").glob("*.py"))
SIDE = 256
CASES = (VARIANTS, "tests.validation.cases:cases", "tests.validation.cases:operations")
"""All cases of a record except the data sets."""


def cases() -> Iterator[Case]:
    """Yield one case per feature and example, the transpose with and without bank conflicts, and the reduction."""
    for feature in FEATURES:
        yield feature_case(feature)
    for example in EXAMPLES:
        yield example_case(example)
    x = np.arange(SIDE * SIDE, dtype=np.float32)
    tiles = (SIDE // 32, SIDE // 32)
    for pitch in (33, 32):
        args: dict[str, Any] = {"x": x, "out": empty(len(x), "f32"), "width": SIDE, "PITCH": pitch}
        yield Case(f"transpose, pitch {pitch}", partial(_launch, transpose, tiles, (32, 8), args))
    args = {"x": x, "out": empty(SIDE, "f32"), "BLOCK": 256}
    yield Case("block sum", partial(_launch, block_sum, SIDE, 256, args))
    for variant in ("thread-per-read", "one-lane-per-warp", "warp-per-read"):
        yield Case(f"correction {variant} bloom", partial(_solve_with_bloom_filter, variant))


def _solve_with_bloom_filter(variant: str, launcher: Launcher) -> None:
    """Correct reads like the paper's with its Bloom filter; the example of the family has an exact set."""
    FAMILIES["correction"].solve(small_problem(), variant, launcher)


def operations() -> Iterator[OperationCase]:
    """Yield the op table; rows with the same operands form one case."""
    for group in groups():
        yield OperationCase(group_id(group), *group, partial(request, group), comparable)


def few() -> Iterator[Case]:
    """Yield two of the shipped variants, for fast tests."""
    return (case for case in variants() if case.name in ("pairhmm intertask-naive", "pairhmm wavefront-loaded"))


def feature_case(feature: Feature) -> Case:
    """Return the case of a feature's kernel."""
    return Case(feature.name, partial(_feature, feature))


def example_case(example: str) -> Case:
    """Return the case of a file of `examples/kernels`: its own check. Its arrays do not depend on the order of threads."""
    return Case(f"example {example}", partial(_example, example))


def _example(example: str, launcher: Launcher) -> None:
    import_module(f"examples.kernels.{example}").check(launcher.launch)


def _feature(feature: Feature, launcher: Launcher) -> Result:
    result: Result = feature.launch(launcher.launch)
    return result


def _launch(kernel: Any, grid: Any, block: Any, args: dict[str, Any], launcher: Launcher) -> Result:
    return launcher.launch(kernel, grid=grid, block=block, args=args)
