"""The compiled view of launches: nvcc's SASS of a kernel, with executions of each instruction by warps and lanes.

The machine code is read, not run. `engines.cuda.sass` disassembles it, `control_flow` finds blocks and loops, and the
executions are inferred from the emulator's recorded decisions (`profiler.decisions`). `kernel` is the entry point.
"""
