"""Functions in the kernel language for the host: one thread, compiled to scalar machine code, called like functions."""

from .function import Fixed, Native, fixed, native

__all__ = ["Fixed", "Native", "fixed", "native"]
