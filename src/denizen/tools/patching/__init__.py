"""Reads patches as models write them, finds their places, and applies them."""
