"""A shop for lamps."""
