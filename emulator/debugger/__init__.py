"""Debugger of kernels: sessions on the python engine, their commands, and traces of threads."""
