"""Benchmarks of the commands and of the emulator."""
