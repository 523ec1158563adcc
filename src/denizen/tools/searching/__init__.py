"""The lines of files that match a pattern: which files are searched, by which program, and what is shown around."""
