"""Devices and their rules: coalescing, banks, occupancy, timings."""
