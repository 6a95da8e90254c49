"""Cases of the conformance suite."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ...ir import nodes as ir
from ...ir.ops import BITS
from ...ir.walk import rewrite
from ...language.types import Value
from ...runtime.engine import Engine
from ...runtime.registry import EngineName
from ...runtime.request import prepare_request
from ...runtime.specialisation import Specialisation
from ...span import Span
from . import device_arrays
from .common_memory import OVERLAPS, OverlapCase
from .edge_values import comparable, defined
from .feature import FEATURES, Feature
from .operations import Group, group_id, groups, request, shifts
from .outcomes import Accesses, assert_same, engine_of
from .wide_accesses import FAULTY, PAIRS, faulty_request, wide_case


@dataclass(frozen=True)
class Case:
    """One requirement. name: unique, usable as the id of a test. run: raises AssertionError if the requirement is violated."""

    name: str
    run: Callable[[], None]

    def __str__(self) -> str:
        return self.name


def cases(engine: EngineName | Engine, *, emulates: bool = False) -> list[Case]:
    """Return every requirement on an engine, given by itself or by its registered name.

    emulates: whether it also counts, reports faults, and defines results that CUDA leaves undefined.
    """
    tested = engine_of(engine)
    result = [Case(f"feature {one.name}", partial(_feature, tested, one, emulates)) for one in FEATURES]
    rows = [*groups(), *shifts()]
    result += [Case(f"operations {group_id(one)}", partial(_operations, tested, one, emulates)) for one in rows]
    result += [Case(f"wide {e} as {t}", partial(_wide, tested, (e, t), emulates)) for e, t in PAIRS]
    if emulates:
        result += [Case(f"wide {name}", partial(_faulty, tested, name)) for name in FAULTY]
        result += [Case(f"overlap {one.name}", partial(_overlap, tested, one)) for one in OVERLAPS]
        bounded = [group for group in rows if any(row.domain for row in group[1])]
        result += [Case(f"domains {group_id(one)}", partial(_domains, tested, one)) for one in bounded]
    result.append(Case("device arrays", partial(_device_arrays, engine)))
    return result


def _feature(engine: Engine, feature: Feature, emulates: bool) -> None:
    """The kernel writes its expected output. An emulator has the outcome of the numpy engine, with samples and accesses and without."""
    launch = feature.launch(prepare_request)
    actual = engine.run(launch)
    assert np.asarray(feature.expected).ravel().tolist() == launch.shaped(actual.buffers)["out"].ravel().tolist()
    if emulates:
        accesses, expected_accesses = Accesses(), Accesses()
        observed = engine.run(replace(launch, detail=True, trace=accesses))
        expected = engine_of("numpy").run(replace(launch, detail=True, trace=expected_accesses))
        assert_same(observed, expected, launch)
        assert_same(actual, replace(expected, samples=None), launch)
        assert accesses.by_warp.tobytes() == expected_accesses.by_warp.tobytes()


def _wide(engine: Engine, pair: tuple[Value, Value], emulates: bool) -> None:
    """Accesses of another type than the element have the bits of the memory; an emulator counts and checks as the numpy engine."""
    case = wide_case(*pair)
    buffers = engine.run(case.request).buffers
    actual = {name: np.ascontiguousarray(buffers[name]).tobytes() for name in case.expected if name in buffers}
    assert actual == {name: case.expected[name] for name in actual} and "out" in actual
    if emulates:
        checked = replace(case.request, checks=frozenset({"races", "uninitialised"}), detail=True)
        outcome = engine.run(checked)
        assert outcome.faults == []
        assert_same(outcome, engine_of("numpy").run(checked), checked)


def _faulty(engine: Engine, name: str) -> None:
    """A wide access that is misaligned, ends outside, races or reads unwritten elements has the findings of the numpy engine."""
    launch = faulty_request(*FAULTY[name])
    actual, expected = engine.run(launch), engine_of("numpy").run(launch)
    assert len(actual.faults) >= 1 + (name != "out of bounds")
    assert_same(actual, expected, launch)


def _operations(engine: Engine, group: Group, emulates: bool) -> None:
    """Every row gives the table's results on its edge operands: within its policy inside its domain, and on an
    emulator to the bit everywhere."""
    launch, operand_values = request(group)
    outcome = engine.run(launch)
    for row in group[1]:
        with np.errstate(all="ignore"):
            expected = row.meaning(*operand_values)
        actual = outcome.buffers[f"out_{row.name}"]
        if emulates:
            assert BITS.agree(actual, expected).all(), row.name
        else:
            keep = comparable(row, operand_values)
            assert row.policy_for(group[0]).agree(actual[keep], expected[keep]).all(), row.name


def _domains(engine: Engine, group: Group) -> None:
    """The arithmetic check reports exactly the operands outside a row's domain."""
    launch, operands = request(group)
    rows = {row.name: number for number, row in enumerate(group[1], 1)}

    def numbered(node: Any) -> Any:
        """Return the node of a tested row with a line of its own."""
        line = rows.get(node.name) if isinstance(node, ir.Op) and isinstance(node.args[0], ir.Reg) else None
        if line is None or node.args[0].name == "i":
            return node
        return replace(node, span=Span("rows", line, 1, line, 2))

    kernel = launch.program.kernel
    program = ir.Program(replace(kernel, body=tuple(rewrite(stmt, numbered) for stmt in kernel.body)), ())
    numbered_launch = replace(
        launch, specialisation=Specialisation.of_program(program), checks=frozenset({"arithmetic"})
    )
    actual = engine.run(numbered_launch).faults
    assert {fault.kind for fault in actual} <= {"arithmetic"}
    counts = {fault.span.line: fault.count for fault in actual}
    for row in group[1]:
        undefined = int((~defined(row, operands)).sum())
        assert counts.get(rows[row.name], 0) == undefined, row.name


def _overlap(engine: Engine, case: OverlapCase) -> None:
    """A race between two arrays with common memory is found, and nothing else."""
    launch = case.request()
    actual = engine.run(launch)
    assert len(actual.faults) == bool(case.message) and case.message in "".join(one.message for one in actual.faults)
    assert_same(actual, engine_of("numpy").run(launch), launch)


def _device_arrays(engine: EngineName | Engine) -> None:
    """A kernel reads the results of an earlier one in a device array; the host's own array is unchanged."""
    before = device_arrays.FILL.copy()
    device_arrays.sequence(engine)
    device_arrays.of_two_dimensions(engine)
    device_arrays.in_place(engine)
    device_arrays.of_one_value(engine)
    device_arrays.of_poison(engine)
    assert np.array_equal(before, device_arrays.FILL)
