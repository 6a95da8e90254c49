"""Paths of NVIDIA's compiler and disassembler, found by simtbed's own search; some tests need them."""

import pytest
from simtbed.engines.cuda.nvcc import find_tool

HAS_NVCC = find_tool("nvcc") is not None
NO_NVCC = "nvcc is not installed: pip install '.[nvcc]'"
needs_nvcc = pytest.mark.skipif(not HAS_NVCC, reason=NO_NVCC)
needs_sass = pytest.mark.skipif(
    not (HAS_NVCC and find_tool("nvdisasm")), reason="nvcc or nvdisasm is not installed: pip install '.[nvcc,sass]'"
)
