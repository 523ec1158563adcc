"""The events of turns: listeners, the relay between processes, metrics."""
