"""Functional emulator of sm_90 SASS: one table of opcodes, machine state, divergence, memory.

`execution.execute` runs a launch and counts executions and memory transactions by address. An opcode or a modifier
without a row in the table raises `UnsupportedInstruction`.
"""
