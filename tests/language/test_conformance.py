"""Both emulators pass the conformance suite, and the suite fails an engine that is wrong."""

from dataclasses import dataclass, replace

import pytest
from simtbed.engines.numpy.engine import NumpyEngine
from simtbed.runtime.engine import Outcome, Request
from simtbed.testing.conformance import Case, cases


@pytest.mark.parametrize("case", cases("jit", emulates=True), ids=str)
def test_jit(case: Case) -> None:
    case.run()


@pytest.mark.parametrize(
    "case", [case for case in cases("numpy", emulates=True) if not case.name.startswith("feature")], ids=str
)
def test_numpy(case: Case) -> None:
    """The cases of features compare an emulator with the numpy engine; test_jit runs them."""
    case.run()


@dataclass
class Spoilt:
    """The numpy engine, but for one mistake."""

    mistake: str
    name = "spoilt"

    def run(self, request: Request) -> Outcome:
        outcome = NumpyEngine().run(replace(request, trace=None) if self.mistake == "trace" else request)
        match self.mistake:
            case "outputs":
                for name, values in outcome.buffers.items():
                    outcome.buffers[name] = -values - 1 if values.dtype.kind == "f" else ~values
            case "counts" if outcome.counts is not None:
                outcome.counts[0, 0] += 1
            case "samples" if outcome.samples is not None:
                outcome.samples.accesses.clear()
            case "faults":
                outcome.faults = []
        return outcome


def failing(mistake: str, *, emulates: bool = True) -> set[str]:
    """The kinds of cases that find a mistake."""
    actual = set()
    for case in cases(Spoilt(mistake), emulates=emulates):
        if case.name in {"feature linear_index", "operations i32-2", "domains i32-2", "device arrays"}:
            try:
                case.run()
            except AssertionError:
                actual.add(case.name.split()[0])
    return actual


def test_each_kind_of_mistake_fails_its_cases() -> None:
    assert failing("none") == failing("counts", emulates=False) == set()
    assert failing("outputs") == {"feature", "operations", "device"}
    assert failing("counts") == failing("samples") == failing("trace") == {"feature"}
    assert failing("faults") == {"domains"}
