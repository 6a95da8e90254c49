"""LLVM IR and machine code for the LLVM engine and for native functions."""
