"""The IR: its nodes, the table of operations, the table of effects, its rules and its text."""
