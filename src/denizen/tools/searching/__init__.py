"""Which lines of files match a pattern, by `rg` or by our own program."""
