"""CUDA C++ as a language of kernels: clang compiles a text to LLVM IR without a toolkit, `llvmir` translates it to the IR."""
