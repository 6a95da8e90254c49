"""Stand-ins for PyCUDA and CuPy: a script's CUDA C++ kernels run on an emulator. Memory and arrays are the host's."""
