"""Numba-CUDA programs on an emulator: Numba compiles the kernels to LLVM IR, `simtbed.llvmir` translates them, and Numba's own host
code runs over `simtbed.driver`. The other packages contain none of Numba's names."""
