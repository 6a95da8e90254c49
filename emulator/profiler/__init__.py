"""Counters and events of a launch, and the advice that follows from them."""
