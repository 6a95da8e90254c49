"""What a launch would cost on a GPU: caches, time, and what bounds it."""
