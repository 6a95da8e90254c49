"""Host interfaces of GPU programs over host memory: the CUDA runtime of whole CUDA C++ programs."""
