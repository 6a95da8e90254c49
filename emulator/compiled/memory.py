"""What the accesses of a compiled kernel move: those that its instructions make, each as it costs at its line of the source.

The emulator knows what each access of the source costs. An instruction that stands for it costs as much each time that it
is executed, however often that is: what the compiler keeps in registers, or takes out of a loop, is executed less often.
One that is wider than the source's access stands for several that lie side by side in each lane: they touch the same
sectors, and the banks deliver them in as many phases as such a width needs (`machine.banks`), if that is more.
Atomics to one address that the compiler has one lane make for all cost what one lane's do.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ..profiler.events import CONFLICTS, GLOBAL, REQUESTS, SECTORS, SHARED, WAVEFRONTS
from .access_attribution import AccessAttribution
from .coefficient_tables import table_traffic
from .instruction_counts import InstructionCount
from .kernel_launches import KernelLaunches
from .lane_accesses import shared_branch_accesses
from .opcode_classes import EFFECTS, access_width
from .shared_cas_loops import RetryCost
from .source_statements import Place, Statement

_COLUMNS = {"requests": REQUESTS, "sectors": SECTORS, "wavefronts": WAVEFRONTS, "conflicts": CONFLICTS}
_VOTES, _CHOICES = {"VOTE", "VOTEU"}, {"FLO", "UFLO", "POPC", "UPOPC"}
"""Instructions by which lanes find one of them to act for all, and what it acts with."""
_SAME, _ALIKE = 0.01, 0.001
"""How near executions must be for an instruction to be that of an access: as near as the ways of lanes are told; and for it to be made
by the same lanes: what a solver's tolerance may leave."""
_SECTOR, _DENSE = 32, 0.9
"""Bytes of a sector, and the part of the bytes asked for that sectors must hold for lanes not to share any: then so many
lanes touch so many sectors, whichever groups they come in. What lanes share they touch however many they are."""
Accesses = dict[tuple[Place, str], list[Statement]]


@dataclass(frozen=True)
class AccessDifference:
    """Where the compiled kernel accesses memory otherwise than the source does. place: in the printed kernel."""

    place: Place
    kind: str
    accesses: int
    compiled: int
    what: str

    def __str__(self) -> str:
        return f"line {self.place[0]}: {self.what}"


@dataclass(frozen=True)
class MemoryTraffic:
    """figures: requests and sectors of global memory, wavefronts and conflicts of shared memory, by the names of the
    counters; shuffles where all their executions are certain. differences: why they are not the source's. together: sites of atomics
    that one lane makes for all; gone: sites whose accesses the compiled kernel does not make. standing: by offset of an instruction,
    the sites that it stands for."""

    figures: dict[str, int]
    differences: tuple[AccessDifference, ...]
    together: frozenset[int] = frozenset()
    gone: frozenset[int] = frozenset()
    standing: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


def memory_of(
    launched: KernelLaunches, instructions: Sequence[InstructionCount], accessed: AccessAttribution, apart: bool = False,
    tries: Mapping[Place, RetryCost] = MappingProxyType({}),
) -> MemoryTraffic:  # fmt: skip
    """What the instructions move. apart: tell too which of the loads of a line from several arrays each of its instructions stands for.
    tries: by place, what atomic operations cost that are loops."""
    accesses = _accesses(launched, any(len(one.place) > 1 for one in instructions))
    compiled = _by_access(instructions, accesses, launched.statements.chosen)
    _join(accesses, compiled)
    voting = _voting(instructions) - {
        one.place for one in launched.statements.statements.values() if one.site.kind == "vote"
    }
    figures = {f"{kind}_{what}": 0.0 for kind in GLOBAL for what in ("requests", "sectors")}
    figures |= {f"{kind}_{what}": 0.0 for kind in SHARED for what in ("wavefronts", "conflicts")}
    differences = []
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    source: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    otherwise: dict[str, bool] = defaultdict(bool)
    together, gone, standing = set[int](), set[int](), dict[int, tuple[int, ...]]()
    assert launched.counts is not None
    atomics = ("atomic", "reduction")
    by_one = {
        key
        for key, of in compiled.items()
        if key[0] in voting and key[1].endswith(atomics) and not any("CAS" in one.instruction.operation for one in of)
    }
    known = _known(accesses, {key: of for key, of in compiled.items() if key not in by_one}, accessed)
    loads = [(accesses[key], of) for key, of in compiled.items() if apart and key[1] == "global_load" and of]
    for statements, of in loads:
        if len({one.site.array for one in statements}) > 1 and of[0].instruction.offset not in accessed.standing:
            accessed.costs(statements, of)  # which stands for which
    for (place, kind), statements in accesses.items():
        numbers = [one.number for one in statements]
        if kind == "shared_atomic" and place in tries:
            tried, warps = tries[place], sum(one.warps for one in statements)
            otherwise["shared_atomic"] = otherwise["shared_load"] = True
            sums["shared_atomic"]["wavefronts"] += tried.swaps * warps
            sums["shared_load"]["wavefronts"] += tried.loads * warps
            sums["shared_load"]["conflicts"] += tried.conflicts * warps
            what = f"nvcc makes a shared atomic a loop: warps try {tried.rounds:.1f} times, as lanes meet at elements or banks"
            differences.append(AccessDifference(place, kind, len(statements), 1, what))
            continue
        cost = {what: float(launched.counts[numbers, column].sum()) for what, column in _COLUMNS.items()}
        found = compiled.get((place, kind))
        one_for_all, exact = (place, kind) in by_one, known.get((place, kind))
        together |= set(numbers) if one_for_all else set()
        stand = [accessed.standing.get(one.instruction.offset, tuple(numbers)) for one in found or ()]
        if found is None or (found and kind.endswith("load")):  # what is loaded once is kept, what is stored is stored
            made = {number for one, each in zip(found or (), stand, strict=True) for number in each if one.warps}
            gone |= set(numbers) - made
        standing |= {one.instruction.offset: each for one, each in zip(found or (), stand, strict=True)}
        moved, difference = _moved(place, kind, statements, found, cost, one_for_all, exact)
        if difference is not None:
            if found is None and (merged := _merged_with(statements, accesses, compiled)) is not None:
                difference = replace(difference, what=merged)
            differences.append(difference)
        otherwise[kind] |= (
            one_for_all
            or exact is not None
            or any(access_width(one.instruction) != statements[0].site.size for one in found or ())
        )
        for what, n in moved.items():
            sums[kind][what] += n
            source[kind][what] += cost[what]
    for kind, each in sums.items():
        if not otherwise[kind] and _same(each["requests"], source[kind]["requests"]):
            each = source[kind]  # as many as the source makes are the source's, whichever lines they have
        figures |= {f"{kind}_{what}": n for what, n in each.items() if f"{kind}_{what}" in figures}
    for place, (requests, sectors) in table_traffic(instructions).items():
        figures["global_load_requests"] += requests
        figures["global_load_sectors"] += sectors
        what = "nvcc looks up coefficients of a function in a table; a warp that needs two rows of it is taken to load both"
        differences.append(AccessDifference(place, "global_load", 0, 1, what))
    shuffles = [one for one in instructions if one.instruction.opcode == "SHFL"]
    if not any(one.why for one in shuffles):
        figures["shuffles"] = sum(one.warps for one in shuffles)
    return MemoryTraffic(
        {name: round(value) for name, value in figures.items()},
        tuple(differences),
        frozenset(together),
        frozenset(gone),
        standing,
    )


def _known(
    accesses: Accesses, compiled: Mapping[tuple[Place, str], list[InstructionCount]], accessed: AccessAttribution
) -> dict[tuple[Place, str], dict[str, float]]:
    """What lanes access together, of accesses that are not made just as in the source, where it can be told: of one place, or of
    several of a loop, or of none, whose accesses share instructions; then the first has what all of them cost. What is executed once
    may have no instruction, as one of another place stands for it."""
    found = _known_apart(accesses, compiled, accessed)
    untold: dict[tuple[str, int], list[tuple[Place, str]]] = defaultdict(list)
    for key, instructions in compiled.items():
        if not instructions or not (_differs(accesses[key], instructions) or _parted(accesses[key], instructions)):
            continue
        costs = accessed.costs(accesses[key], instructions)
        if costs is not None:
            found[key] = costs
            continue
        first, *others = _loops(accesses[key])
        if not others:
            untold[key[1], first].append(key)
    for (kind, loop), keys in untold.items():
        gone = [
            key
            for key, of in accesses.items()
            if key[1] == kind and key not in compiled and _loops(of) == {-1} == {loop}
        ]
        statements = sorted((one for key in (*keys, *gone) for one in accesses[key]), key=lambda one: one.number)
        made = [one for key in keys for one in compiled[key]]
        costs = accessed.costs(statements, made) if len(keys) + len(gone) > 1 else None
        if costs is not None:
            found |= {keys[0]: costs} | {key: dict.fromkeys(costs, 0.0) for key in keys[1:]}
    return found


def _loops(statements: Sequence[Statement]) -> set[int]:
    """The innermost loops around some, -1 for none."""
    return {-1 if one.context.loop is None else one.context.loop.site for one in statements}


def _known_apart(
    accesses: Accesses, compiled: Mapping[tuple[Place, str], list[InstructionCount]], accessed: AccessAttribution
) -> dict[tuple[Place, str], dict[str, float]]:
    """The same of accesses whose instructions have lines of others, which are executed less often than all of them: arms of a branch
    may share them. The first has what all cost."""
    found: dict[tuple[Place, str], dict[str, float]] = {}
    for kind in {kind for (_, kind), of in compiled.items() if not of and kind.endswith(("load", "store"))}:
        keys = [key for key, of in compiled.items() if key[1] == kind and not of]
        named = {id(one) for key, of in compiled.items() for one in of}
        moved = [one for one in accessed.instructions if _makes(one) == kind and id(one) not in named and one.warps]
        statements = sorted((one for key in keys for one in accesses[key]), key=lambda one: one.number)
        if sum(one.warps for one in moved) < sum(one.warps for one in statements) - 0.5:
            costs = accessed.costs(statements, moved)
            if costs is not None:
                found |= {keys[0]: costs} | {key: dict.fromkeys(costs, 0.0) for key in keys[1:]}
    return found


def _accesses(launched: KernelLaunches, calls: bool) -> Accesses:
    """Executed accesses of the source, by place and kind. calls: whether the compiler tells them."""
    source = launched.statements if calls else launched.statements.without_inlining()
    found: Accesses = defaultdict(list)
    for statement in source.statements.values():
        if statement.site.kind in (*GLOBAL, *SHARED) and statement.lanes:
            found[statement.place, statement.site.kind].append(statement)
    return dict(found)


def _by_access(
    instructions: Sequence[InstructionCount], accesses: Accesses, chosen: Mapping[int, tuple[int, str]]
) -> dict[tuple[Place, str], list[InstructionCount]]:
    """The instructions that stand for each access: those at its place. The compiler gives an access at times the line of what
    uses its value: then it stands for the nearest of its kind that is executed just as often and that no other
    instruction stands for; else for the nearest in what shares most of its calls, first for one that none stands for.
    Parts of an atomic, beside it, stand for no access. chosen: by access, the branch and the arm that decide about it."""
    found: dict[tuple[Place, str], list[InstructionCount]] = defaultdict(list)
    strays: dict[tuple[Place, str], list[InstructionCount]] = defaultdict(list)
    for one in instructions:
        kind = _makes(one)
        if kind is not None:
            (found if (one.place, kind) in accesses else strays)[one.place, kind].append(one)
    for key, several in strays.items():
        for one in list(several):
            alike = [at for at, of in accesses.items() if at not in found and at[1] == key[1] and _as_often(one, of)]
            if alike:
                found[min(alike, key=lambda at: _distance(one.place, at[0]))].append(one)
                several.remove(one)
    strays = {key: several for key, several in strays.items() if several}
    taken = set(found)
    for kind in {kind for _, kind in strays}:
        alone = {key: of for key, of in accesses.items() if key[1] == kind and key not in found}
        moved = [one for key, several in strays.items() if key[1] == kind for one in several]
        if moved and _same(sum(one.warps for one in moved), sum(one.warps for of in alone.values() for one in of)):
            found |= {key: [] for key in alone}  # they are all there, if not at their lines
            strays = {key: several for key, several in strays.items() if key[1] != kind}
    for (place, kind), several in strays.items():
        if any((place, atomic) in accesses for atomic in ("shared_atomic", "global_atomic", "global_reduction")):
            continue
        known = [at for at, of in accesses if of == kind]
        if known:
            calls = min(_distance(place, at)[0] for at in known)
            near = [at for at in known if _distance(place, at)[0] == calls]
            at = min(near, key=lambda at: ((at, kind) in taken, _distance(place, at)))
            found[at, kind] += several
    _pool(found, accesses, chosen)
    return found


def _makes(one: InstructionCount) -> str | None:
    """The kind of access of the source that an instruction may make."""
    return EFFECTS.get(one.instruction.opcode) if one.instruction.predicate != "@!PT" and not one.table else None


def _join(accesses: Accesses, compiled: dict[tuple[Place, str], list[InstructionCount]]) -> None:
    """Put together what calls of a function make at a line of it, and what the lines of a statement list do, where that is what the source
    makes there, but not place by place: the compiler gives what is inlined, or unrolled, the line of another one at times."""
    of_line: dict[Hashable, list[tuple[Place, str]]] = defaultdict(list)
    for place, kind in accesses:
        of_line[place[0], kind].append((place, kind))
    _join_each(of_line.values(), accesses, compiled)
    of_list: dict[Hashable, list[tuple[Place, str]]] = defaultdict(list)
    for key, statements in accesses.items():
        lists, sizes = {one.context for one in statements}, {one.site.size for one in statements}
        if len(lists) == len(sizes) == 1:
            of_list[lists.pop(), sizes.pop(), key[1]].append(key)
    _join_each(of_list.values(), accesses, compiled)


def _join_each(
    together: Iterable[list[tuple[Place, str]]],
    accesses: Accesses,
    compiled: dict[tuple[Place, str], list[InstructionCount]],
) -> None:
    """Put accesses together that are the source's only so. together: which may be."""
    for keys in together:
        statements = [one for key in keys for one in accesses[key]]
        made = [one for key in keys for one in compiled.get(key, ())]
        apart = any(_differs(accesses[key], compiled.get(key, ())) for key in keys)
        if len(keys) > 1 and apart and not _differs(statements, made):
            for key in keys:
                del accesses[key]
                compiled.pop(key, None)
            accesses[keys[0]], compiled[keys[0]] = statements, made


def _as_often(one: InstructionCount, statements: Sequence[Statement]) -> bool:
    """Whether an instruction is executed just as often as some statements, and is as wide."""
    return (
        access_width(one.instruction) == statements[0].site.size
        and _same(one.warps, sum(each.warps for each in statements))
        and _same(one.threads, sum(each.lanes for each in statements))
    )


def _same(one: float, other: float, near: float = _SAME) -> bool:
    return abs(one - other) <= near * other


def _pool(
    found: Mapping[tuple[Place, str], list[InstructionCount]], accesses: Accesses, chosen: Mapping[int, tuple[int, str]]
) -> None:
    """Put an access that no instruction stands for to one whose instructions are executed as much more often than it is, or, of two in
    the arms of a branch, by as many more lanes: the compiler has made one of the two."""
    for (place, kind), alone in list(accesses.items()):
        if (place, kind) in found:
            continue
        warps = sum(one.warps for one in alone)
        for at in sorted((at for at, of in found if of == kind), key=lambda at: _distance(place, at)):
            more = sum(one.warps for one in found[at, kind]) - sum(one.warps for one in accesses[at, kind])
            if any(one.instruction.predicate for one in found[at, kind]):
                continue  # executed, not made
            lanes = sum(one.threads for one in found[at, kind]) - sum(one.lanes for one in accesses[at, kind])
            arms = shared_branch_accesses([*accesses[at, kind], *alone], chosen) and _same(
                lanes, sum(one.lanes for one in alone)
            )
            if found[at, kind] and (more >= (1 - _SAME) * warps or arms):
                accesses[at, kind] = accesses[at, kind] + accesses.pop((place, kind))
                break


def _voting(instructions: Sequence[InstructionCount]) -> set[Place]:
    """Places where lanes find one of them to act for all, and add up what it shall do."""
    opcodes: dict[Place, set[str]] = defaultdict(set)
    for one in instructions:
        opcodes[one.place].add(one.instruction.opcode)
    return {place for place, known in opcodes.items() if "REDUX" in known or (known & _VOTES and known & _CHOICES)}


def _distance(one: Place, other: Place) -> tuple[int, int]:
    """Calls that two places do not share, then lines between them where they part."""
    shared = 0
    for mine, its in zip(reversed(one), reversed(other), strict=False):
        if mine != its:
            break
        shared += 1
    at, its = (place[len(place) - 1 - shared] if shared < len(place) else place[0] for place in (one, other))
    return len(one) + len(other) - 2 * shared, abs(at - its)


def _moved(
    place: Place,
    kind: str,
    statements: list[Statement],
    compiled: list[InstructionCount] | None,
    cost: dict[str, float],
    one_for_all: bool,
    exact: dict[str, float] | None,
) -> tuple[dict[str, float], AccessDifference | None]:
    """What the instructions move that stand for the accesses at a place. cost: of all executions of these by the emulator.
    compiled: none where there are none, empty where it is not known which of the kernel's they are.
    one_for_all: whether one lane may make an atomic for all. exact: what lanes access together, if that is known."""

    def differs(what: str) -> AccessDifference:
        return AccessDifference(place, kind, len(statements), len(compiled or ()), what)

    warps, size = sum(one.warps for one in statements), max(one.site.size for one in statements)
    if compiled == []:
        return exact or cost, None
    if compiled is None:
        what = f"nvcc keeps in registers what {_times(len(statements), kind)} would access"
        return dict.fromkeys(cost, 0.0), differs(what)
    executed, predicated = sum(one.warps for one in compiled), any(one.instruction.predicate for one in compiled)
    if one_for_all:
        made = min(executed, warps)
        what = f"nvcc has one lane make {_times(len(compiled), kind)} for all that meet at one address"
        return {"requests": made, "sectors": made, "wavefronts": made, "conflicts": 0.0}, differs(what)
    widths = {access_width(one.instruction) for one in compiled}
    asked, made = (
        sum(one.lanes for one in statements) * size,
        sum(one.threads * access_width(one.instruction) for one in compiled),
    )
    more = (made > (1 + _SAME) * asked and (predicated or not kind.endswith("load"))) or (
        predicated and executed >= warps
    )
    doubtful = any(one.why for one in compiled) and not (kind.endswith("load") and made < asked / 2)
    if exact is None and (more or doubtful):
        return cost, None  # no compiler makes more: how many lanes are on is the source's to tell
    moved, lanes = exact or dict.fromkeys(cost, 0.0), sum(one.lanes for one in statements) / warps
    for one in compiled if exact is None else ():
        each = _each(kind, size, one, lanes, {what: n / warps for what, n in cost.items()})
        for what, n in each.items():
            moved[what] += one.warps * n
    times, wide = _times(len(compiled), kind), max(widths)
    if wide > size:
        return moved, differs(f"nvcc merges {wide // size} of {size} bytes into one of {wide}: {times}")
    if max(widths) < size:
        return moved, differs(f"nvcc accesses {max(widths)} of {size} bytes: {times}")
    if executed < warps - 0.5:
        source = _times(len(statements), kind)
        if kind.endswith("load"):
            return moved, differs(f"nvcc makes {source} {executed / warps:.0%} as often, the rest from registers")
        return moved, differs(
            f"nvcc makes {source} {executed / warps:.0%} as often, lanes together that come apart in the source"
        )
    return moved, None


def _merged_with(
    statements: list[Statement], accesses: Accesses, compiled: Mapping[tuple[Place, str], list[InstructionCount]]
) -> str | None:
    """What is said of accesses that no instruction stands for, where one of another line beside them, of the same statement list, is
    wide enough for both."""
    kind, size = statements[0].site.kind, statements[0].site.size
    lists, arrays = {one.context for one in statements}, {one.site.array for one in statements}
    for (place, other), of in compiled.items():
        its = accesses.get((place, other), [])
        if other != kind or {one.context for one in its} != lists:
            continue
        wide = max((access_width(one.instruction) for one in of), default=0)
        side_by_side = kind in SHARED or {one.site.array for one in its} & arrays
        if side_by_side and wide >= its[0].site.size + size:
            return f"nvcc merges {_times(len(statements), kind)} with that of line {place[0]} into one of {wide} bytes"
    return None


def _differs(statements: Sequence[Statement], compiled: Sequence[InstructionCount]) -> bool:
    """Whether instructions are other than the accesses of the source, one for one and with the same lanes."""
    warps, lanes = sum(one.warps for one in statements), sum(one.lanes for one in statements)
    size = statements[0].site.size
    return (
        any(one.instruction.predicate or one.why or access_width(one.instruction) != size for one in compiled)
        or not _same(sum(one.warps for one in compiled), warps, _ALIKE)
        or not _same(sum(one.threads for one in compiled), lanes, _ALIKE)
    )


def _parted(statements: Sequence[Statement], compiled: Sequence[InstructionCount]) -> bool:
    """Whether lanes that make an access together in the source may make it with others: they leave a loop at different iterations, and
    come to copies of its body in another order."""
    partly = sum(one.lanes for one in statements) < 32 * sum(one.warps for one in statements)
    return partly and len(compiled) > len(statements)


def _each(kind: str, size: int, one: InstructionCount, lanes: float, cost: dict[str, float]) -> dict[str, float]:
    """What an execution of an instruction moves, from what one of the source's does. lanes: that are active at the source's."""
    if kind not in SHARED:
        apart = kind in GLOBAL and _SECTOR * cost["sectors"] >= _DENSE * lanes * size and one.warps
        return cost | {"sectors": cost["sectors"] * one.threads / one.warps / lanes} if apart else cost
    width = access_width(one.instruction)
    if width == size:
        return cost
    phases = phases_of(kind, width, lanes)
    wavefronts = max(cost["wavefronts"], phases) if width > size else cost["wavefronts"]
    return cost | {"wavefronts": wavefronts, "conflicts": wavefronts - phases if width < size else 0.0}


def phases_of(kind: str, width: int, lanes: float) -> int:
    """Wavefronts that an access to shared memory of so many bytes a lane needs at least, by so many lanes."""
    return min(max(width // (8 if kind == "shared_load" else 4), 1), math.ceil(lanes))


def _times(n: int, kind: str) -> str:
    name = kind.replace("_", " ")
    return f"a {name}" if n == 1 else f"{n} {name}s"
