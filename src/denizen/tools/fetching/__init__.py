"""Pages of the web: which addresses may be connected to, and what came from there as readable text."""
