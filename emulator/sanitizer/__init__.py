"""Checkers, one file each, and their findings; `races` is the race detector."""
