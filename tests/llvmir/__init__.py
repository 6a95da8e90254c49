"""Tests of the LLVM IR front end."""
