"""The compiled view of launches: what nvcc made of a kernel, and how often warps and lanes executed each instruction.

The machine code is read, never run: `engines.cuda.sass` disassembles it, `control_flow` finds blocks and loops, and the
executions follow from the decisions that the emulator recorded (`profiler.decisions`). `kernel` is what others use.
"""
