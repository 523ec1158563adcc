"""The chat services: one module for each kind of channel."""
