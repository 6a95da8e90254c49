"""Records of GPUs and their comparison with the emulator: answers, counters, times, device constants."""
