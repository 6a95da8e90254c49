"""Triton programs on an emulator: Triton compiles the kernels to LLVM IR, `simtbed.llvmir` translates them, tensors are those of PyTorch
on the host."""
