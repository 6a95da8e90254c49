"""A corpus of kernels outside the language: every message has position, caret, sentence and hint."""

import math  # noqa: F401  (the kernels use these names)
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Diagnostic, Global, Shared, f32, f64, float4, i32, i64, u8, u32  # noqa: F401
from simtbed.frontend.reader import specialise
from simtbed.runtime.prepared import prepare

from tests.table_checks import check_each

HEAD = """
def k(x: Global[f32], v4: Global[float4], bytes_: Global[u8], n: i32, wide: i64, word: u32, d: f64, flag: bool) -> None:
"""
LIST = [1, 2, 3]
TABLE = np.arange(4)
SETTINGS = {"a": 1}


@dataclass
class Mutable:
    """Fields that may change."""

    scale: float = 1.0


@dataclass(frozen=True)
class Frozen:
    """Constants."""

    scale: float = 1.0


MUTABLE, FROZEN = Mutable(), Frozen()


def plain_function(x: int) -> int:
    """A function of the host."""
    return x


@st.device
def bare(x):  # type: ignore[no-untyped-def]
    return x


@st.device
def no_result(x: i32):  # type: ignore[no-untyped-def]
    return x


@st.device
def misses_a_return(x: i32) -> i32:  # type: ignore[return]
    if x > 0:
        return 1


@st.device
def calls_itself(x: i32) -> i32:
    return calls_itself(x)


@st.device
def other_result(x: i32) -> f32:
    return x


@st.device
def halved(x: f32) -> f32:
    return x / 2


@st.device
def times(x: i32, N: Const) -> i32:
    return x * N  # type: ignore[no-any-return]


@st.device
def first(row: Shared[f32]) -> f32:
    return row[0]


@st.device
def has_dynamic_shared(n: i32) -> f32:
    inner = st.dynamic_shared(f32, n)
    return inner[0]


def corpus() -> dict[str, str]:
    """Return the kernels by their error."""
    text = (Path(__file__).parent / "wrong_kernels.txt").read_text(encoding="utf-8")
    sections = (section.partition("\n") for section in text.split("### ")[1:])
    return {
        name: body if body.startswith("def ") else HEAD + textwrap.indent(body, "    ") for name, _, body in sections
    }


CORPUS = corpus()


def actual(source: str) -> list[Diagnostic]:
    """Return the diagnostics of a kernel."""
    with pytest.raises(st.CompileError) as caught:
        prepare(specialise(st.kernel(source=source), {}).program)
    return list(caught.value.diagnostics)


def test_the_corpus_is_large() -> None:
    assert len(CORPUS) >= 120


INTERNAL = re.compile(
    r"\b(ir|ast|Host|Literal|Tuple|ArrayValue|Choice|Scalar|Array|Reg|Const|NoneType|TypeError|ValueError)\b\(|<class|"
    r"<[\w.]+ object|object at 0x|Traceback|\bself\b|\bNone\b\("
)


@pytest.fixture(scope="module")
def diagnostics() -> dict[str, list[Diagnostic]]:
    """Return the diagnostics of each kernel of the corpus, by its name."""
    return {name: actual(source) for name, source in CORPUS.items()}


def check_form(diagnostics: list[Diagnostic]) -> None:
    for diagnostic in diagnostics:
        text = str(diagnostic)
        assert re.match(r"(<kernel \w+>|[\w/.]+\.py):\d+:\d+: \S", text) and "^" in text
        assert diagnostic.notes, f"what to write instead is not said: {text}"
        for line in (diagnostic.message, *diagnostic.notes):
            assert (
                not INTERNAL.search(line) and not re.search(r"[^.]\.$", line) and "\n" not in line and len(line) < 160
            )


@pytest.mark.slow
def test_every_message_has_a_place_a_caret_and_a_note(diagnostics: dict[str, list[Diagnostic]]) -> None:
    check_each(CORPUS, lambda name: check_form(diagnostics[name]))


def test_the_messages(diagnostics: dict[str, list[Diagnostic]], golden: Callable[[str, str], None]) -> None:
    messages = [f"### {name}\n" + "\n".join(map(str, reported)) for name, reported in diagnostics.items()]
    golden("wrong_kernels.txt", re.sub(r"<kernel \w+>", "<kernel>", "\n\n".join(messages)) + "\n")


def test_all_mistakes_of_a_kernel_are_reported_once(diagnostics: dict[str, list[Diagnostic]]) -> None:
    lines = [diagnostic.span.line for diagnostic in diagnostics["ten mistakes"]]
    assert len(lines) == 10 and lines == sorted(set(lines))
    assert len(diagnostics["a mistake that others follow from"]) == 1
