"""CUDA C++ without a counterpart is refused with its line, and never runs."""

import pytest
import simtbed as st
from simtbed.cuda_cpp import clang

from tests.pages import ROOT
from tests.texts import texts

TEXTS = texts("cuda_cpp/refusals.cu")
REFUSALS = {
    "unknown PTX": "the inline assembly 'madeup.s32",
    "allocations in kernels": "an allocation of memory in a kernel is not supported",
    "function pointers that are not known": "a call through a pointer is not supported",
    "addresses of variables in global memory": "an address of a variable in global memory is not supported",
    "recursion other than tail calls": "recursion is not supported",
    "a large struct by value": "hold 3001 numbers, at most 900 are supported: pass an array by a pointer",
    "stores to constant memory": "kernels only read it",
    "functions without a body": "the function unknown is not supported",
    "textures that are chosen at run time": "a texture that is chosen at run time",
    "cube maps and gathers of textures": "use of undeclared identifier 'tex2Dgather'",
    "launches of kernels": "launches of kernels in kernels are not supported",
    "reads of unassigned variables": "sum is read before it is assigned",
    "irreducible jumps": "irreducible control flow",
}
"""A part of the message for each text, at its line with `// here`."""


@pytest.mark.parametrize("name", REFUSALS)
def test_the_line_is_named(name: str) -> None:
    text, message = TEXTS[name], REFUSALS[name]
    line = next(n for n, one in enumerate(text.splitlines(), 1) if "// here" in one)
    source = st.cuda_source(text)
    with pytest.raises(st.CompileError) as refused:
        source[list(source)[-1]].signature()
    first = refused.value.diagnostics[0]
    assert message in first.message
    assert first.span.line - source.source.offset == line


def test_the_page_lists_them() -> None:
    page = (ROOT / "docs/cuda-kernels.md").read_text(encoding="utf-8")
    assert f"Refused, with the line: {', '.join(sorted(REFUSALS, key=str.lower))}.\n" in page


def test_another_compiler_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    clang.compiler.cache_clear()
    monkeypatch.setattr(clang, "ZIGLANG", "0.99.")
    with pytest.raises(st.UnavailableError, match=r"ziglang 0\.99\.\* is required, this is 0"):
        clang.compiler()
    monkeypatch.setattr(clang, "find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(st.UnavailableError, match="compiled by clang, which is not installed"):
        clang.compiler()


TEMPLATE = "template <typename T> __global__ void scale(T *x) { x[0] = 2; }"


@pytest.mark.parametrize(
    ("text", "instances", "name", "reason"),
    [
        (TEMPLATE, (), "scale", "scale is a template: name its instances"),
        (
            TEMPLATE,
            ("scale<half_size>",),
            "scale<half_size>",
            "instance scale<half_size>: use of undeclared identifier",
        ),
        ("void f() { }", (), "f", "the text has no kernel f; it has none"),
    ],
)
def test_kernels_that_are_not_there_are_named(text: str, instances: tuple[str, ...], name: str, reason: str) -> None:
    with pytest.raises(st.SimtbedError, match=reason):
        st.cuda_source(text, instances=instances)[name]


def test_a_text_is_a_str() -> None:
    with pytest.raises(st.LaunchError, match="text is CUDA C\\+\\+ as a str, not 5"):
        st.cuda_source(5)  # type: ignore[arg-type]
