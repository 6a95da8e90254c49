"""LLVM text and machine code: what the engine of compiled kernels and native functions print with."""
