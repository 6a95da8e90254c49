"""Local arrays that no compiler keeps in registers, compared with nvcc's local memory."""

import simtbed as st
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.printer import cuda_source
from simtbed.passes.run_time_indices import arrays_indexed_at_run_time

from tests.compilers import needs_nvcc
from tests.validation.kernels import rows, searches, sorts


@needs_nvcc
def test_an_array_with_an_index_of_the_data_is_in_local_memory() -> None:
    local_bytes = {}
    for module in (rows, searches, sorts):
        for kernel in module.KERNELS:
            timed = kernel.small
            how = {"grid": timed.grid, "block": timed.block, "args": timed.make(), "shared": timed.shared}
            request = st.launch(timed.kernel, **how).request
            if arrays_indexed_at_run_time(request.prepared.program.kernel):
                source = cuda_source(request.program, request.block)
                local_bytes[kernel.name] = nvcc.build(source.with_lines(), source.kernel, "sm_90").resources.local_bytes
    assert local_bytes.keys() >= {"n_queens", "heap_largest"}
    assert "hampel_filter" not in local_bytes and all(local_bytes.values()), local_bytes
