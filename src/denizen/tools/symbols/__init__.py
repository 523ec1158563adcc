"""Code seen by its symbols: the paths that lead to them, the index they are looked up in, the rows that show them."""
