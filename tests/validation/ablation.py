"""Ablation of the compiled view and of the time model: the accuracy on recorded launches with one rule off at a time.

`python -m tests.validation.ablation --folder FOLDER` emulates the counted launches and a sample of the timed ones once, stores
them in FOLDER, and prints a Markdown table: losses in points on the batches 1 to 5 and 6 to 8 of the validation kernels.
`--every N` takes one of N kernels of the batches 1 to 5. `--only PATTERN` selects rules by name.
"""

from __future__ import annotations

import argparse
import copyreg
import importlib
import pickle
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from simtbed import SimtbedError, devices
from simtbed.model.launches import observe
from simtbed.model.time import ObservedLaunch, estimate
from simtbed.reports.hardware.compare import Cell, emulated_figures
from simtbed.reports.hardware.figures import FIGURES
from simtbed.reports.hardware.launches import Timed
from simtbed.reports.hardware.recording import RecordingLauncher
from simtbed.runtime.request import prepare_request

from tests.validation.accuracy import batches
from tests.validation.kernels import KERNELS, launch_counted
from tests.validation.recorded import load_record, load_times
from tests.validation.switches import SWITCHES, Switch

DEVICE = devices.H200
GROUPS = {"1 - 5": "12345", "6 - 8": "678"}
"""Groups of batches: development and held-out."""
BATCH = {kernel: number for number, batch in batches().items() for kernel in batch["kernels"]}
FACTS = ("memory", "instructions", "efficiency", "time")


@dataclass
class Score:
    """Sums of one group. right, count: cells within their tolerance, and all, by fact; time: sum of relative errors."""

    right: dict[str, float]
    count: dict[str, int]

    def percent(self, fact: str) -> float:
        """Return the cells within their tolerance in percent; for "time" the mean error, negative."""
        return 100 * self.right[fact] / self.count[fact] if self.count[fact] else 0.0


# ------------------------------------------------------------------ stored launches
def _store_locks() -> None:
    """Let pickle replace locks by new ones."""
    copyreg.pickle(type(threading.Lock()), lambda _: (threading.Lock, ()))
    copyreg.pickle(type(threading.RLock()), lambda _: (threading.RLock, ()))


def _stored(path: Path, make: Any) -> Any:
    """Return the object in a file, made and written if the file is missing."""
    if not path.exists():
        path.write_bytes(pickle.dumps(make()))
    return pickle.loads(path.read_bytes())


def _counted(kernel: Any) -> Any:
    launcher = RecordingLauncher("jit", DEVICE)
    launch_counted(kernel, launcher)
    return launcher.kernels


def _observed(case: Timed) -> ObservedLaunch:
    request = prepare_request(
        case.kernel, grid=case.grid, block=case.block, args=dict(case.make()), device=DEVICE, shared=case.shared
    )
    observed = replace(observe(request), outputs={})
    observed.compiled(DEVICE)
    return observed


def _sample(launches: Sequence[Timed], most: int) -> list[Timed]:
    """Return at most three launches of a kernel: the middle one, the last one, the first one."""
    return (
        list({launches[n].name: launches[n] for n in (len(launches) // 2, -1, 0)[:most]}.values()) if launches else []
    )


# ------------------------------------------------------------------ evaluation
@contextmanager
def switched(switch: Switch) -> Iterator[None]:
    """Replace the attributes of a switch."""
    before = []
    for name in switch.replaced:
        module, _, path = name.partition(":")
        owner: Any = importlib.import_module(f"simtbed.{module}")
        *outer, attribute = path.split(".")
        for name_of_owner in outer:
            owner = getattr(owner, name_of_owner)
        value, old = switch.value, vars(owner)[attribute]
        if isinstance(old, cached_property):
            value = cached_property(value)
            value.__set_name__(owner, attribute)
        elif isinstance(old, staticmethod | property):
            value = type(old)(value)
        before.append((owner, attribute, old))
        setattr(owner, attribute, value)
    try:
        yield
    finally:
        for owner, attribute, old in reversed(before):
            setattr(owner, attribute, old)


def _cells(folder: Path, kernel: Any, record: Any) -> Iterator[Cell]:
    profiles = {one.source: one for one in record.counters.get(f"validation {kernel.name}", ())}
    if profiles:
        for launched in _stored(folder / f"{kernel.name}.counted", lambda: _counted(kernel)):
            profiled = profiles[launched.digest]
            emulated = emulated_figures(launched, profiled, DEVICE)
            yield from (Cell(kernel.name, one, emulated[one.name], profiled.figures[one.name]) for one in FIGURES)


_FACT = {"warp_instructions": "instructions", "warp_execution_efficiency": "efficiency"}


def evaluate(folder: Path, kernels: Iterable[Any], timed: int, switch: Switch, counts: bool) -> dict[str, Score]:
    """Return the scores by group with a switch. timed: launches of a kernel with a predicted time. counts: whether counters
    are compared."""
    record, times = load_record("kernels/h200"), load_times("h200")["launches"]
    scores = {group: Score(dict.fromkeys(FACTS, 0.0), dict.fromkeys(FACTS, 0)) for group in GROUPS}
    with switched(switch):
        for kernel in kernels:
            score = next(scores[group] for group, numbers in GROUPS.items() if BATCH[kernel.name] in numbers)
            for cell in _cells(folder, kernel, record) if counts else ():
                name = cell.figure.name
                fact = "memory" if name.startswith(("global_", "shared_")) else _FACT.get(name)
                if fact:
                    score.right[fact] += cell.within_tolerance
                    score.count[fact] += 1
            launches = [one for one in kernel.timed() if one.name in times]
            for case in _sample(launches, timed):
                observed = _stored(folder / f"{case.name.replace(' ', '_')}.timed", lambda case=case: _observed(case))
                if switch.replaced and switch.counts:
                    observed.kernels.clear()
                measured = times[case.name]["warm_us"]
                score.right["time"] -= abs(estimate(observed, DEVICE).time_us / measured - 1)
                score.count["time"] += 1
    return scores


def table(rows: Mapping[str, Mapping[str, Score]]) -> Iterator[str]:
    """Yield the lines of a Markdown table: the values of the first row, then the losses of the others in points."""
    whole, *switched_off = rows
    names = [f"{fact} {group}" for fact in FACTS for group in GROUPS]
    yield f"| rule off | {' | '.join(names)} |"
    yield f"|---|{'--:|' * len(names)}"
    values = {
        name: rows[whole][group].percent(fact) for fact in FACTS for group in GROUPS if (name := f"{fact} {group}")
    }
    yield f"| {whole} | {' | '.join(f'{abs(values[name]):.2f} %' for name in names)} |"
    for rule in switched_off:
        losses = [
            f"{values[f'{fact} {group}'] - rows[rule][group].percent(fact):.2f}" if rows[rule][group].count[fact] else ""
            for fact in FACTS for group in GROUPS
        ]  # fmt: skip
        yield f"| {rule} | {' | '.join(losses)} |"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.validation.ablation", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="folder of the stored launches")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take one of N kernels of the batches 1 to 5")
    parser.add_argument("--timed", type=int, default=2, metavar="N", help="predict N launches of each kernel, 0 to 3")
    parser.add_argument(
        "--recompile", action="store_true", help="predict times without each rule of the compiled view, too"
    )
    parser.add_argument("--only", default="*", metavar="PATTERN", help="rules to switch off")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    _store_locks()
    held_out = [one for one in KERNELS if BATCH[one.name] in GROUPS["6 - 8"]]
    kernels = held_out + [one for one in KERNELS if one not in held_out][:: options.every]
    rows = {}
    for switch in [Switch("none", (), None), *(one for one in SWITCHES if fnmatchcase(one.rule, options.only))]:
        try:
            timed = options.timed if not switch.replaced or not switch.counts or options.recompile else 0
            rows[switch.rule] = evaluate(options.folder, kernels, timed, switch, switch.counts)
        except SimtbedError as error:
            print(f"{switch.rule}: {error}", flush=True)
            continue
        lines = list(table({"none": rows["none"], switch.rule: rows[switch.rule]}))
        print("\n".join(lines if len(rows) == 1 else lines[-1:]), flush=True)


if __name__ == "__main__":
    main()
