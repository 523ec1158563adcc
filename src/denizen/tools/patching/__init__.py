"""Patches as models write them: reading them, finding where they belong, applying them."""
