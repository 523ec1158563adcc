"""One message, one turn: the queue, the runner, and what a turn may ask for."""
