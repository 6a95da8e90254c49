"""Programs of `numba_cuda_mlir` on an emulator: its MLIR becomes LLVM IR, which `simtbed.llvmir` translates."""
