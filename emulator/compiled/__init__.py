"""The compiled view of launches: nvcc's SASS of a kernel, executed on the arrays of the launches (`simtbed.sass`).

`kernel` is the entry point.
"""
