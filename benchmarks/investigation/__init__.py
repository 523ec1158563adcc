"""One investigation of a real repository: written replies, played under any context and action format."""
