"""A kernel of Triton for its signature, as simtbed launches it."""

from __future__ import annotations

from ..numba.kernel import NumbaKernel

WORDS = {
    "st.sync()": "tl.debug_barrier()",
}
"""The language's words in findings, in Triton's words."""


class TritonKernel(NumbaKernel):
    """A kernel that Triton compiled for a device."""

    words = WORDS

    def __repr__(self) -> str:
        return f"<TritonKernel {self.__name__}>"
