"""Performance model of a launch on a GPU: caches, time, limiting resources."""
