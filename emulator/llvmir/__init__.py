"""LLVM IR of CUDA kernels as a front end: text to a `Program`."""
