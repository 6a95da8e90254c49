"""Sentences of the changes of memory accesses that `remedies` evaluates."""

from collections.abc import Callable, Sequence

from ..machine.device import Device
from .costs import Place

Text = tuple[str, str, str]
"""Kind of the cost, cause, change."""
_TILE = " (about 17 more instructions for each access)"
"""Cost of a tile: the transposes of tests/profiler/advised.py."""


def text(rule: str, places: Sequence[Place], numbers: Sequence[int], device: Device) -> Text:
    """Return the text of a change. places: the changed ones. numbers: of its `remedies.Remedy`."""
    return _TEXTS[rule](places, numbers, device)


def _other_lines(places: Sequence[Place]) -> str:
    """Return the other lines with the same cost."""
    first = places[0].span
    spans = {(one.span.file, one.span.line): one.span for one in places}
    lines = [span for key, span in sorted(spans.items()) if key != (first.file, first.line)]
    if not lines:
        return ""
    numbers = [str(span.line) if span.file == first.file else span.place for span in lines]
    return f" (also line{'s' if len(lines) > 1 else ''} {', '.join(numbers)})"


def _verb(place: Place) -> str:
    return place.kind.split("_")[1]


def _stride(places: Sequence[Place], numbers: Sequence[int], device: Device) -> Text:
    distance, run, size, now, least, fields, several = numbers
    place = places[0]
    array = place.array.split(".")[0]
    example = ", for example," * several
    if run == 1:
        reason = f"the distance between its elements is{example} {distance:,} elements, {distance * size:,} bytes"
    else:
        reason = f"it accesses runs of{example} {run} neighbours at a distance of {distance:,} elements"
    sentence = (
        f"a warp's {_verb(place)} of {array}{_other_lines(places)} touches {now} sectors instead of {least}: {reason}."
    )
    if fields > 1:
        remedy = f"Store each field of {array} in an array of its own, or exchange the elements through a tile in shared memory{_TILE}."
    elif run == 1:
        remedy = (
            "Let neighbouring lanes access neighbouring elements, by another layout, another assignment of elements to threads, or "
            f"a tile in shared memory{_TILE}."
        )
    else:
        remedy = f"Let the lanes of a warp access one run: widen the block along the array, or use a tile in shared memory{_TILE}."
    return "uncoalesced access", sentence, remedy


def _alignment(places: Sequence[Place], numbers: Sequence[int], device: Device) -> Text:
    shift, now, least = numbers
    place = places[0]
    return (
        "misaligned access",
        f"a warp's {_verb(place)} of {place.array}{_other_lines(places)} touches {now} sectors instead of {least}: its lanes access "
        "neighbouring elements, and the first is not at the start of a sector.",
        f"Put {shift} unused element{'s' if shift > 1 else ''} before the first element of {place.array}.",
    )


def _scatter(places: Sequence[Place], numbers: Sequence[int]) -> str:
    lanes, distinct, sectors = numbers[:3]
    place = places[0]
    return (
        f"{lanes} lanes of a warp {_verb(place)} {distinct} elements of {place.array}{_other_lines(places)} in {sectors} sectors, "
        "without a common distance"
    )


def _table(places: Sequence[Place], numbers: Sequence[int], device: Device) -> Text:
    return (
        "scattered access",
        f"{_scatter(places, numbers)}; the kernel only reads {places[0].array}, which has {numbers[3]:,} bytes.",
        f"Copy {places[0].array} to shared memory at the start of a block.",
    )


def _order(places: Sequence[Place], numbers: Sequence[int], device: Device) -> Text:
    return (
        "scattered access",
        f"{_scatter(places, numbers)}, though other warps access the same sectors.",
        f"Assign the items to threads in the order of the elements of {places[0].array} that they access.",
    )


def _scattered(places: Sequence[Place], numbers: Sequence[int], device: Device) -> Text:
    return (
        "scattered access",
        f"{_scatter(places, numbers)}; the lanes request {numbers[3]} % of the transferred bytes.",
        f"Store the elements of {places[0].array} that the lanes of a warp access at once next to each other, if their order is free.",
    )


def _contended(places: Sequence[Place], numbers: Sequence[int], device: Device) -> Text:
    lanes, distinct, alone = numbers
    place = places[0]
    if alone:
        remedy = "Combine the values within the warp first (shuffles), so that one lane executes the operation."
    else:
        how = " (st.match_any)" if device.compute_capability >= (7, 0) else ""
        remedy = (
            f"Combine the values of lanes with the same element first{how}, so that one of them executes the operation."
        )
    elements = "one element" if distinct == 1 else f"{distinct} elements"
    return (
        "contended atomic",
        f"{lanes} lanes of a warp change {elements} of {place.array}{_other_lines(places)}.",
        remedy,
    )


def _padding(places: Sequence[Place], numbers: Sequence[int], device: Device) -> Text:
    pitch, wavefronts = numbers
    place = places[0]
    return (
        "bank conflicts",
        f"a warp's {_verb(place)} of {place.array}{_other_lines(places)} takes up to {wavefronts} wavefronts: lanes access different "
        f"words of one of {device.banks} banks.",
        f"Leave an element free after each {pitch:,}: store element i of {place.array} at i + i // {pitch}"
        f" (for rows of {pitch:,} elements, a pitch of {pitch + 1:,}).",
    )


def _conflicts(places: Sequence[Place], numbers: Sequence[int], device: Device) -> Text:
    place = places[0]
    return (
        "bank conflicts",
        f"{numbers[0]} % of the wavefronts of a warp's {_verb(place)} of {place.array}{_other_lines(places)} are conflicts: lanes access "
        f"different words of one of {device.banks} banks, at irregular distances.",
        f"Assign the items to threads so that the lanes of a warp access different banks or one word, or keep copies of {place.array} "
        "for groups of lanes, each begun in another bank.",
    )


def _local(places: Sequence[Place], numbers: Sequence[int], device: Device) -> Text:
    distinct, threads, size = numbers
    place = places[0]
    spread = f", up to {distinct} different ones in a warp" if distinct > 1 else ""
    return (
        "local memory",
        f"the local array {place.array}{_other_lines(places)} is indexed by a value that is known at run time only{spread}, so that it is "
        "in memory and not in registers.",
        f"Keep it in shared memory ({size:,} bytes for {threads:,} threads): element k of thread t at k * {threads} + t.",
    )


def _constant(places: Sequence[Place], numbers: Sequence[int], device: Device) -> Text:
    distinct, size = numbers
    place = places[0]
    return (
        "constant memory",
        f"the lanes of a warp read up to {distinct} different elements of the constant array {place.array}{_other_lines(places)} at "
        "once; constant memory serves one after another.",
        f"Copy it to shared memory ({size:,} bytes) at the start of a block.",
    )


_TEXTS: dict[str, Callable[[Sequence[Place], Sequence[int], Device], Text]] = {
    "stride": _stride, "alignment": _alignment, "table": _table, "order": _order, "scattered": _scattered,
    "contended": _contended, "padding": _padding, "local": _local, "constant": _constant,
    "conflicts": _conflicts,
}  # fmt: skip
