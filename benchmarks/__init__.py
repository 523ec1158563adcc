"""Compares Denizen with other agent engines, in one run, on servers that answer at once."""
