"""Passes over the IR: inlining, unrolling, divergence, data flow, sites of counters."""
