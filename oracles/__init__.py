"""Plain implementations of the algorithms, one each; they import nothing of the package."""
