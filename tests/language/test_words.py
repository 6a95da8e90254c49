"""Words of other languages: each has an error message with existing words, as listed in the documentation."""

import ast
import math
import random
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.frontend.reader import specialise
from simtbed.language.intrinsics import INTRINSICS
from simtbed.language.words import SECTIONS, Word, by_name

from tests.table_checks import check_each

PAGE = Path(__file__).parents[2] / "docs/porting.md"
MODULES = (math, np, random, time)  # modules named by the texts


def message_of(line: str) -> str:
    """Return the message for a kernel with this line."""
    kernel = st.kernel(source=f"def k(x: st.Global[st.f32]) -> None:\n    {line}\n")
    with pytest.raises(st.CompileError) as caught:
        specialise(kernel, {})
    assert len(caught.value.diagnostics) == 1
    return str(caught.value)


def check_word(name: str) -> None:
    origin, word = by_name()[name]
    message = message_of(f"value = {name}(x, 1)")
    assert f"{name} is a word of {origin}" in message and f"write {word.ours.replace('`', '')}" in message


def test_every_word_has_an_error_message() -> None:
    check_each(by_name(), check_word)


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("i = threadIdx.y", "write st.thread.y"),
        ("i = cuda.blockDim.z + 1", "write st.block_dim.z"),
        ("i = threadIdx + 1", "write st.thread.x"),
        ("i = st.threadIdx.x", "write st.thread.x"),
        ("st.syncthreads()", "write st.sync()"),
        ("st.__syncthreads()", "write st.sync()"),
        ("st.atomicAdd(x, 0, 1.0)", "write st.atomic_add(x, i, v)"),
        ("st.atomic_cas(x, 0, 1.0, 2.0)", "write st.compare_swap(x, i, old, v)"),
        ("i = st.block_idx.x", "write st.block.x"),
        ("i = st.sync_threads()", "write st.sync()"),
        ("i = st.pass_(1)", "docs/language.md lists every word"),
        ("st.shuffel_up(x[0], 1)", "do you mean st.shuffle_up?"),
        ("x[0] = st.max(x[0], 1.0)", "write max(...), which is Python's own"),
        ("x[0] = st.clamp(x[0], 0.0, 1.0)", "write min(max(x, low), high)"),
        ("x[0] = xx", "do you mean x?"),
        ("x[0] = sqrt(x[0])", "do you mean st.sqrt?"),
        ("x[0] = np.exp(x[0])", "write st.exp(x)"),
        ("b = uint8_t(x[0])", "wraps at 8 bits where C promotes to int: cast first, st.i32(x)"),
    ],
)
def test_forms_of_words(line: str, advice: str) -> None:
    assert advice in message_of(line)


def exists(text: str) -> bool:
    """Return whether a name such as st.thread.x exists."""
    actual: Any = st
    for name in text.split(".")[1:]:
        if not hasattr(type(actual), "__annotations__") or name not in type(actual).__annotations__:
            actual = getattr(actual, name, None)
    return actual is not None


def words() -> list[Word]:
    return [word for section in SECTIONS.values() for word in section]


def test_what_is_advised_exists() -> None:
    named = {name for word in words() for name in re.findall(r"\bst(?:\.[a-z_A-Z]\w*)+", word.ours)}
    assert sorted(name for name in named if not exists(name)) == [] and len(named) > 50


def test_no_word_is_listed_twice_in_a_section() -> None:
    for section in SECTIONS.values():
        spellings = [text for word in section for text in word.theirs]
        assert sorted(t for t in set(spellings) if spellings.count(t) > 1) == []


def test_every_word_of_the_language_is_advised() -> None:
    advised = {name for word in words() for name in re.findall(r"\bst\.(\w+)", word.ours)}
    assert sorted(word.name for word in INTRINSICS.values() if word.name not in advised) == []


def is_code(text: str) -> bool:
    """Return whether a text is Python rather than a sentence."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def page() -> str:
    """docs/porting.md."""
    lines = [
        "# Porting from CUDA C++ and Numba",
        "",
        "Equivalents of other languages' names. For a name of the left column, the compiler's error names the equivalent.",
        "A lane mask is the last parameter. Its default is all lanes.",
    ]
    for origin, section in SECTIONS.items():
        lines += ["", f"## {origin}", "", f"| {origin} | simtbed |", "|---|---|"]
        for word in section:
            lines.append(
                f"| {', '.join(f'`{t}`' for t in word.theirs)} | {f'`{word.ours}`' if is_code(word.ours) else word.ours} |"
            )
    return "\n".join(lines) + "\n"


def test_the_page_lists_them(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        PAGE.write_text(page(), encoding="utf-8")
    assert page() == PAGE.read_text(encoding="utf-8"), "docs/porting.md differs; --update-golden writes it"
