"""Code by its symbols: the paths that name them, the index to look them up in, the rows that show them."""
