"""The emulator beside real hardware: records of what a GPU counted, and compiled code estimated from the emulator."""
