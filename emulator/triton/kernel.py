"""A kernel of Triton for its signature, as simtbed launches it."""

from ..llvmir import ptx_words
from ..numba.kernel import NumbaKernel

_RELEASE = 'tl.debug_barrier() and tl.atomic_xchg(flag, 1, sem="release")'
WORDS = {
    **ptx_words.WORDS,
    "st.sync()": "tl.debug_barrier()",
    "st.syncwarp()": "tl.debug_barrier()",
    ", or name the lanes that take it: st.syncwarp(mask) with mask = st.ballot(condition) before it": "",
    "st.ballot(condition)": "the lanes that take the branch",
    "st.cluster_sync()": "a barrier of the cluster",
    "st.grid_sync()": "a barrier of the grid",
    "st.fence()": "a fence",
    "st.fence_block()": "a fence of the program",
    "st.volatile_load()": "tl.load(..., volatile=True)",
    "st.volatile_store()": "tl.atomic_xchg(...)",
    "st.async_wait(0)": "cp.async.wait_all",
    "block (": "program (",
    "an earlier block": "an earlier program",
    "no barrier orders blocks": "no barrier orders programs",
    "write the results to another array than the one read": "use tl.atomic_add, or write to another tensor than the one read",
    "st.fence() and an atomic flag": _RELEASE,
    "; or release it: st.fence() before the atomic operation": f"; or release it: {_RELEASE}",
    **{f'st.{fence}() after it, or order="acquire"': 'sem="acquire"' for fence in ("fence", "fence_block")},
    "give each thread an element of its own": "give each program an element of its own",
    "write st.async_wait(...) before it, and st.sync() after that for the copies of other threads": "num_stages=1 has no such copy",
    **{
        f"global {access} out of bounds:": f"the mask does not cover {article} {access} out of bounds:"
        for access, article in (("read", "a"), ("write", "a"), ("atomic", "an"))
    },
}
"""The language's words in findings, in Triton's words."""


class TritonKernel(NumbaKernel):
    """A kernel that Triton compiled for a device."""

    tolerated = NumbaKernel.tolerated | {"benign race"}  # threads with equal values of a tensor write them
    words = WORDS

    def __repr__(self) -> str:
        return f"<TritonKernel {self.__name__}>"
