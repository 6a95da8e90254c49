"""The files of a new project, as templates: `$name` stands for its name."""
