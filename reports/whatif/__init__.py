"""Prediction of a target's launches for other devices and configurations: observer, option values, report."""
