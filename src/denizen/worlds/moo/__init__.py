"""The text world: an autonomous character on a MOO server."""
