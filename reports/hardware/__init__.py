"""The emulator beside real hardware: records of what a GPU counted, and how near the emulator comes."""
