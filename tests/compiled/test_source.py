"""Control structure of the source of a compiled kernel."""

from __future__ import annotations

import simtbed as st
from simtbed.compiled.source_statements import SourceStatements, Statement
from simtbed.language.hints import Global, i32
from simtbed.profiler.decisions import Decisions


@st.kernel
def guarded(x: Global[i32], out: Global[i32]) -> None:
    i = st.thread.x
    for k in range(4):
        if x[k] == i:
            continue
        out[i] += 1
        if x[k] > i:
            out[i] += 2
        else:
            break
        out[i] += 3
    if i == 7:
        return
    out[i] += 4


def stores() -> tuple[SourceStatements, list[Statement]]:
    args = {"x": st.zeros(4, st.i32), "out": st.zeros(32, st.i32)}
    result = st.launch(guarded, grid=1, block=32, args=args)
    prepared = result.request.prepared
    assert result.counts is not None
    places: list[tuple[int, ...]] = [(site.span.line,) for site in prepared.sites]
    source = SourceStatements.from_kernel(
        prepared.program.kernel.body, prepared.sites, places, result.counts, Decisions()
    )
    return source, [one for one in source.statements.values() if one.site.kind == "global_store"]


def test_what_follows_a_guard_belongs_to_its_other_arm() -> None:
    source, (first, then, behind, last) = stores()
    branches = sorted(one.number for one in source.statements.values() if one.site.kind == "branch")
    branches = [n for n in branches if n not in source.loops]
    assert [source.deciding_arm[one.number] for one in (first, then, behind, last)] == [
        (branches[0], "else"),
        (branches[1], "then"),
        (branches[1], "then"),
        (branches[2], "else"),
    ]


def test_segments_of_a_list_are_distinct() -> None:
    source, (first, then, behind, last) = stores()
    assert first.context is behind.context
    assert len({source.segment(one) for one in (first, then, behind, last)}) == 4
    assert source.by_branch_arm[source.branch_arm(behind) or ((), "then")] == [
        one for one in source.statements.values() if source.branch_arm(one) == source.branch_arm(behind)
    ]


def test_guarded_statements_run_as_often_as_the_next_branch() -> None:
    """There is none after the last guard of a list; statements before a guard execute as often as the list."""
    source, (first, then, behind, last) = stores()
    loop, _, second, _ = sorted(one.number for one in source.statements.values() if one.site.kind == "branch")
    assert loop in source.loops
    assert source.next_branch[first.number] == second
    assert not source.next_branch.keys() & {loop, then.number, behind.number, last.number}
