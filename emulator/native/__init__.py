"""Host functions in the kernel language: compiled to scalar machine code, one thread, called like Python functions."""

from .function import Fixed, Native, fixed, native, record

__all__ = ["Fixed", "Native", "fixed", "native", "record"]
