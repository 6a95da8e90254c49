"""Launches: requests, arguments, arrays, results, streams, the registry of engines."""
