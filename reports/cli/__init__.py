"""The commands of `simtbed`, one module each."""
