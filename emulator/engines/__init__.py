"""Engines that run a launch: `numpy`, `llvm` (jit), `python` and `cuda`. They share a request, and import no other engine."""
