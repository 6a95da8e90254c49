"""Programs under a command: how they are found, run and observed, and their findings."""
