"""Functions in the kernel language for the host: one thread, compiled to scalar machine code, called like functions."""

from .function import Fixed, Native, fixed, native
from .specialised import native_program

__all__ = ["Fixed", "Native", "fixed", "native", "native_program"]
