"""What happens in turns, for those who listen: listeners, the relay between processes, metrics."""
