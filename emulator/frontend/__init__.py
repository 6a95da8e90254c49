"""Translation of Python source to the IR: reader, typing rules, expressions, statements."""
