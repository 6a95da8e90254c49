"""Whole CUDA C++ programs: their build by clang, the functions of the CUDA runtime that they call, and their launches on an emulator."""
