"""Web pages: which addresses may be connected to, and how a page becomes readable text."""
