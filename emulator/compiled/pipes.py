"""Execution pipes of SASS instructions, as Nsight Compute counts them on an H200 (inst_executed_pipe_*)."""

import re

from ..engines.cuda.sass import Instruction

_OPCODES = {
    "alu": """
        FMNMX FSEL FSET FSETP I2FP IABS IADD3 ISETP LEA LOP3 MOV P2R PLOP3 PRMT R2UR SEL SHF VIADDMNMX VIMNMX VIMNMX3 VOTE CS2R
    """,
    "fma": "FADD FFMA FMUL HADD2 HFMA2 HMUL2 IMAD VIADD",
    "fp64": "DADD DFMA DMUL DSETP",
    "xu": "F2F F2I FCHK FLO I2F MUFU POPC",
    "lsu": "ATOM ATOMG ATOMS CCTL LD LDG LDGDEPBAR LDGSTS LDL LDS LDSM MEMBAR REDG SHFL ST STG STL STS STSM",
    "adu": "B2R BAR ERRBAR LDC MATCH QSPC REDUX RET S2UR WARPSYNC",
    "cbu": "BREAK BSSY BSYNC CALL EXIT RET WARPSYNC YIELD",
    "uniform": "UFLO UIADD3 UIMAD UISETP ULEA ULOP3 UPOPC UPRMT USEL USHF",
}
PIPES = tuple(_OPCODES)
"""alu: integers and comparisons. fma: f32 and integer products. fp64. xu: conversions and special functions. lsu:
memory and shuffles. adu: barriers and constants. cbu: convergence and exits. uniform: once per warp."""
TENSOR = "tensor"
"""The pipe of matrix products. The records of GPUs have no count of it."""
_PRODUCTS = ("HMMA", "IMMA", "DMMA", "HGMMA", "QGMMA", "IGMMA")

_PIPES_OF: dict[str, tuple[str, ...]] = {
    opcode: tuple(pipe for pipe in PIPES if opcode in _OPCODES[pipe].split())
    for opcode in " ".join(_OPCODES.values()).split()
}


def pipes_of(instruction: Instruction) -> tuple[str, ...]:
    """Return the pipes of an instruction: two for RET and WARPSYNC; none for branches, moves of uniform registers and
    unmeasured opcodes."""
    if instruction.opcode == "S2R":
        return ("adu",) if re.search(r"SR_\w*ctaid", instruction.text, re.IGNORECASE) else ("lsu",)
    if instruction.operation == "WARPSYNC.ALL":
        return ("cbu",)
    if instruction.operation.startswith("HFMA2.MMA"):  # a constant; executed by the tensor pipe
        return ()
    if instruction.opcode in _PRODUCTS:
        return (TENSOR,)
    return _PIPES_OF.get(instruction.opcode, ())
