"""Conformance of the opcode table: each row with operands and the results of the hardware's definition."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from simtbed import devices
from simtbed.sass.batch import Batch
from simtbed.sass.counts import Counts
from simtbed.sass.execution import ROWS, Program, rows_of
from simtbed.sass.groups import FINISHED
from simtbed.sass.operands import UnsupportedInstruction, decode
from simtbed.sass.rows import bind
from simtbed.sass.state import GlobalMemory, State

from tests.sass.programs import instruction, instructions, run
from tests.table_checks import check_each

CASES = """
IADD3 R0, R1, R2, R3 | R1=1 R2=2 R3=0xffffffff | R0=2
IADD3 R0, P0, P1, R1, R2, R3 | R1=0xffffffff R2=0xffffffff R3=2 | R0=0 P0=1 P1=1
IADD3 R0, P0, R1, -R2, RZ | R1=5 R2=0 | R0=5 P0=1
IADD3 R0, P0, R1, -R2, RZ | R1=5 R2=6 | R0=0xffffffff P0=0
IADD3 R0, P0, R1, ~R2, RZ | R1=5 R2=6 | R0=0xfffffffe P0=0
IADD3.X R0, R1, R2, RZ, P2, !PT | R1=1 R2=2 P2=1 | R0=4
UIADD3 UR0, UR1, 0x7, URZ | UR1=3 | UR0=10
VIADD R0, R1, -0x1 | R1=0 | R0=0xffffffff
IMAD R0, R1, R2, R3 | R1=0x10000 R2=0x10001 R3=7 | R0=0x10007
IMAD.MOV.U32 R0, RZ, RZ, -R1 | R1=1 | R0=0xffffffff
IMAD.X R0, RZ, RZ, R1, P2 | R1=4 P2=1 | R0=5
IMAD.WIDE R0, R2, R3, R4 | R2=0xffffffff R3=3 R4=1 R5=0 | R0=0xfffffffe R1=0xffffffff
IMAD.WIDE.U32 R0, P0, R2, R3, R4 | R2=0xffffffff R3=2 R4=3 R5=0xffffffff | R0=1 R1=1 P0=1
IMAD.WIDE.U32.X R0, R2, R3, R4, P2 | R2=2 R3=3 R4=0 R5=1 P2=1 | R0=7 R1=1
IMAD.HI R0, R2, R3, R4 | R2=0xffffffff R3=2 R4=2 R5=0 | R0=0
IMAD.HI.U32 R0, R2, R3, R4 | R2=0xffffffff R3=2 R4=2 R5=1 | R0=3
LEA R0, P0, R1, R2, 0x2 | R1=0x40000001 R2=0xffffffff | R0=3 P0=1
LEA R0, -R1, R2, 0x2 | R1=1 R2=10 | R0=6
LEA.HI R0, R1, R2, RZ, 0x1 | R1=0x80000000 R2=5 | R0=6
LEA.HI R0, R1, R2, R3, 0x1f | R1=0x80000002 R2=5 R3=1 | R0=0xc0000006
LEA.HI.X R0, R1, R2, R3, 0x2, P2 | R1=0xc0000000 R2=5 R3=1 P2=1 | R0=13
LEA.HI.X.SX32 R0, R1, R2, 0x1, P2 | R1=0x80000000 R2=5 P2=1 | R0=5
LEA.HI.SX32 R0, R1, R2, 0x1 | R1=0x7fffffff R2=5 | R0=5
IABS R0, R1 | R1=0xfffffff6 | R0=10
IDP.4A.S8.S8 R0, R1, R2, R3 | R1=0xff020304 R2=0x02030405 R3=100 | R0=136
LOP3.LUT R0, R1, R2, R3, 0xe8, !PT | R1=0b1100 R2=0b1010 R3=0b1001 | R0=0b1000
LOP3.LUT R0, R1, R2, RZ, 0x30, !PT | R1=0b1100 R2=0b1010 | R0=0b0100
LOP3.LUT R0, R1, R2, RZ, 0xc0, !PT | R1=0b1100 R2=0b1010 | R0=0b1000
LOP3.LUT R0, R1, R2, RZ, 0xfc, !PT | R1=0b1100 R2=0b1010 | R0=0b1110
LOP3.LUT P0, RZ, R1, R2, RZ, 0x3c, !PT | R1=5 R2=5 | P0=0
LOP3.LUT P0, R0, R1, R2, RZ, 0x3c, P2 | R1=5 R2=5 P2=1 | R0=0 P0=1
LOP3.LUT.PAND P0, RZ, R1, R2, RZ, 0x3c, P2 | R1=5 R2=4 P2=0 | P0=0
PLOP3.LUT P0, P1, P2, P3, PT, 0x80, 0x08 | P2=1 P3=1 | P0=1 P1=0
PLOP3.LUT P0, PT, P2, !P3, PT, 0xa8, 0x0 | P2=0 P3=0 | P0=1
SHF.L.U32 R0, R1, R2, RZ | R1=3 R2=32 | R0=0
SHF.L.W.U32 R0, R1, R2, RZ | R1=3 R2=33 | R0=6
SHF.L.W.U32.HI R0, R1, 0x8, R2 | R1=0x12345678 R2=0x9abcdef0 | R0=0xbcdef012
SHF.L.U64.HI R0, R1, 0x20, R2 | R1=7 R2=9 | R0=7
SHF.L.U32.HI R0, R1, 0x4, R2 | R1=0xf0000000 R2=1 | R0=0x1f
SHF.R.U32.HI R0, RZ, R1, R2 | R1=4 R2=0x80000000 | R0=0x08000000
SHF.R.S32.HI R0, RZ, 0x4, R2 | R2=0x80000000 | R0=0xf8000000
SHF.R.S32.HI R0, RZ, R1, R2 | R1=40 R2=0x80000000 | R0=0xffffffff
SHF.R.U64 R0, R1, R2, R3 | R1=1 R2=36 R3=0x50 | R0=5
SHF.R.U64 R0, R1, R2, R3 | R1=1 R2=64 R3=0x50 | R0=0
SHF.R.S64 R0, R1, R2, R3 | R1=1 R2=36 R3=0x80000000 | R0=0xf8000000
SHF.R.W.U32 R0, R1, 0x8, R2 | R1=0x12345678 R2=0x9abcdef0 | R0=0xf0123456
SHF.R.U32 R0, R1, 0x4, RZ | R1=0x12345678 | R0=0x01234567
PRMT R0, R1, 0x7410, R2 | R1=0x44332211 R2=0x88776655 | R0=0x88552211
PRMT R0, R1, 0x8bb9, RZ | R1=0x80332211 | R0=0x00ffff00
POPC R0, R1 | R1=0xf0f | R0=8
FLO.U32 R0, R1 | R1=0xfffffff | R0=27
FLO.U32 R0, R1 | R1=0 | R0=0xffffffff
FLO.U32.SH R0, R1 | R1=1 | R0=31
BREV R0, R1 | R1=0x1 | R0=0x80000000
BREV R0, R1 | R1=0x0000cafe | R0=0x7f530000
ISETP.LT.AND P0, P1, R1, R2, P2 | R1=0xffffffff R2=0 P2=1 | P0=1 P1=0
ISETP.LT.U32.AND P0, PT, R1, R2, PT | R1=0xffffffff R2=0 | P0=0
ISETP.GE.OR P0, P1, R1, 0x5, P2 | R1=4 P2=1 | P0=1 P1=1
ISETP.NE.XOR P0, PT, R1, RZ, P2 | R1=4 P2=1 | P0=0
ISETP.GT.AND.EX P0, PT, R1, R2, PT, P2 | R1=7 R2=7 P2=1 | P0=1
ISETP.GE.AND.EX P0, PT, R1, R2, PT, P2 | R1=7 R2=7 P2=0 | P0=0
ISETP.LT.U32.AND.EX P0, PT, R1, R2, PT, P2 | R1=6 R2=7 P2=0 | P0=1
ISETP.EQ.AND.EX P0, PT, R1, R2, PT, P2 | R1=7 R2=7 P2=0 | P0=0
ISETP.NE.AND.EX P0, PT, R1, R2, PT, P2 | R1=7 R2=7 P2=1 | P0=1
ISETP.EQ.AND P0, PT, R1, R2, PT | R1=7 R2=7 | P0=1
ISETP.GT.AND P0, PT, R1, R2, PT | R1=7 R2=7 | P0=0
ISETP.LE.AND P0, PT, R1, R2, PT | R1=7 R2=7 | P0=1
VIMNMX R0, R1, R2, PT | R1=0xffffffff R2=1 | R0=0xffffffff
VIMNMX R0, R1, R2, !PT | R1=0xffffffff R2=1 | R0=1
VIMNMX.U32 R0, R1, R2, PT | R1=0xffffffff R2=1 | R0=1
IMNMX R0, R1, R2, !PT | R1=0xffffffff R2=1 | R0=1
VIMNMX3 R0, R1, R2, R3, !PT | R1=1 R2=5 R3=3 | R0=5
VIMNMX3.RELU R0, R1, R2, R3, PT, PT | R1=1 R2=0xfffffff0 R3=3 | R0=0
VIADDMNMX R0, R1, R2, R3, PT | R1=1 R2=5 R3=3 | R0=3
VIADDMNMX.RELU R0, R1, R2, R3, !PT | R1=0xfffffff0 R2=5 R3=0xffffffff | R0=0
SEL R0, R1, R2, P2 | R1=1 R2=2 P2=0 | R0=2
MOV R0, 0x2a | | R0=42
MOV R0, 1.5 | | R0=0x3fc00000
UMOV UR0, UR1 | UR1=9 | UR0=9
P2R R0, PR, R1, 0x3 | P0=1 P1=0 P2=1 R1=0x30 | R0=0x31
UP2UR UR0, UPR, URZ, 0x1 | UP0=1 | UR0=1
R2P PR, R1, 0x3 | R1=0x6 P2=0 | P0=0 P1=1 P2=0
R2P.B1 PR, R1, 0x3 | R1=0x600 | P0=0 P1=1
FADD R0, R1, -R2 | R1=f1 R2=f3 | R0=f-2
FADD R0, R1, 0.5 | R1=f1 | R0=f1.5
FADD.FTZ R0, R1, -RZ | R1=1 | R0=0
FADD.SAT R0, RZ, R1 | R1=f3 | R0=f1
FADD.SAT R0, RZ, R1 | R1=0x7fc00000 | R0=0
FADD R0, R1, R2 | R1=0x7f800000 R2=0xff800000 | R0=0x7fffffff
FMUL R0, |R1|, R2 | R1=f-2 R2=f3 | R0=f6
FMUL.RZ R0, R1, R2 | R1=0x3f7fffff R2=0x3f7fffff | R0=0x3f7ffffe
FMUL.RP R0, R1, R2 | R1=0x3f7fffff R2=0x3f7fffff | R0=0x3f7fffff
FFMA R0, R1, R2, R3 | R1=0x3f800001 R2=0x3f800001 R3=f-1 | R0=0x34800000
FFMA.RM R0, R1, R2, R3 | R1=f1 R2=f1 R3=0x2f000000 | R0=f1
FFMA.RP R0, R1, R2, R3 | R1=f1 R2=f1 R3=0x2f000000 | R0=0x3f800001
FFMA.RZ R0, R1, R2, R3 | R1=f-1 R2=f1 R3=0x2f000000 | R0=0xbf7fffff
FFMA.SAT R0, R1, R2, R3 | R1=f3 R2=f3 R3=f1 | R0=f1
FMNMX R0, R1, R2, PT | R1=0x80000000 R2=0 | R0=0x80000000
FMNMX R0, R1, R2, !PT | R1=0x7fc00000 R2=f2 | R0=f2
FSEL R0, R1, -R2, P2 | R1=f1 R2=f2 P2=0 | R0=f-2
FSETP.GT.AND P0, P1, R1, R2, PT | R1=f2 R2=f1 | P0=1 P1=0
FSETP.GTU.AND P0, PT, R1, R2, PT | R1=0x7fc00000 R2=f1 | P0=1
FSETP.GT.AND P0, PT, R1, R2, PT | R1=0x7fc00000 R2=f1 | P0=0
FSETP.NEU.AND P0, PT, |R1|, +INF, PT | R1=0xff800000 | P0=0
FSETP.NEU.FTZ.AND P0, PT, R1, RZ, PT | R1=1 | P0=0
FSETP.NAN.AND P0, PT, R1, R1, PT | R1=0x7fc00000 | P0=1
FSETP.NUM.AND P0, PT, R1, R1, PT | R1=0x7fc00000 | P0=0
FSETP.LE.OR P0, PT, R1, R2, P2 | R1=f2 R2=f1 P2=0 | P0=0
FCHK P0, R1, R2 | R1=f1 R2=f3 | P0=0
FCHK P0, R1, R2 | R1=f1 R2=1 | P0=1
FCHK P0, R1, R2 | R1=f1 R2=0x7f000000 | P0=1
FCHK P0, R1, R2 | R1=0x7f800000 R2=f1 | P0=1
FCHK P0, R1, R2 | R1=0x0c000000 R2=f1 | P0=1
DADD R0, R2, -R4 | R2=d1 R4=d3 | R0=d-2
DADD.RP R0, R2, R4 | R2=d1 R4=0x0000000000000001 | R0=0x3ff0000000000001
DMUL R0, R2, 0.5 | R2=d3 | R0=d1.5
DMUL.RP R0, R2, R4 | R2=0x3fefffffffffffff R4=0x3fefffffffffffff | R0=0x3fefffffffffffff
DFMA R0, R2, R4, R6 | R2=0x3ff0000000000001 R4=0x3ff0000000000001 R6=d-1 | R0=0x3cc0000000000000
DMUL.RP R0, R2, R4 | R2=0x3d20000000000000 R4=0x01e0000000000001 | R0=0x0000001000000001
DFMA.RM R0, R2, R4, R6 | R2=d1 R4=d1 R6=0xbb00000000000000 | R0=0x3fefffffffffffff
DFMA.RP R0, R2, R4, R6 | R2=d1 R4=d1 R6=0x3b00000000000000 | R0=0x3ff0000000000001
DFMA.RZ R0, R2, R4, R6 | R2=d1 R4=d1 R6=0x3b00000000000000 | R0=d1
DSETP.GEU.AND P0, PT, R2, R4, PT | R2=d1 R4=d3 | P0=0
DSETP.MAX.AND P0, P1, R2, R4, PT | R2=d3 R4=d1 | P0=1 P1=0
DSETP.MAX.AND P0, P1, R2, R4, PT | R2=0x7ff8000000000000 R4=0x7ff8000000000000 | P0=0 P1=1
DSETP.MIN.AND P0, P1, R2, R4, PT | R2=d3 R4=0x7ff8000000000000 | P0=1 P1=0
DSETP.MIN.AND P0, P1, R2, R4, PT | R2=0x8000000000000000 R4=0x0 | P0=1 P1=0
DSETP.MAX.AND P0, P1, R2, R4, PT | R2=0x0 R4=0x8000000000000000 | P0=1 P1=0
MUFU.RCP R0, R1 | R1=f3 | R0=0x3eaaaaab
MUFU.RSQ R0, R1 | R1=f2 | R0=0x3f3504f2
MUFU.SQRT R0, R1 | R1=f2 | R0=0x3fb504f3
MUFU.EX2 R0, R1 | R1=f1 | R0=f2
MUFU.LG2 R0, R1 | R1=f2 | R0=f1
MUFU.SIN R0, R1 | R1=0 | R0=0
MUFU.COS R0, R1 | R1=0 | R0=f1
MUFU.TANH R0, R1 | R1=0x7f800000 | R0=f1
MUFU.RCP64H R0, R1 | R1=0x40000000 | R0=0x3fe00000
MUFU.RSQ64H R0, R1 | R1=0x40100000 | R0=0x3fe00000
I2F.F64 R0, R2 | R2=0xffffffff | R0=d-1
I2F.F64.U32 R0, R2 | R2=0xffffffff | R0=0x41efffffffe00000
I2F.F64.S64 R0, R2 | R2=0xffffffff R3=0xffffffff | R0=d-1
I2F.F64.U64 R0, R2 | R2=0 R3=0x80000000 | R0=0x43e0000000000000
I2F.RP R0, R1 | R1=0x1000001 | R0=0x4b800001
I2F.U32.RP R0, R1 | R1=0xffffffff | R0=0x4f800000
I2F.RM R0, R1 | R1=0x1000001 | R0=0x4b800000
I2F.RZ R0, R1 | R1=0xfeffffff | R0=0xcb800000
I2F.U64.RP R0, R2 | R2=1 R3=0x80000000 | R0=0x5f000001
I2F.S64 R0, R2 | R2=0xffffffff R3=0xffffffff | R0=f-1
I2FP.F32.S32 R0, R1 | R1=0xfffffffe | R0=f-2
I2FP.F32.U32 R0, R1 | R1=0xffffffff | R0=0x4f800000
F2I.TRUNC.NTZ R0, R1 | R1=0xc0400000 | R0=0xfffffffd
F2I.NTZ R0, R1 | R1=0x40200000 | R0=2
F2I.FLOOR.NTZ R0, R1 | R1=0xbf000000 | R0=0xffffffff
F2I.CEIL.NTZ R0, R1 | R1=0xbf000000 | R0=0
F2I.FTZ.U32.TRUNC.NTZ R0, R1 | R1=0x50000000 | R0=0xffffffff
F2I.TRUNC.NTZ R0, R1 | R1=0x7fc00000 | R0=0
F2I.F64.TRUNC R0, R2 | R2=d-2 | R0=0xfffffffe
F2I.U64.TRUNC R0, R2 | R2=0x5f800000 | R0=0xffffffff R1=0xffffffff
F2I.S64.TRUNC R0, R2 | R2=f-1 | R0=0xffffffff R1=0xffffffff
F2I.S64.F64.TRUNC R0, R2 | R2=d3 | R0=3 R1=0
F2I.U64.F64.TRUNC R0, R2 | R2=0x7ff8000000000000 | R0=0 R1=0x80000000
FRND.FLOOR R0, R1 | R1=0xbf000000 | R0=f-1
FRND R0, R1 | R1=0x40200000 | R0=f2
FRND.F64.TRUNC R0, R2 | R2=0x4004000000000000 | R0=d2
F2F.F32.F64 R0, R2 | R2=0x3ff0000010000000 | R0=0x3f800000
F2F.F64.F32 R0, R2 | R2=f3 | R0=d3
HFMA2.MMA R0, -RZ, RZ, 0, 0 | | R0=0
HFMA2 R0, R1, R2.H0_H0, R3 | R1=0x3c004000 R2=0x40004200 R3=0x00003c00 | R0=0x42004700
HADD2.F32 R0, -RZ, R1.H1_H1 | R1=0x40003c00 | R0=f2
HADD2 R0, R1, R2 | R1=0x3c003c00 R2=0x40004200 | R0=0x42004400
HFMA2.BF16_V2 R0, R1, R2, R3 | R1=0x3f803fc0 R2=0x40004000 R3=0x3f803f80 | R0=0x40404080
HFMA2.BF16_V2 R0, R1, R2, R3 | R1=0x3f813f81 R2=0x3f803f80 R3=0x33800000 | R0=0x3f813f81
HFMA2.RELU R0, R1, R2, -RZ | R1=0xbc003c00 R2=0x3c003c00 | R0=0x3c00
HADD2.SAT R0, R1, R2 | R1=0xbc004000 R2=0x38003c00 | R0=0x3c00
HADD2 R0, |R1|.H0_H0, -RZ.H0_H0 | R1=0xbc00c000 | R0=0x40004000
HADD2.BF16_V2 R0, R1, -R2.H1_H1 | R1=0x40004040 R2=0x3f800000 | R0=0x3f804000
HMUL2 R0, R1, R2 | R1=0x40003c00 R2=0x42003800 | R0=0x46003800
HMUL2 R0, R1, R2 | R1=0x7c000001 R2=0x00003800 | R0=0x7fff0000
HMUL2.BF16_V2 R0, R1, R2 | R1=0x40003f80 R2=0x40407f80 | R0=0x40c07f80
HMNMX2 R0, R1, R2, PT | R1=0x3c004000 R2=0x40003c00 | R0=0x3c003c00
HMNMX2 R0, R1, R2, !PT | R1=0x7e008000 R2=0x40000000 | R0=0x40000000
HMNMX2.BF16_V2 R0, R1, R2, !PT | R1=0x3f804000 R2=0x40003f80 | R0=0x40004000
HSETP2.GT.AND P0, P1, R1, R2, PT | R1=0x3c004000 R2=0x3c003c00 | P0=1 P1=0
HSETP2.GEU.H_AND.AND P0, P1, R1, R2, PT | R1=0x7e004000 R2=0x3c003c00 | P0=1 P1=0
HSETP2.BF16_V2.NEU.OR P0, P1, R1, R2, P2 | R1=0x3f804000 R2=0x3f804000 P2=0 | P0=0 P1=0
HSETP2.NAN.AND P0, P1, R1, R2, PT | R1=0x7e004000 R2=0x3c003c00 | P0=0 P1=1
HSET2.BF.LT.AND R0, R1, R2, PT | R1=0x3c003c00 R2=0x40003c00 | R0=0x3c000000
HSET2.BF.EQ.BF16_V2.AND R0, R1, R2, PT | R1=0x3f803f80 R2=0x40003f80 | R0=0x3f80
HSET2.EQ.AND R0, R1, R2, PT | R1=0x3c003c00 R2=0x40003c00 | R0=0xffff
F2FP.F16.F32.PACK_AB R0, R1, R2 | R1=f1 R2=f-2 | R0=0x3c00c000
F2FP.F16.F32.PACK_AB R0, RZ, R2 | R2=f65520 | R0=0x7c00
F2FP.BF16.F32.PACK_AB R0, R1, R2 | R1=0x3f808000 R2=0x3f818000 | R0=0x3f803f82
F2FP.BF16.F32.PACK_AB R0, RZ, R2 | R2=0x7fc00001 | R0=0x7fff
F2F.F16.F32 R0, R1 | R1=f1.5 | R0=0x3e00
F2F.BF16.F32 R0, R1 | R1=f1.5 | R0=0x3fc0
F2F.F16.F64 R0, R2 | R2=0x3ff0020000000001 | R0=0x3c01
F2F.BF16.F64 R0, R2 | R2=0x3ff0100000000001 | R0=0x3f81
F2F.BF16.F64 R0, R2 | R2=0x3ff0100000000000 | R0=0x3f80
I2F.F16 R0, R1 | R1=0xfffffffe | R0=0xc000
I2F.F16.U32 R0, R1 | R1=0xfffffffe | R0=0x7c00
I2F.F16.S64 R0, R2 | R2=0xffffffff R3=0xffffffff | R0=0xbc00
I2F.F16.U64 R0, R2 | R2=2 R3=0 | R0=0x4000
I2F.BF16 R0, R1 | R1=257 | R0=0x4380
I2F.BF16.S64 R0, R2 | R2=1 R3=0x81000000 | R0=0xdefe
I2F.BF16.U64 R0, R2 | R2=1 R3=0x80800000 | R0=0x5f01
I2FP.F16.S32 R0, R1 | R1=3 | R0=0x4200
I2FP.BF16.U32 R0, R1 | R1=3 | R0=0x4040
I2F.U16 R0, R1 | R1=0x1ffff | R0=f65535
I2F.S8 R0, R1 | R1=0x1ff | R0=f-1
I2F.F64.U16 R0, R2 | R2=0x10003 | R0=d3
F2I.F64.TRUNC R0, R2 | R2=0x7ff8000000000000 | R0=0x80000000
F2I.U32.F64.TRUNC R0, R2 | R2=0x7ff8000000000000 | R0=0x80000000
IDP.4A.U8.U8 R0, R1, R2, R3 | R1=0xff020304 R2=0x02030405 R3=100 | R0=648
IDP.4A.U8.S8 R0, R1, R2, R3 | R1=0xff000000 R2=0xff000000 R3=0 | R0=0xffffff01
SHFL.IDX PT, R0, R1, 0x3, 0x1f | R1=lane | R0=3
SHFL.UP P0, R0, R1, 0x20, RZ | R1=lane | R0=5 P0=1
SHFL.DOWN P0, R0, R1, 0x1c, 0x1f | R1=lane | R0=5 P0=0
SHFL.BFLY PT, R0, R1, 0x1, 0x1f | R1=lane | R0=4
SHFL.UP PT, R0, R1, 0x1, 0x1e00 | R1=lane | R0=4
SHFL.IDX PT, R0, R1, 0x1, 0x1c03 | R1=lane | R0=5
VOTE.ANY R0, PT, P2 | P2=odd | R0=0xaaaaaaaa
VOTE.ALL P0, P2 | P2=odd | P0=0
VOTE.EQ P0, P2 | P2=1 | P0=1
VOTEU.ANY UR0, UPT, P2 | P2=odd | UR0=0xaaaaaaaa
MATCH.ANY R0, R1 | R1=half | R0=0x0000ffff
REDUX.SUM.S32 UR0, R1 | R1=lane | UR0=496
REDUX.MAX.S32 UR0, R1 | R1=0xffffffff | UR0=0xffffffff
REDUX.MIN UR0, R1 | R1=lane | UR0=0
REDUX.OR UR0, R1 | R1=lane | UR0=31
REDUX.XOR UR0, R1 | R1=lane | UR0=0
REDUX UR0, R1 | R1=lane | UR0=0
R2UR UR0, R1 | R1=lane | UR0=0
S2R R0, SR_LANEID | | R0=5
S2R R0, SR_LTMASK | | R0=31
S2UR UR0, SR_CTAID.X | | UR0=0
CS2R R0, SRZ | R0=1 R1=1 | R0=0 R1=0
CS2R.32 R0, SRZ | R0=1 | R0=0
"""
"""Instruction | registers before | registers after, in lane 5. fN and dN are floats, lane is the lane's number."""


def value(text: str) -> tuple[Any, bool]:
    """Return the value of a register by lane, and whether it is of 64 bits."""
    lane = np.arange(32)
    named = {"lane": lane, "odd": lane & 1, "half": lane // 16}
    if text in named:
        return named[text], False
    if text[0] == "f":
        return int(np.float32(text[1:]).view(np.uint32)), False
    if text[0] == "d":
        return int(np.float64(text[1:]).view(np.uint64)), True
    return int(text, 0), len(text) == 18


def registers(s: State, name: str) -> Any:
    """Return the array of a register."""
    kind, number = re.fullmatch(r"(U?[RP])(\d+)", name).groups()  # type: ignore[union-attr]
    arrays = {"R": s.registers, "UR": s.uniform_registers, "P": s.predicates, "UP": s.uniform_predicates}
    return arrays[kind][int(number)]


def state_before(before: str) -> State:
    """Return a state with the registers of a case."""
    s = State((1, 1, 1), (32, 1, 1), np.arange(1), 12, 1024, GlobalMemory.allocate({}), {0: bytes(64)})
    for pair in before.split():
        name, _, literal = pair.partition("=")
        number, wide = value(literal)
        if wide:
            registers(s, name)[:] = number & 0xFFFFFFFF
            registers(s, f"R{int(name[1:]) + 1}")[:] = number >> 32
        else:
            registers(s, name)[:] = number
    return s


def check_state(s: State, after: str) -> None:
    """Compare the registers with those of a case."""
    for pair in after.split():
        name, _, expected = pair.partition("=")
        number, wide = value(expected)
        at = min(5, registers(s, name).shape[1] - 1)
        actual = int(registers(s, name)[0, at])
        if wide:
            actual |= int(registers(s, f"R{int(name[1:]) + 1}")[0, at]) << 32
        assert actual == number, f"{name} is {actual:#x}"


ROWS_OF_CASES = CASES.strip().splitlines()


def check(case: str) -> None:
    text, before, after = case.rsplit("|", 2)
    s = state_before(before)
    (step,) = Program.from_listing([instruction(0, text.strip())]).steps
    assert step.execute is not None
    step.execute(s, slice(None), np.ones((1, 32), np.bool_), Counts(devices.H200, np.ones(1, np.bool_), 1))
    check_state(s, after)


def instruction_text(case: str) -> str:
    return case.rsplit("|", 2)[0].strip()


def test_each_row_computes_what_the_hardware_does() -> None:
    check_each(ROWS_OF_CASES, check)


def test_each_row_has_the_same_results_compiled() -> None:
    """All cases are one program; each is followed by a control instruction."""
    texts = [text for case in ROWS_OF_CASES for text in (instruction_text(case), "EXIT")]
    program = Program.from_listing(instructions(*texts))

    def check_compiled(n: int) -> None:
        _, before, after = ROWS_OF_CASES[n].rsplit("|", 2)
        s = state_before(before)
        batch = Batch(program.steps, s, False)
        batch.groups.address[:] = 2 * n
        code = program.machine_code.bind(batch, Counts(devices.H200, program.ends_run, 1))
        assert code is not None and 2 * n in code.code.starts
        assert code.run() == FINISHED
        check_state(s, after)

    check_each(range(len(ROWS_OF_CASES)), check_compiled)


def test_each_row_has_a_case() -> None:
    tested = set()
    for case in ROWS_OF_CASES:
        op = decode(0, instruction(0, instruction_text(case)))
        tested.add(id(bind(op, rows_of(op)).row))
    untested = [f"{row.opcode}.{row.required}" for rows in ROWS.values() for row in rows if id(row) not in tested]
    assert untested == []


@pytest.mark.parametrize(
    "text",
    [
        "BMOV.32 B0, R1", "IADD3.FOO R0, R1, R2, R3", "FADD R0, R1.H0_H0, R2", "LDG.E.FOO R0, [R2.64]",
        "IADD3 R0, R1, c[0x3][R2+0x4], RZ", "S2R R0, SR_SMEMSZ", "MUFU.FOO R0, R1", "BRXU UR2 -0x10",
        "CALL.ABS.NOINC R2", "BAR.ARV 0x1, 0x40", "QSPC.E.L P0, RZ, [R2]", "PRMT.F4E R0, R1, R2, R3",
    ],
)  # fmt: skip
def test_what_has_no_row_is_refused_by_name_and_address(text: str) -> None:
    with pytest.raises(UnsupportedInstruction, match=r"at 0x0010"):
        run("NOP", text, "EXIT")


def test_a_refusal_names_the_instruction() -> None:
    with pytest.raises(UnsupportedInstruction, match=r"BMOV\.32 B0, R1 at 0x0010"):
        run("NOP", "BMOV.32 B0, R1", "EXIT")


def test_unused_instructions_without_a_row_are_no_obstacle() -> None:
    run("@!PT BMOV.32 B0, R1", "BRA 0x30", "QSPC.E.S P0, RZ, [R2]", "EXIT")
