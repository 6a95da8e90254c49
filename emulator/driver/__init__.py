"""The CUDA driver over host memory: allocations, copies, streams, events and contexts of one emulated device."""
