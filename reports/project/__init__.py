"""Templates of the files of a new project; `$name` is its name."""
