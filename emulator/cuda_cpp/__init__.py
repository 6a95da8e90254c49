"""CUDA C++ as a language of kernels: parsed by libclang without a toolkit, lowered to the IR of every engine."""
