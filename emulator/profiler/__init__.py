"""Counters, events and recorded decisions of a launch, and the advice that follows from them."""
