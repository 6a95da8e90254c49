"""Remedies of races: where a barrier is legal and orders the accesses, and one finding for one cause."""

import linecache
from dataclasses import replace

from simtbed import Diagnostic, Result
from simtbed.errors import Insertion
from simtbed.sanitizer.races.causes import merge_races
from simtbed.span import Span

from tests.checkers.insertion import with_insertions
from tests.checkers.racy_kernels import RACY, Racy
from tests.table_checks import check_each

WITHOUT_RUN = ("tiles_read_early", "inside_a_device_function", "in_two_branches", "loop_with_continue", "after_returns")


def remedies(result: Result) -> list[Insertion]:
    return list(dict.fromkeys(insertion for fault in result.faults for insertion in fault.remedy))


def as_written(insertion: Insertion) -> str:
    text = linecache.getline(insertion.file, insertion.line).strip()
    return f"{insertion.statement} {insertion.place}: {text}"


def check_remedies(racy: Racy, result: Result) -> None:
    assert len(result.faults) == racy.findings, "\n".join(map(str, result.faults))
    assert [as_written(insertion) for insertion in remedies(result)] == list(racy.remedies)
    for fault in result.faults:
        assert all(str(insertion) in fault.notes[2] for insertion in fault.remedy)


def check_corrected(racy: Racy) -> None:
    """The kernel with its remedies has no race but those that no barrier orders."""
    result = racy.launch()
    check_remedies(racy, result)
    if racy.remedies:
        corrected = racy.corrected(remedies(result)).launch()
        unordered = [fault for fault in result.faults if not fault.remedy]
        assert len(corrected.faults) == len(unordered), "\n".join(map(str, corrected.faults))
    else:
        assert all("no barrier" in f.notes[2] or "() is legal between the two" in f.notes[2] for f in result.faults)


def test_remedies_make_racy_kernels_clean() -> None:
    check_each(("tree", "scan_in_two_statements", "in_a_branch"), lambda name: check_corrected(RACY[name]))


def test_remedies_are_at_places_that_all_threads_reach() -> None:
    check_each(WITHOUT_RUN, lambda name: check_remedies(RACY[name], RACY[name].launch()))


def test_statements_are_inserted_at_their_places() -> None:
    text = "for k in x:\n    if k:\n        a()\n\nb()\n"
    insertions = [
        Insertion("first()", "f", 1, "before"), Insertion("second()", "f", 1, "before"), Insertion("start()", "f", 1, "start of loop"),
        Insertion("end()", "f", 1, "end of loop"),
    ]  # fmt: skip
    lines = ["first()", "second()", "for k in x:", "    start()", "    if k:", "        a()", "    end()", "", "b()"]
    assert with_insertions(text, insertions).splitlines() == lines


def test_races_of_one_cause_are_one_finding() -> None:
    barrier, other = Insertion("st.sync()", "f", 20, "before"), Insertion("st.sync()", "f", 9, "end of loop")

    def race(array: str, lines: tuple[int, int], remedy: tuple[Insertion, ...], advice: str = "advice") -> Diagnostic:
        first, second = (Span("f", line, 1, line, 2) for line in lines)
        return Diagnostic("race", array, second, ("a", "b", advice), 2, first, remedy, array)

    a, b = race("a", (17, 18), (barrier,)), race("b", (18, 17), (barrier,))
    both = race("a", (18, 17), (barrier, other))
    assert merge_races([a, b]) == [replace(a, count=4, notes=(*a.notes, "the same cause: b in lines 17 and 18"))]
    assert merge_races([a, both]) == [replace(both, count=4)]
    assert merge_races([a, race("a", (3, 4), (other,))]) == [a, race("a", (3, 4), (other,))]
    blocks = [race("a", (3, 4), ()), race("a", (5, 6), ()), race("b", (3, 4), ()), race("a", (7, 8), (), "another")]
    assert [finding.count for finding in merge_races(blocks)] == [6, 2]
    advice = "to order them: st.sync() between the two"
    one_gap = [race("a", (3, 7), (), advice), race("b", (4, 8), (), advice)]
    assert merge_races(one_gap)[0].notes[-2:] == (f"{advice[:-7]}lines 4 and 7", "the same cause: b in lines 4 and 8")
    two_gaps = [race("a", (3, 4), (), advice), race("a", (8, 9), (), advice)]
    assert merge_races(two_gaps)[0].notes[-2:] == (advice, "the same cause: a in lines 8 and 9")
